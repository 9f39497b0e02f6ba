"""Put together what a node does for other nodes, and asks of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hermes.agent.backends.terminals import Terminals
from hermes.core.errors import StoreIsDownError
from hermes.services.cluster.calls import DRAIN, Json, NodeCalls
from hermes.services.cluster.facts import NodeFacts
from hermes.services.cluster.node import ClusterNode
from hermes.services.cluster.processes import RemoteProcesses
from hermes.services.cluster.progress import TurnFollower, TurnRecorder
from hermes.services.cluster.turns import RemoteTurns
from hermes.services.events import EventBus
from hermes.services.keep_running import Run
from hermes.services.people.pairing import Pairings
from hermes.services.turns.lanes import Lanes
from hermes.store.cluster.notifications import Kind
from hermes.store.db import Database

log = logging.getLogger(__name__)

PAIRINGS_SECONDS = 5.0
"""How often pairings are read that no notification told of."""


class ClusterServices:
    """``accounts`` is the status of this node's accounts."""

    def __init__(
        self,
        node: ClusterNode,
        db: Database,
        bus: EventBus,
        lanes: Lanes,
        home: str,
        accounts: Callable[[], Sequence[Mapping[str, Any]]],
        pairings: Pairings,
        terminals: Terminals,
    ) -> None:
        self._node = node
        self.calls = NodeCalls(db, node.id)
        self._turns = RemoteTurns(db, self.calls, lanes, node.id)
        self._recorder = TurnRecorder(db, bus, node.id)
        self._follower = TurnFollower(db, bus, self.calls, node.id, lanes.is_serving)
        self._facts = NodeFacts(db, node.id, home, accounts)
        self.calls.add(self._turns.handlers())
        self.calls.add(self._recorder.handlers())
        self.calls.add({DRAIN: self._drain})
        lanes.elsewhere = self._turns
        processes = RemoteProcesses(db, self.calls, node, terminals)
        self.calls.add(processes.handlers())
        terminals.elsewhere = processes
        self._pairings = pairings
        self._pairing_news = asyncio.Event()
        pairings.on_change = lambda: node.wakeups.send("pairing", "")
        node.wakeups.on("pairing", lambda _: self._pairing_news.set())
        kinds: tuple[Kind, ...] = ("call", "answer", "turn", "lane", "node")
        for kind in kinds:
            node.wakeups.on(kind, self._hears(kind))

    async def _drain(self, body: Json) -> Json:
        """``{undo?}``: hand all work over to the other nodes and live on without any; or take work again."""
        await (self._node.stand_up() if body.get("undo") else self._node.stand_down())
        return {}

    def _hears(self, kind: Kind) -> Callable[[str], None]:
        def hear(key: str) -> None:
            self.calls.notified(kind, key)
            self._follower.notified(kind, key)

        return hear

    async def _know_pairings(self) -> None:
        """Know whom other nodes let in or sent away."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PAIRINGS_SECONDS):
                    await self._pairing_news.wait()
            self._pairing_news.clear()
            try:
                await self._pairings.load()
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "reading pairings", "reason": str(error)})

    def background(self) -> dict[str, Run]:
        """What runs as long as the node does, by the names of its tasks."""
        return {
            "node calls": self.calls.run,
            "turns of this node": self._recorder.run,
            "turns of other nodes": self._follower.run,
            "node facts": self._facts.run,
            "pairings of other nodes": self._know_pairings,
        }
