"""Store the nodes of a cluster: who lives, judged by the database's clock alone.

A node's row holds a lease. Every write of a node shows the row (``store/postgres.py``), and ``bury`` locks it: it waits
for writes under way, and every later one fails. So what a node held is free only when the node can store nothing more.
"""

from __future__ import annotations

from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.store import claims
from hermes.store.cluster import duties
from hermes.store.cluster.notifications import notify
from hermes.store.db import Tx

LEASE_SECONDS = 4.0
BEAT_SECONDS = 1.0
BURY_WAIT_MILLISECONDS = 500
KEPT_SECONDS = 86_400.0
"""How long a node that is gone is still listed."""


class NodeState(StrEnum):
    LIVING = "living"
    DRAINING = "draining"  # lives, and takes no more work
    LEFT = "left"  # said goodbye: what it held is free as soon as somebody looks
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class NewNode:
    """``schema_version`` is the newest migration that the node's program knows; ``facts`` is JSON."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    schema_version: int
    facts: str = "{}"


@dataclass(frozen=True, slots=True)
class NodeRow:
    id: str
    name: str
    host: str
    pid: int
    version: str
    schema_version: int
    state: str
    started_at: float
    beat_at: float
    lease_until: float
    facts: str

    def is_over(self, now: float) -> bool:
        """Whether its work may be given to others, at this time of the database."""
        return self.state == NodeState.LEFT or (self.state != NodeState.GONE and self.lease_until <= now)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one look saw: the time by the database, nodes that are not gone, duties with their owners."""

    now: float
    nodes: tuple[NodeRow, ...]
    duties: dict[str, str]
    min_reader: int
    """The oldest schema version that a program must know to use the database."""

    def name_of(self, node_id: str) -> str:
        return next((node.name for node in self.nodes if node.id == node_id), "")


@dataclass(frozen=True, slots=True)
class Buried:
    """What a node left behind."""

    node: NodeRow
    lanes: int
    targets: int
    duties: int


_COLUMNS = "id, name, host, pid, version, schema_version, state, started_at, beat_at, lease_until, facts"


def join(tx: Tx, node: NewNode, *, lease_seconds: float = LEASE_SECONDS) -> bool:
    """Add a node. Joining again extends the lease, unless the node is gone or has left: then False."""
    now = db_time(tx)
    joined = tx.run(
        f"""
        INSERT INTO nodes ({_COLUMNS})
        VALUES (:id, :name, :host, :pid, :version, :schema_version, 'living', :now, :now, :until, :facts)
        ON CONFLICT (id) DO UPDATE SET beat_at = :now, lease_until = :until
        WHERE nodes.state = 'living' OR nodes.state = 'draining'
        """,
        id=node.id,
        name=node.name,
        host=node.host,
        pid=node.pid,
        version=node.version,
        schema_version=node.schema_version,
        facts=node.facts,
        now=now,
        until=now + lease_seconds,
    )
    notify(tx, "node", node.id)
    return joined == 1


def beat(tx: Tx, node_id: str, *, lease_seconds: float = LEASE_SECONDS) -> float | None:
    """Extend the lease; return the time by the database. None: the node is gone.

    A lease that ran out may be extended while nobody has buried the node: nobody else has its work yet.
    """
    now = tx.dialect.now
    found = tx.value(
        f"""
        UPDATE nodes SET beat_at = {now}, lease_until = {now} + :lease
        WHERE id = :id AND (state = 'living' OR state = 'draining') RETURNING beat_at
        """,
        id=node_id,
        lease=lease_seconds,
    )
    return None if found is None else float(found)


def describe(tx: Tx, node_id: str, *, facts: str) -> None:
    """Replace what a node says of itself."""
    tx.run("UPDATE nodes SET facts = :facts WHERE id = :id", id=node_id, facts=facts)


def set_draining(tx: Tx, node_id: str, *, is_draining: bool) -> bool:
    """Take no more work, or take it again. False: the node is gone."""
    old, new = ("living", "draining") if is_draining else ("draining", "living")
    tx.run("UPDATE nodes SET state = :new WHERE id = :id AND state = :old", id=node_id, old=old, new=new)
    notify(tx, "node", node_id)
    return str(tx.value("SELECT state FROM nodes WHERE id = :id", id=node_id)) == new


def leave(tx: Tx, node_id: str) -> None:
    """Say goodbye: whatever the node still holds is free for the others at once."""
    tx.run("UPDATE nodes SET state = 'left' WHERE id = :id AND state <> 'gone'", id=node_id)
    notify(tx, "node", node_id)


def look(tx: Tx) -> ClusterView:
    """See the cluster as it is now."""
    nodes = tx.all(f"SELECT {_COLUMNS} FROM nodes WHERE state <> 'gone' ORDER BY started_at, id", NodeRow)
    needs = tx.value("SELECT value FROM meta WHERE key = 'min_reader'")
    return ClusterView(db_time(tx), tuple(nodes), duties.owners(tx), int(needs or 0))


def listed(tx: Tx) -> list[NodeRow]:
    """All nodes, those that are gone too, the newest first."""
    return tx.all(f"SELECT {_COLUMNS} FROM nodes ORDER BY started_at DESC, id", NodeRow)


def bury(tx: Tx, node_id: str) -> Buried | None:
    """Set a node to gone whose lease has run out or which said goodbye, and free all it held.

    Waits a moment for the node's writes under way. None: the node lives, or is gone already.
    """
    wait = ""
    if tx.dialect.name == "postgres":
        wait = "FOR UPDATE"
        tx.run("SELECT set_config('lock_timeout', :limit, true)", limit=f"{BURY_WAIT_MILLISECONDS}ms")
    node = tx.one(
        f"""
        SELECT {_COLUMNS} FROM nodes
        WHERE id = :id AND state <> 'gone' AND (state = 'left' OR lease_until <= {tx.dialect.now}) {wait}
        """,
        NodeRow,
        id=node_id,
    )
    if node is None:
        return None
    tx.run("UPDATE nodes SET state = 'gone' WHERE id = :id", id=node_id)
    lanes = claims.free_of(tx, "lanes", owner=node_id)
    targets = claims.free_of(tx, "targets", owner=node_id)
    freed = duties.free_of(tx, owner=node_id)
    notify(tx, "node", node_id)
    return Buried(node, lanes, targets, freed)


def end_sessions(tx: Tx, node_id: str) -> int:
    """Cut the connections of a node that is over but stands in the middle of a transaction; returns how many.

    PostgreSQL lets a role cut its own connections. A node that another role runs is waited for.
    """
    return tx.run(
        """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user AND application_name = :name
        """,
        name=application_name(node_id),
    )


def application_name(node_id: str) -> str:
    """How the connections of a node are called in ``pg_stat_activity``."""
    return f"hermes {node_id}"


def forget(tx: Tx, *, kept_seconds: float = KEPT_SECONDS) -> int:
    """Drop the rows of nodes that have been gone for long."""
    return tx.run(
        f"DELETE FROM nodes WHERE state = 'gone' AND beat_at < {tx.dialect.now} - :kept",
        kept=kept_seconds,
    )


def db_time(tx: Tx) -> float:
    return float(tx.value(f"SELECT {tx.dialect.now}"))
