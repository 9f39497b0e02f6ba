"""Store to-do lists: one for each session, replaced as a whole."""

from __future__ import annotations

from hermes.store.db import Tx


def get(tx: Tx, session_id: str) -> str:
    """The list as JSON; '' when there is none."""
    return str(tx.value("SELECT items FROM todos WHERE session_id = :id", id=session_id) or "")


def put(tx: Tx, session_id: str, items: str, *, now: float) -> None:
    tx.run(
        """
        INSERT INTO todos (session_id, items, updated_at) VALUES (:id, :items, :now)
        ON CONFLICT (session_id) DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at
        """,
        id=session_id,
        items=items,
        now=now,
    )
