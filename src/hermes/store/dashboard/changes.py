"""Read what changed lately, for those who follow the gateway live: ids and states, never content.

Rows are found by their time (each table has an index on it) and, while they are open, by their id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

MAX_ROWS = 500
"""Of each kind in one look. More than that is no list of changes, but a reason to read everything anew."""
MAX_OPEN = 200

OPEN = {
    "in": frozenset({"queued", "acting", "taken"}),
    "out": frozenset({"ready", "unknown", "parked"}),
    "turn": frozenset({"running", "waiting"}),
    "approval": frozenset({"pending"}),
    "session": frozenset[str](),
    "job": frozenset[str](),
}


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """``kind`` is one of ``OPEN``. ``place`` is the lane, the target or, of a job, its person; ``more`` a second id."""

    kind: str
    id: str
    place: str
    state: str
    more: str = ""
    person_id: str = ""
    """Whose turn or approval it is; of a session, whose turn is open in it."""


def look(tx: Tx, *, since: float, open_ids: Iterable[tuple[str, str]]) -> list[ChangedRow]:
    """Return the rows made or used since then, and those of ``open_ids`` (kind, id) as they stand now."""
    asked: dict[str, list[str]] = {kind: [] for kind in OPEN}
    for kind, name in open_ids:
        asked[kind].append(name)
    found: list[ChangedRow] = []
    for kind, sql, time_of in _TABLES:
        found += _rows(tx, kind, f"{sql} WHERE {time_of} >= :since ORDER BY {time_of} DESC LIMIT :limit", since=since)
        names = asked[kind][:MAX_OPEN]
        if names:
            places = ", ".join(f":n{number}" for number in range(len(names)))
            given = {f"n{number}": name for number, name in enumerate(names)}
            found += _rows(tx, kind, f"{sql} WHERE id IN ({places}) LIMIT :limit", **given)
    found += _rows(tx, "approval", f"{_APPROVALS} WHERE state = 'pending' LIMIT :limit")
    return found


_APPROVALS = "SELECT id, lane, state, turn_id, asked_of FROM approvals"
_SESSIONS = """
    SELECT id, key, CAST(updated_at AS TEXT), '', COALESCE((SELECT turns.person_id FROM lanes
        JOIN turns ON turns.id = lanes.turn_id WHERE lanes.key = sessions.key), '') FROM sessions
"""
_TABLES: Sequence[tuple[str, str, str]] = (
    ("in", "SELECT id, lane, state, platform, '' FROM inbox", "received_at"),
    ("out", "SELECT id, target, state, kind, '' FROM outbox", "created_at"),
    ("turn", "SELECT id, lane, state, session_id, person_id FROM turns", "created_at"),
    ("session", _SESSIONS, "updated_at"),
    ("job", "SELECT id, person_id, CAST(updated_at AS TEXT), state, '' FROM jobs", "updated_at"),
)


def _rows(tx: Tx, kind: str, sql: str, **given: object) -> list[ChangedRow]:
    return tx.all(
        sql,
        lambda *row: ChangedRow(kind, *(str(each) for each in row)),
        limit=MAX_ROWS,
        **given,
    )


def approvals_of(tx: Tx, names: Sequence[str]) -> list[ChangedRow]:
    """Return these approvals as they stand now."""
    given = {f"n{number}": name for number, name in enumerate(names[:MAX_OPEN])}
    if not given:
        return []
    places = ", ".join(f":{name}" for name in given)
    return _rows(tx, "approval", f"{_APPROVALS} WHERE id IN ({places}) LIMIT :limit", **given)


def pairings(tx: Tx) -> str:
    """Return a text that changes when somebody asks to be let in, or is decided about."""
    newest = tx.all(
        "SELECT COUNT(*), COALESCE(MAX(asked_at), 0), COALESCE(MAX(decided_at), 0) FROM pairings", lambda *row: row
    )
    return repr(newest)


@dataclass(frozen=True, slots=True)
class TaskChange:
    number: int
    task: int
    board: str
    kind: str
    made_by: str


def newest_task_event(tx: Tx) -> int:
    return int(tx.value("SELECT COALESCE(MAX(id), 0) FROM task_events"))


def task_events_after(tx: Tx, number: int) -> list[TaskChange]:
    """Return what happened on the boards after an event, the oldest first, with who made the task."""
    return tx.all(
        """
        SELECT task_events.id, task_events.task_id, task_events.board, task_events.kind, COALESCE(tasks.made_by, '')
        FROM task_events LEFT JOIN tasks ON tasks.id = task_events.task_id
        WHERE task_events.id > :after ORDER BY task_events.id LIMIT :limit
        """,
        TaskChange,
        after=number,
        limit=MAX_ROWS,
    )
