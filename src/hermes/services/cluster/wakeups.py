"""Wake other nodes, and be woken by them.

Notifications are sent after the commit that added the work, many in one transaction: PostgreSQL lets transactions that
notify commit one after the other. What a notification misses, the slow poll finds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from hermes.core.errors import StoreIsDownError
from hermes.store.cluster.notifications import Kind, notify
from hermes.store.db import Database, Tx

log = logging.getLogger(__name__)


class Wakeups:
    """``has_others`` tells whether somebody is there to be woken."""

    def __init__(self, db: Database, has_others: Callable[[], bool]) -> None:
        self._db = db
        self._has_others = has_others
        self._handlers: dict[str, list[Callable[[str], None]]] = {}
        self._waiting: dict[tuple[Kind, str], None] = {}
        self._sending: asyncio.Task[None] | None = None

    def on(self, kind: Kind, wake: Callable[[str], None]) -> None:
        """Call ``wake`` with the key of each notification of this kind."""
        self._handlers.setdefault(kind, []).append(wake)

    def heard(self, kind: str, key: str) -> None:
        for wake in self._handlers.get(kind, ()):
            wake(key)

    def send(self, kind: Kind, key: str) -> None:
        """Wake the other nodes for this key, soon."""
        if not self._has_others():
            return
        self._waiting[kind, key] = None
        if self._sending is None:
            self._sending = asyncio.create_task(self._send(), name="wake other nodes")

    async def _send(self) -> None:
        try:
            while self._waiting:
                batch = list(self._waiting)
                self._waiting.clear()
                await self._db.write(_notify_all, batch)
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"while": "waking other nodes", "reason": str(error)})
        finally:
            self._sending = None

    async def close(self) -> None:
        """Send what waits."""
        if self._sending is not None:
            await asyncio.wait({self._sending}, timeout=1.0)


def _notify_all(tx: Tx, batch: Iterable[tuple[Kind, str]]) -> None:
    for kind, key in batch:
        notify(tx, kind, key)
