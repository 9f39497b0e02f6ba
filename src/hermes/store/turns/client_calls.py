"""Remember which turn handed a call to its client, so that the turn's own steps are found when the result comes."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.messages import ToolCall
from hermes.store.db import Tx
from hermes.store.turns.turns import Turn


def note(tx: Tx, turn: Turn, calls: Sequence[ToolCall], *, now: float) -> None:
    """Note the calls that end a turn. Models count calls in their own ways: the newest turn has an id."""
    for call in calls:
        tx.run(
            """
            INSERT INTO dedupe (key, event_id, seen_at) VALUES (:key, :id, :now)
            ON CONFLICT (key) DO UPDATE SET event_id = excluded.event_id, seen_at = excluded.seen_at
            """,
            key=_key(turn.person_id, call.id),
            id=turn.id,
            now=now,
        )


def find_turn(tx: Tx, person_id: str, call_id: str) -> str:
    """The turn of this person that handed out a call, or ''."""
    return str(tx.value("SELECT event_id FROM dedupe WHERE key = :key", key=_key(person_id, call_id)) or "")


def _key(person_id: str, call_id: str) -> str:
    return f"call/{person_id}/{call_id}"
