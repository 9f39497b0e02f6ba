"""Read the state of all nodes: who lives, what each holds, what waits for whom."""

from __future__ import annotations

import json
from typing import Any

from hermes.store import migrate
from hermes.store.cluster import nodes
from hermes.store.cluster.nodes import NodeRow, NodeState
from hermes.store.db import Tx

SHOWN_GONE_SECONDS = 3600.0
"""A node that is gone is shown for so long."""


def report(tx: Tx) -> dict[str, Any]:
    """Return nodes with their leases and work, duties with their owners, and what waits, by the database's clock."""
    now = nodes.db_time(tx)
    lanes, targets = _held(tx, "lanes"), _held(tx, "targets")
    turns = _counted(tx, "SELECT owner, COUNT(*) FROM lanes WHERE owner IS NOT NULL AND turn_id <> '' GROUP BY owner")
    duties = tx.all("SELECT key, owner, since FROM duties ORDER BY key", lambda *row: row)
    found = [node for node in nodes.listed(tx) if _is_of_interest(node, now)]
    names = {node.id: node.name for node in found}
    return {
        "now": now,
        "schema_version": migrate.version(tx),
        "min_reader": int(tx.value("SELECT value FROM meta WHERE key = 'min_reader'") or 0),
        "nodes": [
            {
                "id": node.id,
                "name": node.name,
                "host": node.host,
                "pid": node.pid,
                "version": node.version,
                "schema_version": node.schema_version,
                "state": _state(node, now),
                "up_seconds": round(now - node.started_at, 1),
                "beat_age": round(now - node.beat_at, 1),
                "lease_left": round(node.lease_until - now, 1),
                "lanes": lanes.get(node.id, 0),
                "turns": turns.get(node.id, 0),
                "targets": targets.get(node.id, 0),
                "duties": [key for key, owner, _ in duties if owner == node.id],
                "facts": _facts(node.facts),
            }
            for node in found
        ],
        "duties": [
            {
                "key": key,
                "node": names.get(owner, "") if owner else "",
                "held_seconds": round(now - since, 1) if owner else 0.0,
            }
            for key, owner, since in duties
        ],
        "waiting": {
            "lanes": int(tx.value("SELECT COUNT(*) FROM lanes WHERE owner IS NULL AND next_at <= :now", now=now)),
            "targets": int(tx.value("SELECT COUNT(*) FROM targets WHERE owner IS NULL AND next_at <= :now", now=now)),
            "calls": int(tx.value("SELECT COUNT(*) FROM node_calls WHERE answered_at IS NULL")),
            "lag_seconds": _lag(tx, now),
        },
    }


def find(tx: Tx, word: str) -> list[NodeRow]:
    """The living nodes of this name, or whose id begins so."""
    living = [node for node in nodes.listed(tx) if node.state in (NodeState.LIVING, NodeState.DRAINING)]
    return [node for node in living if node.name == word] or [
        node for node in living if word and (node.id.startswith(word) or node.id.endswith(word))
    ]


def holds(tx: Tx, node_id: str) -> dict[str, int]:
    """Count what a node still has in hand."""
    return {
        "lanes": int(tx.value("SELECT COUNT(*) FROM lanes WHERE owner = :id", id=node_id)),
        "targets": int(tx.value("SELECT COUNT(*) FROM targets WHERE owner = :id", id=node_id)),
        "duties": int(tx.value("SELECT COUNT(*) FROM duties WHERE owner = :id", id=node_id)),
    }


def _is_of_interest(node: NodeRow, now: float) -> bool:
    return node.state not in (NodeState.GONE, NodeState.LEFT) or now - node.beat_at < SHOWN_GONE_SECONDS


def _state(node: NodeRow, now: float) -> str:
    if node.state in (NodeState.LIVING, NodeState.DRAINING) and node.lease_until <= now:
        return "silent"  # its lease has run out; another node sets it to gone in a moment
    return node.state


def _facts(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _held(tx: Tx, table: str) -> dict[str, int]:
    return _counted(tx, f"SELECT owner, COUNT(*) FROM {table} WHERE owner IS NOT NULL GROUP BY owner")


def _counted(tx: Tx, sql: str) -> dict[str, int]:
    return {str(owner): int(number) for owner, number in tx.all(sql, lambda *row: row)}


def _lag(tx: Tx, now: float) -> float:
    """For how long the oldest free lane with work has waited. A lane that a dead node left is due since 0."""
    oldest = tx.value("SELECT MIN(next_at) FROM lanes WHERE owner IS NULL AND next_at > 0 AND next_at <= :now", now=now)
    return round(now - float(oldest), 1) if oldest is not None else 0.0
