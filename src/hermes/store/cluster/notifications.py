"""Wake other nodes by a notification: a kind and an id, never content."""

from __future__ import annotations

from typing import Literal

from hermes.store.db import Tx

Kind = Literal["lane", "target", "call", "answer", "turn", "node", "duty", "pairing"]
CHANNEL = "hermes"
MAX_ID_BYTES = 7000  # PostgreSQL refuses a payload of 8,000 bytes


def notify(tx: Tx, kind: Kind, key: str) -> None:
    """Tell the nodes of this schema, after the commit, that ``key`` has news. SQLite has one node: nothing to do.

    A key too long for a payload is left to the slow poll.
    """
    if tx.dialect.name == "postgres" and len(key.encode()) <= MAX_ID_BYTES:
        tx.run(
            "SELECT pg_notify(:channel || '.' || current_schema(), :payload)", channel=CHANNEL, payload=f"{kind} {key}"
        )


def parse(payload: str) -> tuple[str, str]:
    """Return kind and key of a notification."""
    kind, _, key = payload.partition(" ")
    return kind, key
