"""Store turns: one row each, from ``begin`` through ``steps`` to ``end``."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Usage
from hermes.store import inbox, people
from hermes.store.db import Tx
from hermes.store.people import Person

NO_USAGE = Usage()
NOBODY = Person("", "", "")


class TurnState(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"  # for an approval
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    SET_ASIDE = "set_aside"


@dataclass(frozen=True, slots=True)
class Turn:
    id: str
    lane: str
    session_id: str
    state: str
    person_id: str
    reply_to: str
    attempts: int
    steps: int
    created_at: float
    ended_at: float | None
    model: str
    prompt_tokens: int
    completion_tokens: int
    reason: str
    role: str = ""


COLUMNS = (
    "id, lane, session_id, state, person_id, reply_to, attempts, steps, created_at, ended_at, model, "
    "prompt_tokens, completion_tokens, reason, role"
)


def get(tx: Tx, turn_id: str) -> Turn | None:
    return tx.one(f"SELECT {COLUMNS} FROM turns WHERE id = :id", Turn, id=turn_id)


def of_lane(tx: Tx, lane: str) -> Turn | None:
    """The lane's open turn."""
    turn_id = tx.value("SELECT turn_id FROM lanes WHERE key = :lane", lane=lane)
    return get(tx, str(turn_id)) if turn_id else None


def insert(
    tx: Tx, turn_id: str, *, lane: str, session_id: str, person_id: str, reply_to: str, now: float, role: str = ""
) -> Turn:
    """A turn that runs from now on, and what ``get`` would read of it. ``role`` is the most that it may ever use."""
    tx.run(
        """
        INSERT INTO turns (id, lane, session_id, state, person_id, reply_to, attempts, created_at, role)
        VALUES (:id, :lane, :session_id, 'running', :person_id, :reply_to, 1, :now, :role)
        """,
        id=turn_id,
        lane=lane,
        session_id=session_id,
        person_id=person_id,
        reply_to=reply_to,
        now=now,
        role=role,
    )
    return Turn(turn_id, lane, session_id, TurnState.RUNNING, person_id, reply_to, 1, 0, now, None, "", 0, 0, "", role)


def person_of(tx: Tx, turn: Turn) -> Person:
    """Whom the turn belongs to; somebody unknown has no role: what its tools may touch depends on it."""
    return (people.get(tx, turn.person_id) if turn.person_id else None) or NOBODY


def languages_of(tx: Tx, turn_ids: Sequence[str]) -> dict[str, str]:
    """The language of the person of each of these turns, where it is known."""
    found = {}
    for turn_id in turn_ids:
        turn = get(tx, turn_id)
        if turn is not None and (language := person_of(tx, turn).language):
            found[turn_id] = language
    return found


@dataclass(frozen=True, slots=True)
class Working:
    """A turn that has not ended: whose lane, since when, and what it was begun with."""

    turn_id: str
    lane: str
    state: str
    since: float
    kind: str
    body: str


def working_for(tx: Tx, person_id: str) -> list[Working]:
    """What runs or waits for this person now, the oldest first."""
    found = tx.all(
        """
        SELECT turns.id, turns.lane, turns.state, turns.created_at
        FROM lanes JOIN turns ON turns.id = lanes.turn_id
        WHERE lanes.turn_id <> '' AND turns.person_id = :person ORDER BY turns.created_at
        """,
        lambda *row: row,
        person=person_id,
    )
    working = []
    for turn_id, lane, state, since in found:
        first = next(iter(inbox.of_turn(tx, turn_id)), None)
        working.append(Working(turn_id, lane, state, since, first.kind if first else "", first.body if first else ""))
    return working
