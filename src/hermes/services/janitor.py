"""The janitor: what is too old to matter goes, a bounded bite at a time, never in the way of a message."""

from __future__ import annotations

import asyncio
import logging

from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.store import inbox, outbox
from hermes.store.db import Database

log = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
KEYS_LIVE_SECONDS = 30 * 86400.0


class Janitor:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.sweep()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "sweeping", "reason": str(error)})

    async def sweep(self) -> None:
        now = self._clock.now()
        await self._db.alone(outbox.expire_parked, now=now)
        await self._db.alone(inbox.forget_keys, before=now - KEYS_LIVE_SECONDS)
