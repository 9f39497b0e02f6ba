"""Delete what is too old to matter, in small batches beside the messages.

It also minds the clock: when that is set or the machine was asleep, what waits for a time waits as long as before; and
the memory that a load has left behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes.core.errors import StoreIsDownError
from hermes.services.clock import SteadyClock
from hermes.services.memory_trim import MemoryTrim
from hermes.store import clock_change, inbox, outbox
from hermes.store.db import Database

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LOOKS_PER_SWEEP = 12
KEYS_LIVE_SECONDS = 30 * 86400.0


class Janitor:
    def __init__(
        self,
        db: Database,
        clock: SteadyClock,
        *also: Callable[[], Awaitable[None]],
        on_clock_set: Callable[[float], None] = lambda _: None,
        is_mine: Callable[[], bool] | None = None,
    ) -> None:
        """``also``: sweeps of parts that look after their own rows and files.

        ``on_clock_set`` is called, once the clock is followed, with the seconds by which it was set. ``is_mine``: in a
        cluster, whether this node sweeps for all; its clock then follows the database's, and no deadline moves with it.
        """
        self._is_mine = is_mine
        self._on_clock_set = on_clock_set
        self._db = db
        self._also = also
        self._clock = clock
        self._memory = MemoryTrim(free_caches=self._free_caches)

    async def run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            looks += 1
            await self._memory.look()
            try:
                await self.mind_the_clock()
                if looks % LOOKS_PER_SWEEP == 0 and not self._clock.is_doubtful:
                    await self.sweep()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "sweeping", "reason": str(error)})

    def _free_caches(self) -> None:
        for db in (self._db, *self._db.beside.values()):
            db.free_caches()

    async def mind_the_clock(self) -> None:
        """Move stored deadlines with the system's clock, and follow that clock.

        Nothing may expire in between: deadlines move ahead before the clock does, and back after it.
        """
        jump = self._clock.jump()
        if not jump:
            return
        was_set_by = jump - self._clock.slept()
        if self._is_mine is not None:
            self._clock.accept(jump)
            self._on_clock_set(was_set_by)
            return
        log.warning("Clock set back" if jump < 0 else "Clock set forward", extra={"seconds": round(abs(jump))})
        if jump > 0:
            now = self._clock.now()
            await self._db.alone(clock_change.shift_forward, by=jump, now=now)
            self._clock.accept(jump)
            self._on_clock_set(was_set_by)
            await self._db.alone(clock_change.shift_late_forward, by=jump, now=now)
        else:
            self._clock.accept(jump)
            try:
                await self._db.alone(clock_change.shift_back, by=-jump, now=self._clock.now())
            except BaseException:
                self._clock.accept(-jump)  # tried again at the next look
                raise
            self._on_clock_set(was_set_by)

    async def sweep(self) -> None:
        now = self._clock.now()
        if self._is_mine is None or self._is_mine():
            await self._db.alone(outbox.expire_parked, now=now)
            await self._db.alone(inbox.forget_keys, before=now - KEYS_LIVE_SECONDS)
        if self._is_mine is not None and self._is_mine():
            from hermes.store.cluster import nodes  # only in a cluster

            await self._db.alone(outbox.expire_unclaimed, now=now)
            await self._db.alone(nodes.forget)
        for sweep in self._also:
            await sweep()
