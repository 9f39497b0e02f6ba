"""Shift stored times after the clock was set back."""

from __future__ import annotations

from hermes.store.db import Tx


def shift_times(tx: Tx, *, by: float, now: float) -> None:
    """Shift waiting times by the seconds that the clock went back."""
    for table in ("lanes", "targets"):
        tx.run(f"UPDATE {table} SET next_at = next_at - :by WHERE next_at > :now", by=by, now=now)  # noqa: S608
    tx.run(
        """
        UPDATE inbox SET received_at = received_at - :by, ready_at = ready_at - :by
        WHERE state = 'queued' AND received_at > :now
        """,
        by=by,
        now=now,
    )
    is_open = "(state = 'ready' OR state = 'unknown' OR state = 'parked')"
    tx.run(f"UPDATE outbox SET not_before = not_before - :by WHERE {is_open} AND not_before > :now", by=by, now=now)  # noqa: S608
    tx.run(f"UPDATE outbox SET expires_at = expires_at - :by WHERE {is_open} AND created_at > :now", by=by, now=now)  # noqa: S608
    tx.run(
        """
        UPDATE approvals SET expires_at = expires_at - :by, created_at = created_at - :by
        WHERE state = 'pending' AND created_at > :now
        """,
        by=by,
        now=now,
    )
