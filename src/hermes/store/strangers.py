"""Forget what refused strangers left behind: their events, and what they were told."""

from __future__ import annotations

from hermes.store.db import Tx

NOTICE = "ob_stranger"
"""How the ids of rows begin that tell a stranger how to be let in; the index ``outbox_strangers`` knows it too."""

BITE = 1000


def forget(tx: Tx, *, before: float) -> int:
    """Drop refused events and notices to strangers that are older, a bounded bite at a time.

    The target of such a notice goes too, where nothing was sent to it since and nothing waits.
    """
    events = tx.run(
        """
        DELETE FROM inbox WHERE id IN (
            SELECT id FROM inbox WHERE state = 'refused' AND received_at < :before LIMIT :bite)
        """,
        before=before,
        bite=BITE,
    )
    told: list[tuple[str, str, int]] = tx.all(
        """
        SELECT id, target, seq FROM outbox
        WHERE substr(id, 1, 12) = 'ob_stranger_' AND created_at < :before AND settled_at IS NOT NULL
        ORDER BY created_at LIMIT :bite
        """,
        lambda *row: row,
        before=before,
        bite=BITE,
    )
    for row_id, target, seq in told:
        tx.run("DELETE FROM outbox WHERE id = :id", id=row_id)
        tx.run(
            """
            DELETE FROM targets WHERE key = :target AND owner IS NULL AND next_at IS NULL AND seq <= :seq
                AND NOT EXISTS (
                    SELECT 1 FROM outbox WHERE outbox.target = :target
                        AND (state = 'ready' OR state = 'unknown' OR state = 'parked'))
            """,
            target=target,
            seq=seq,
        )
    return events + len(told)
