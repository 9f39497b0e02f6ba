"""Be one node of a cluster: keep the lease, see the others, bury the dead, end when other nodes took over."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import platform
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from hermes.core.errors import NodeIsGoneError, StoreIsDownError, UnreachableError
from hermes.services.clock import SteadyClock
from hermes.services.cluster.duties import Duties
from hermes.services.cluster.wakeups import Wakeups
from hermes.store.cluster import nodes
from hermes.store.cluster.nodes import ClusterView, NewNode, NodeRow, NodeState
from hermes.store.db import Database, Tx
from hermes.store.private_files import write_private

log = logging.getLogger(__name__)

WATCH_SECONDS = 0.25
CLOCK_SECONDS = 0.25
"""Less difference between the database's clock and ours is not corrected."""
CLOSE_SECONDS = 3.0
JOIN_SECONDS = 10.0
RECORD = "node.json"
IS_GONE = "Other nodes have taken over the work of this one: it was not heard of for longer than its lease."


class ClusterNode:
    """``on_gone`` is told once why this worker must end. Nodes share the database's time: ``clock`` follows it."""

    def __init__(
        self,
        db: Database,
        node: NewNode,
        clock: SteadyClock,
        *,
        on_gone: Callable[[str], None],
        on_trouble: Callable[[str], None],
    ) -> None:
        from hermes.store.cluster.node_connection import NodeConnection
        from hermes.store.postgres import PostgresDatabase

        assert isinstance(db, PostgresDatabase)  # noqa: S101 - SQLite has no cluster
        self.id = node.id
        self.name = node.name
        self.view = ClusterView(0.0, (), {}, 0)
        self.is_gone = False
        self.is_draining = False
        self.clock_ahead = 0.0
        """By so many seconds the clock of this machine is behind the database's."""
        self._db = db
        self._node = node
        self._clock = clock
        self._on_gone = on_gone
        self._on_trouble = on_trouble
        self._connection = NodeConnection(
            db,
            node,
            monotonic=clock.monotonic,
            system_time=clock.system_time,
            on_view=self._saw,
            on_news=self._heard,
            on_gone=self._is_over,
        )
        self.duties = Duties(db, node.id, self.holds_lease, lambda node_id: self.view.name_of(node_id))
        self.wakeups = Wakeups(db, self.has_others)
        self._on_lapse: list[Callable[[], None]] = []
        self._on_change: list[Callable[[], None]] = []
        self._has_lapsed = False
        self._is_leaving = False
        self._is_too_old = False
        self._hand_over: Callable[[], Awaitable[None]] = _nothing
        self._take_up: Callable[[], None] = lambda: None
        self._standing_down: asyncio.Task[None] | None = None
        self._seen_once = asyncio.Event()
        self._burying: dict[str, asyncio.Task[None]] = {}
        self._watching: asyncio.TimerHandle | None = None

    # What others ask

    def holds_lease(self) -> bool:
        """Whether this node may act towards platforms and models now."""
        return not self.is_gone and self._clock.monotonic() < self._connection.lease_until

    def check(self) -> None:
        """Raise NodeIsGoneError unless this node may act now. Called right before bytes leave."""
        if not self.holds_lease():
            raise NodeIsGoneError("This node's lease has ended: the database was not reached in time.")

    def check_request(self) -> None:
        """The same for a request to a platform: nothing was sent."""
        if not self.holds_lease():
            raise UnreachableError("This node's lease has ended: the database was not reached in time.")

    def has_others(self) -> bool:
        return any(node.id != self.id and node.state != NodeState.LEFT for node in self.view.nodes)

    def on_lapse(self, call: Callable[[], None]) -> None:
        """Call it when the lease has ended: whatever runs for a platform must stop."""
        self._on_lapse.append(call)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call it when work may have become free: a node is gone, or the lease is back."""
        self._on_change.append(call)

    # Joining and leaving

    async def join(self, wait_seconds: float) -> None:
        """Add this node, and see the cluster once."""
        self._db.show_node(self.id)
        await self._connection.join(wait_seconds)
        self._watch()
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await self._seen_once.wait()
        except TimeoutError as error:
            raise StoreIsDownError("PostgreSQL answers too slowly to join its nodes.") from error

    async def succeed(self, predecessor: str) -> None:
        """Free what the last worker of this home held: it is dead, since this one holds the home's lock."""
        if not predecessor:
            return
        try:
            await self._db.write(_end_predecessor, predecessor, self._node.host)
        except StoreIsDownError as error:  # its lease ends soon
            log.warning("Store is down", extra={"while": "succeeding a worker", "reason": str(error)})

    async def drain(self) -> None:
        """Take no more work, and give back every duty; whatever runs is handed over by its own part."""
        self.is_draining = True
        try:
            await self._db.write(nodes.set_draining, self.id, is_draining=True)
            await self.duties.drain()
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"while": "draining", "reason": str(error)})

    async def stand_down(self) -> None:
        """Hand all work over to the other nodes, and live on without any."""
        await self.drain()
        await self._hand_over()

    async def stand_up(self) -> None:
        """Take work again."""
        self.is_draining = False
        await self._db.write(nodes.set_draining, self.id, is_draining=False)
        self.duties.resume()
        self._take_up()

    def carry(self, hand_over: Callable[[], Awaitable[None]], take_up: Callable[[], None]) -> None:
        """What hands the work of this node over while it lives on, and what takes up work again. Once, at the start."""
        self._hand_over, self._take_up = hand_over, take_up

    async def leave(self) -> None:
        """Say goodbye, so that other nodes take over at once; then close the node's connection."""
        self._is_leaving = True
        if self._watching is not None:
            self._watching.cancel()
        await self.wakeups.close()
        if not self.is_gone:
            try:
                await self._db.write(nodes.leave, self.id)
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "saying goodbye", "reason": str(error)})
        if self._standing_down is not None:
            self._standing_down.cancel()
        for task in list(self._burying.values()):
            task.cancel()
        await self._connection.close(CLOSE_SECONDS)

    # The lease

    def _watch(self) -> None:
        """A plain callback of the loop: after a pause of the process it runs before any task takes a step."""
        left = self._connection.lease_until - self._clock.monotonic()
        pause = min(WATCH_SECONDS, left) if left > 0 else WATCH_SECONDS
        self._watching = asyncio.get_running_loop().call_later(max(pause, 0.001), self._watch)
        self._connection.cut_if_silent()
        lapsed = not self.holds_lease()
        if lapsed == self._has_lapsed:
            return
        self._has_lapsed = lapsed
        if lapsed:
            log.warning("Lease ended", extra={"node": self.name})
            for call in self._on_lapse:
                call()
        else:
            log.info("Lease renewed", extra={"node": self.name})
            self._changed()

    def _is_over(self) -> None:
        if self.is_gone or self._is_leaving:
            return
        self.is_gone = True
        log.warning("Node is gone", extra={"node": self.name, "reason": IS_GONE})
        for call in self._on_lapse:
            call()
        self._on_gone(IS_GONE)

    # The others

    def _saw(self, view: ClusterView, ahead: float) -> None:
        self._follow(ahead)
        before, self.view = {node.id for node in self.view.nodes}, view
        self._seen_once.set()
        self.duties.saw(view.duties)
        if before - {node.id for node in view.nodes}:
            self._changed()  # somebody is gone, and what that node held is free
        for node in view.nodes:
            if node.id != self.id and node.is_over(view.now) and node.id not in self._burying:
                task = self._burying[node.id] = asyncio.create_task(self._bury(node), name=f"bury {node.name}")
                task.add_done_callback(partial(self._has_buried, node.id))
        if view.min_reader > self._node.schema_version and not self._is_too_old:
            self._is_too_old = True
            self._standing_down = asyncio.create_task(self.stand_down(), name="stand down")
            self._on_trouble(
                f"The database needs schema {view.min_reader}, and the node {self.name} knows"
                f" {self._node.schema_version} at most. It takes no more work. Update Hermes there, then restart it."
            )

    def _has_buried(self, node_id: str, _task: asyncio.Task[None]) -> None:
        self._burying.pop(node_id, None)

    def _follow(self, ahead: float) -> None:
        if abs(ahead - self.clock_ahead) >= CLOCK_SECONDS:
            log.warning("Clock differs from the database", extra={"seconds": round(ahead, 1)})
            self.clock_ahead = ahead
            self._clock.follow(ahead)

    def _heard(self, kind: str, key: str) -> None:
        self.wakeups.heard(kind, key)

    def _changed(self) -> None:
        self.duties.tick()
        for call in self._on_change:
            call()

    async def _bury(self, node: NodeRow) -> None:
        try:
            try:
                buried = await self._db.write(nodes.bury, node.id)
            except NodeIsGoneError:
                return
            except StoreIsDownError:  # it stands in the middle of a transaction
                cut = await self._db.alone(nodes.end_sessions, node.id)
                log.warning("Connections cut", extra={"node": node.name, "count": cut})
                buried = await self._db.write(nodes.bury, node.id)
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"while": "burying a node", "node": node.name, "reason": str(error)})
            return
        if buried is not None:
            freed = {"lanes": buried.lanes, "targets": buried.targets, "duties": buried.duties}
            how = "said goodbye" if node.state == NodeState.LEFT else "was not heard of"
            log.warning("Node buried", extra={"node": node.name, "reason": how, **freed})
            self._changed()


async def _nothing() -> None:
    """Before any work is taken."""


def name_of(home: Path, chosen: str = "") -> str:
    """How a node is called: as chosen, else after its machine; a second home on one machine has a name of its own."""
    if chosen:
        return chosen
    is_usual = home.resolve() == (Path.home() / ".hermes").resolve()
    mark = "" if is_usual else f"-{hashlib.sha256(str(home.resolve()).encode()).hexdigest()[:4]}"
    return f"{platform.node() or 'node'}{mark}"


def describe_this(home: Path, node_id: str, *, name: str, version: str, schema_version: int) -> NewNode:
    """The row of this worker."""
    facts = json.dumps({"home": str(home)})
    return NewNode(node_id, name_of(home, name), platform.node(), os.getpid(), version, schema_version, facts)


def predecessor(home: Path) -> str:
    """The id of the last node that had this home; '' where there was none."""
    try:
        return str(json.loads((home / RECORD).read_text("utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def remember(home: Path, node: NewNode) -> None:
    """Keep the id in the home, for the next worker."""
    write_private(home / RECORD, json.dumps({"id": node.id, "name": node.name}))


def _end_predecessor(tx: Tx, node_id: str, host: str) -> None:
    """Say goodbye for a worker, if it was one of this machine, and bury it."""
    tx.run("UPDATE nodes SET state = 'left' WHERE id = :id AND host = :host AND state <> 'gone'", id=node_id, host=host)
    nodes.bury(tx, node_id)
