"""Tell the other nodes how this one is: its clock, its accounts, its memory."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hermes.core.errors import NodeIsGoneError, StoreIsDownError
from hermes.store.cluster import nodes
from hermes.store.db import Database

log = logging.getLogger(__name__)

TELL_SECONDS = 2.0
MAX_REASON_CHARS = 200


class NodeFacts:
    """``accounts`` is the status of this node's accounts; ``home`` its folder."""

    def __init__(
        self, db: Database, node_id: str, home: str, accounts: Callable[[], Sequence[Mapping[str, Any]]]
    ) -> None:
        self._db = db
        self._node_id = node_id
        self._home = home
        self._accounts = accounts
        self._written = ""

    async def run(self) -> None:
        while True:
            try:
                await self.tell()
            except NodeIsGoneError:
                raise
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "describing this node", "reason": str(error)})
            await asyncio.sleep(TELL_SECONDS)

    async def tell(self) -> None:
        """Write the facts where they have changed."""
        before = time.time()
        now = await self._db.read(nodes.db_time)
        # How far this machine's clock is ahead of the database's, as well as the round trip lets us know.
        ahead = (before + time.time()) / 2 - now
        facts = {
            "home": self._home,
            "clock_ahead": round(ahead),
            "cores": os.cpu_count() or 1,
            "accounts": {
                str(account["account"]): {
                    "state": str(account["state"]),
                    "reason": str(account.get("reason") or "")[:MAX_REASON_CHARS],
                }
                for account in self._accounts()
                if account["state"] != "off"
            },
        }
        dumped = json.dumps(facts, ensure_ascii=False, sort_keys=True)
        if dumped != self._written:
            await self._db.write(nodes.describe, self._node_id, facts=dumped)
            self._written = dumped
