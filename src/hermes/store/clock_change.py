"""Shift stored times after the clock was set, or the machine was asleep.

What waits for a time then waits as long as before. Two things go by the calendar and stay: sessions that are renewed
after a quiet time, whose history is kept, and the codes of pairings, which are made from the time of the request.
"""

from __future__ import annotations

from hermes.store.db import Tx

LATE_SECONDS = 60.0
_IS_OPEN = "(state = 'ready' OR state = 'unknown' OR state = 'parked')"


def shift_forward(tx: Tx, *, by: float, now: float) -> None:
    """Move deadlines by the seconds that the clock went ahead. ``now`` is the time without the jump."""
    for table, column, where in (
        ("lanes", "next_at", ""),
        ("targets", "next_at", ""),
        ("inbox", "ready_at", "AND state = 'queued'"),
        ("outbox", "not_before", f"AND {_IS_OPEN}"),
        ("outbox", "expires_at", f"AND {_IS_OPEN}"),
        ("approvals", "expires_at", "AND state = 'pending'"),
        ("pairing_tries", "locked_until", ""),
    ):
        tx.run(f"UPDATE {table} SET {column} = {column} + :by WHERE {column} > :now {where}", by=by, now=now)


def shift_late_forward(tx: Tx, *, by: float, now: float) -> None:
    """Move deadlines of rows that were written, with the old time, during ``shift_forward``.

    They are recognized by their lifetime: a shifted row lives at least ``by`` seconds.
    """
    for table, where in (("outbox", _IS_OPEN), ("approvals", "state = 'pending'")):
        tx.run(
            f"""
            UPDATE {table} SET expires_at = expires_at + :by
            WHERE {where} AND created_at >= :now AND created_at < :until AND expires_at < created_at + :by
            """,
            by=by,
            now=now,
            until=now + LATE_SECONDS,
        )


def shift_back(tx: Tx, *, by: float, now: float) -> None:
    """Shift waiting times by the seconds that the clock went back. ``now`` is the time after the jump."""
    for table in ("lanes", "targets"):
        tx.run(f"UPDATE {table} SET next_at = next_at - :by WHERE next_at > :now", by=by, now=now)
    tx.run(
        """
        UPDATE inbox SET received_at = received_at - :by, ready_at = ready_at - :by
        WHERE state = 'queued' AND received_at > :now
        """,
        by=by,
        now=now,
    )
    tx.run(f"UPDATE outbox SET not_before = not_before - :by WHERE {_IS_OPEN} AND not_before > :now", by=by, now=now)
    tx.run(f"UPDATE outbox SET expires_at = expires_at - :by WHERE {_IS_OPEN} AND created_at > :now", by=by, now=now)
    tx.run(
        """
        UPDATE approvals SET expires_at = expires_at - :by, created_at = created_at - :by
        WHERE state = 'pending' AND created_at > :now
        """,
        by=by,
        now=now,
    )
