"""Show the nodes on one database, and drain one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.core.errors import GatewayError
from hermes.hosting.control.server import Handler, Reply
from hermes.store.db import Database
from hermes.store.ids import new_id

if TYPE_CHECKING:
    from hermes.store.cluster.nodes import NodeRow

DRAIN_SECONDS = 30.0
LOOK_SECONDS = 0.2
ALONE = "This gateway stores in state.db, so it is the only one there. Several machines need HERMES_DATABASE_URL."


class ClusterVerbs:
    def __init__(self, db: Database) -> None:
        self._db = db

    def mapping(self) -> Mapping[str, Handler]:
        return {"cluster.status": self.status, "cluster.drain": self.drain}

    async def status(self, _args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """Every node with its lease, accounts and lanes, and what waits."""
        if self._db.dialect.name != "postgres":
            return {"is_cluster": False, "text": ALONE, "nodes": []}
        from hermes.store.cluster import report  # only in a cluster

        return {"is_cluster": True, **await self._db.read(report.report)}

    async def drain(self, args: Mapping[str, Any], _: Reply) -> dict[str, Any]:
        """``{node, undo?, wait_seconds?}``: have a node give all of its work to the others, or take work again."""
        if self._db.dialect.name != "postgres":
            raise GatewayError(ALONE)
        node, undo = await self._node(str(args.get("node") or "")), bool(args.get("undo"))
        from hermes.services.cluster.calls import DRAIN, NodeCalls

        calls = NodeCalls(self._db, new_id("cmd"))
        await calls.ask(node.id, DRAIN, {"undo": undo}, seconds=DRAIN_SECONDS)
        seconds = 0.0 if undo else min(float(args.get("wait_seconds") or 0.0), DRAIN_SECONDS)
        left = await self._emptied(node.id, seconds)
        return {"node": node.name, "id": node.id, "is_draining": not undo, "left": left}

    async def _node(self, word: str) -> NodeRow:
        from hermes.store.cluster import report

        found = await self._db.read(report.find, word)
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(node.id for node in found)
            raise GatewayError(f"{len(found)} nodes are called {word[:60]!r}. Type the id of one: {ids}")
        raise GatewayError(f"No living node is called {word[:60]!r}. Look: hermes cluster status")

    async def _emptied(self, node_id: str, seconds: float) -> dict[str, int]:
        from hermes.store.cluster import report

        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while True:
            left = await self._db.read(report.holds, node_id)
            if not any(left.values()) or loop.time() >= deadline:
                return left
            await asyncio.sleep(LOOK_SECONDS)
