"""Delete old rows in small batches, shift times after the clock went back, return memory after a load."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.services.memory_trim import MemoryTrim
from hermes.store import clock_change, inbox, outbox, strangers
from hermes.store.db import Database

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LOOKS_PER_SWEEP = 12
KEYS_LIVE_SECONDS = 30 * 86400.0
STRANGERS_LIVE_SECONDS = 7 * 86400.0
SET_BACK_SECONDS = 1.0  # less is a clock that is being adjusted, not set


class Janitor:
    def __init__(self, db: Database, clock: Clock, *also: Callable[[], Awaitable[None]]) -> None:
        """``also``: sweeps of parts that look after their own rows and files."""
        self._db = db
        self._also = also
        self._clock = clock
        self._offset = clock.now() - clock.monotonic()
        self._memory = MemoryTrim()

    async def run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            await self._memory.look()
            try:
                await self.mind_the_clock()
                if looks % LOOKS_PER_SWEEP == 0:
                    await self.sweep()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "sweeping", "reason": str(error)})

    async def mind_the_clock(self) -> None:
        offset = self._clock.now() - self._clock.monotonic()
        back = self._offset - offset
        if back > SET_BACK_SECONDS:
            log.warning("Clock set back", extra={"seconds": round(back)})
            await self._db.alone(clock_change.shift_times, by=back, now=self._clock.now())
        self._offset = offset

    async def sweep(self) -> None:
        now = self._clock.now()
        await self._db.alone(outbox.expire_parked, now=now)
        await self._db.alone(inbox.forget_keys, before=now - KEYS_LIVE_SECONDS)
        await self._db.alone(strangers.forget, before=now - STRANGERS_LIVE_SECONDS)
        for sweep in self._also:
            await sweep()
