"""Store what one node asks of another, and the answers. Times are the database's."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.store.cluster.notifications import notify
from hermes.store.db import Tx

KEPT_SECONDS = 120.0
"""How long a call stays, answered or not: longer than any caller waits."""


@dataclass(frozen=True, slots=True)
class NodeCall:
    """``body`` is JSON."""

    id: str
    node: str
    asked_by: str
    verb: str
    body: str


def ask(tx: Tx, call: NodeCall) -> bool:
    """Store a call and wake the node that it is for. False, and nothing stored, where that node is gone."""
    stored = tx.run(
        f"""
        INSERT INTO node_calls (id, node, asked_by, verb, body, asked_at)
        SELECT :id, :node, :asked_by, :verb, :body, {tx.dialect.now}
        WHERE EXISTS (SELECT 1 FROM nodes WHERE id = :node AND state <> 'gone' AND state <> 'left')
        """,
        id=call.id,
        node=call.node,
        asked_by=call.asked_by,
        verb=call.verb,
        body=call.body,
    )
    if stored:
        notify(tx, "call", call.node)
    return stored == 1


def waiting(tx: Tx, node: str, limit: int = 100) -> list[NodeCall]:
    """List the calls that a node has not answered, the oldest first, but none that nobody waits for any more."""
    return tx.all(
        f"""
        SELECT id, node, asked_by, verb, body FROM node_calls
        WHERE node = :node AND answered_at IS NULL AND asked_at > {tx.dialect.now} - :kept
        ORDER BY asked_at, id LIMIT :limit
        """,
        NodeCall,
        node=node,
        kept=KEPT_SECONDS,
        limit=limit,
    )


def answer(tx: Tx, call_id: str, text: str) -> bool:
    """Store an answer, once, and wake the node that asked."""
    answered = tx.run(
        f"UPDATE node_calls SET answer = :text, answered_at = {tx.dialect.now} WHERE id = :id AND answered_at IS NULL",
        id=call_id,
        text=text,
    )
    if answered:
        notify(tx, "answer", call_id)
    return answered == 1


def answer_to(tx: Tx, call_id: str) -> tuple[str | None, bool]:
    """Return the answer, or None, and whether the node that was asked still lives."""
    found: tuple[str | None, int] | None = tx.one(
        f"""
        SELECT node_calls.answer, (SELECT COUNT(*) FROM nodes
            WHERE nodes.id = node_calls.node AND nodes.state <> 'gone' AND nodes.state <> 'left'
            AND nodes.lease_until > {tx.dialect.now})
        FROM node_calls WHERE node_calls.id = :id
        """,
        lambda *row: row,
        id=call_id,
    )
    return (found[0], bool(found[1])) if found is not None else (None, False)


def forget(tx: Tx, call_id: str) -> None:
    """Drop a call that nobody waits for any more."""
    tx.run("DELETE FROM node_calls WHERE id = :id", id=call_id)


def forget_old(tx: Tx) -> int:
    """Drop calls whose caller died while it waited."""
    return tx.run(
        f"DELETE FROM node_calls WHERE asked_at < {tx.dialect.now} - :kept",
        kept=KEPT_SECONDS,
    )
