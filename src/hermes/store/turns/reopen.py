"""Let a turn that ended without an answer go on from its last step, when the same request is sent again."""

from __future__ import annotations

from hermes.store import claims, inbox
from hermes.store.db import Tx
from hermes.store.turns import turns
from hermes.store.turns.turns import TurnState

ENDED_EARLY = frozenset({TurnState.FAILED, TurnState.STOPPED, TurnState.INTERRUPTED})


def reopen(tx: Tx, event_id: str, *, now: float) -> bool:
    """Put the turn of an event back into its lane. False: nothing was done in it, or its session has gone on since.

    Its calls have results by now, also those that were cut off, so the model reads what was done instead of doing it
    again. A turn that was set aside because it killed its process stays so.
    """
    row = inbox.get(tx, event_id)
    turn = turns.get(tx, row.turn_id) if row is not None and row.turn_id else None
    if turn is None or turn.state not in ENDED_EARLY or not turn.steps:
        return False
    newest = tx.value(
        "SELECT turn_id FROM transcript WHERE session_id = :id AND kind = 'message' ORDER BY seq DESC LIMIT 1",
        id=turn.session_id,
    )
    if newest != turn.id or inbox.has_queued(tx, turn.lane):
        return False
    is_free = tx.run(
        """
        UPDATE lanes SET turn_id = :turn_id, token = token + 1
        WHERE key = :lane AND owner IS NULL AND turn_id = '' AND session_id = :session_id
        """,
        turn_id=turn.id,
        lane=turn.lane,
        session_id=turn.session_id,
    )
    if not is_free:
        return False
    tx.run("UPDATE turns SET state = 'running', attempts = 0, ended_at = NULL, reason = '' WHERE id = :id", id=turn.id)
    tx.run(
        "UPDATE inbox SET state = 'taken', reason = '', settled_at = NULL WHERE id = :id AND turn_id = :turn_id",
        id=event_id,
        turn_id=turn.id,
    )
    claims.wake(tx, "lanes", turn.lane, at=now)
    return True
