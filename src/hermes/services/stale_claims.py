"""Release claims that nobody works on, seen twice in a row: left by an unknown COMMIT or a store that was down."""

from __future__ import annotations

import logging
from collections.abc import Container

from hermes.core.ports import Clock
from hermes.store import claims
from hermes.store.claims import Claim, Table
from hermes.store.db import Database

log = logging.getLogger(__name__)

LOOK_SECONDS = 5.0


class Orphans:
    def __init__(self, db: Database, table: Table, clock: Clock, owner: str) -> None:
        self._db = db
        self._table = table
        self._clock = clock
        self._owner = owner
        self._suspects: set[tuple[str, int]] = set()
        self._next_look = 0.0

    async def free(self, carried: Container[str]) -> None:
        """Release claims that nobody carries; called by the slow poll, looks now and then."""
        if self._clock.monotonic() < self._next_look:
            return
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        held = await self._db.read(claims.held_by, self._table, owner=self._owner)
        orphans = [claim for claim in held if claim.key not in carried]
        # By key and token alone: the seq grows with every message that arrives meanwhile.
        known, self._suspects = self._suspects, {_name(claim) for claim in orphans}
        for claim in orphans:
            if _name(claim) in known:
                log.warning("Released stale claim", extra={"table": self._table, "key": claim.key})
                await self._db.write(claims.abandon, self._table, claim, now=self._clock.now())


def _name(claim: Claim) -> tuple[str, int]:
    return claim.key, claim.token
