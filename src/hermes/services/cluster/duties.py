"""Hold duties: what exactly one node of a cluster does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from hermes.core.errors import StoreIsDownError
from hermes.core.keys import AccountKey
from hermes.store.cluster import duties
from hermes.store.db import Database, Tx

log = logging.getLogger(__name__)

JANITOR = "task:janitor"
ALERTS = "task:alerts"
TASKS = (JANITOR, ALERTS)


def account_duty(account: AccountKey) -> str:
    return f"account:{account}"


class Duties:
    """``holds_lease`` tells whether this node may act at all; ``name_of`` names the node of an id."""

    def __init__(
        self, db: Database, node_id: str, holds_lease: Callable[[], bool], name_of: Callable[[str], str]
    ) -> None:
        self._db = db
        self._node_id = node_id
        self._holds_lease = holds_lease
        self._name_of = name_of
        self._held: set[str] = set()
        self._owners: Mapping[str, str] = {}
        self._news = asyncio.Event()
        self._is_draining = False

    def is_held(self, key: str) -> bool:
        """Whether this node has the duty and may act on it now."""
        return key in self._held and self._holds_lease()

    def holder(self, key: str) -> str:
        """The name of the node that has it; '' for nobody, or for this node."""
        owner = self._owners.get(key, "")
        return self._name_of(owner) if owner and owner != self._node_id else ""

    def held(self) -> list[str]:
        return sorted(self._held)

    def saw(self, owners: Mapping[str, str]) -> None:
        """Note who has what, as the last look saw it; whoever waits for a duty tries again."""
        self._owners = owners
        self._held -= {key for key in self._held if owners.get(key, self._node_id) != self._node_id}
        self.tick()

    def tick(self) -> None:
        """Let all who wait look again."""
        self._news.set()
        self._news = asyncio.Event()

    async def hold(self, key: str) -> None:
        """Return when this node has the duty and may act on it."""
        while not self.is_held(key):
            news = self._news
            if self._may_claim(key):
                try:
                    token = await self._db.claim(
                        duties.claim, key, owner=self._node_id, if_gone=partial(self._give_back, key)
                    )
                except StoreIsDownError as error:
                    log.warning("Store is down", extra={"while": "claiming a duty", "reason": str(error)})
                else:
                    if token is not None:
                        self._held.add(key)
                        log.info("Duty taken", extra={"duty": key})
                        continue
            await news.wait()

    def _may_claim(self, key: str) -> bool:
        if self._is_draining or key in self._held or not self._holds_lease():
            return False
        return self._owners.get(key, self._node_id) == self._node_id

    def _give_back(self, key: str, tx: Tx, _token: int | None) -> None:
        duties.release(tx, key, owner=self._node_id)

    async def keep(self) -> None:
        """Try to have the tasks that one node does for all, until cancelled."""
        while True:
            news = self._news
            for key in TASKS:
                if key not in self._held and self._may_claim(key):
                    await self.hold(key)
            await news.wait()

    async def release(self, key: str) -> None:
        """Give one duty back, for the next node."""
        if key in self._held:
            self._held.discard(key)
            await self._db.write(duties.release, key, owner=self._node_id)

    async def drain(self) -> None:
        """Take no duty any more, and give back all of them."""
        self._is_draining = True
        self._held.clear()
        await self._db.write(duties.release_all, owner=self._node_id)

    def resume(self) -> None:
        """Take duties again."""
        self._is_draining = False
        self.tick()
