"""Store what a turn has shown so far, for clients that watch the turn from another node."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.store.cluster.notifications import notify
from hermes.store.db import Tx

KEPT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class LaneOwner:
    """Which node serves a lane (None: nobody), and the lane's open turn ('': none)."""

    lane: str
    owner: str | None
    turn_id: str


@dataclass(frozen=True, slots=True)
class StoredProgress:
    """``events`` is JSON; ``seq`` grows with every change."""

    turn_id: str
    seq: int
    events: str


def save(tx: Tx, progress: StoredProgress) -> None:
    """Store how far a turn has come, and wake those who watch."""
    tx.run(
        f"""
        INSERT INTO turn_progress (turn_id, seq, events, updated_at) VALUES (:turn_id, :seq, :events, {tx.dialect.now})
        ON CONFLICT (turn_id) DO UPDATE SET seq = excluded.seq, events = excluded.events, updated_at = {tx.dialect.now}
        """,
        turn_id=progress.turn_id,
        seq=progress.seq,
        events=progress.events,
    )
    notify(tx, "turn", progress.turn_id)


def of_turns(tx: Tx, turn_ids: Sequence[str]) -> dict[str, StoredProgress]:
    if not turn_ids:
        return {}
    marks = ", ".join(f":t{number}" for number in range(len(turn_ids)))
    found = tx.all(
        f"SELECT turn_id, seq, events FROM turn_progress WHERE turn_id IN ({marks})",
        StoredProgress,
        **{f"t{number}": turn_id for number, turn_id in enumerate(turn_ids)},
    )
    return {progress.turn_id: progress for progress in found}


def owners_of(tx: Tx, lanes: Sequence[str]) -> list[LaneOwner]:
    if not lanes:
        return []
    marks = ", ".join(f":l{number}" for number in range(len(lanes)))
    return tx.all(
        f"SELECT key, owner, turn_id FROM lanes WHERE key IN ({marks})",
        LaneOwner,
        **{f"l{number}": lane for number, lane in enumerate(lanes)},
    )


def ended_turns(tx: Tx, event_ids: Sequence[str]) -> list[tuple[str, str]]:
    """Lane and turn of those of these events that are settled."""
    if not event_ids:
        return []
    marks = ", ".join(f":e{number}" for number in range(len(event_ids)))
    return tx.all(
        f"""
        SELECT lane, turn_id FROM inbox
        WHERE id IN ({marks}) AND turn_id <> '' AND state <> 'queued' AND state <> 'acting' AND state <> 'taken'
        """,
        lambda *row: row,
        **{f"e{number}": event_id for number, event_id in enumerate(event_ids)},
    )


def forget_old(tx: Tx) -> int:
    return tx.run(
        f"DELETE FROM turn_progress WHERE updated_at < {tx.dialect.now} - :kept",
        kept=KEPT_SECONDS,
    )
