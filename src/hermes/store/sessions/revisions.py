"""Store revisions: summaries that stand for a session's first lines.

The lines themselves stay. Each revision and each undo is a line of the transcript too, so that the JSONL file tells
of them and these rows can be made again from the lines alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.store.db import Tx

REVISION = "revision"
UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Revision:
    """``summary`` stands for every line up to ``up_to``; ``line`` is the line of the transcript that tells of it."""

    revision: int
    up_to: int
    line: int
    summary: str
    model: str
    created_at: float
    undone_at: float | None = None


COLUMNS = "revision, up_to, line, summary, model, created_at, undone_at"


def active(tx: Tx, session_id: str) -> Revision | None:
    """The newest one that was not undone: it counts."""
    return tx.one(
        f"""
        SELECT {COLUMNS} FROM revisions
        WHERE session_id = :id AND undone_at IS NULL ORDER BY revision DESC LIMIT 1
        """,
        Revision,
        id=session_id,
    )


def newest(tx: Tx, session_id: str) -> Revision | None:
    """The newest one, undone or not."""
    return tx.one(
        f"SELECT {COLUMNS} FROM revisions WHERE session_id = :id ORDER BY revision DESC LIMIT 1",
        Revision,
        id=session_id,
    )


def put(tx: Tx, session_id: str, revision: Revision) -> None:
    tx.run(
        f"""
        INSERT INTO revisions (session_id, {COLUMNS})
        VALUES (:id, :revision, :up_to, :line, :summary, :model, :created_at, :undone_at)
        ON CONFLICT (session_id, revision) DO UPDATE SET undone_at = excluded.undone_at
        """,
        id=session_id,
        **asdict(revision),
    )


def revisions_of(lines: Iterable[tuple[int, str, str, float]]) -> list[Revision]:
    """The revisions that these lines (seq, kind, body, at) tell of. A line that cannot be read is passed over."""
    found: dict[int, Revision] = {}
    for seq, kind, body, at in lines:
        fields = body_of(body)
        number = fields.get(REVISION)
        if kind == REVISION and isinstance(number, int) and isinstance(fields.get("up_to"), int):
            summary, model = str(fields.get("text", "")), str(fields.get("model", ""))
            found[number] = Revision(number, fields["up_to"], seq, summary, model, at)
        elif kind == UNDO and isinstance(number, int) and number in found:
            found[number] = replace(found[number], undone_at=at)
    return list(found.values())


def make_again(tx: Tx, session_id: str) -> None:
    """Write the rows that the session's lines tell of."""
    lines = tx.all(
        """
        SELECT seq, kind, body, at FROM transcript
        WHERE session_id = :id AND kind IN ('revision', 'undo') ORDER BY seq
        """,
        lambda seq, kind, body, at: (int(seq), str(kind), str(body), float(at)),
        id=session_id,
    )
    for revision in revisions_of(lines):
        put(tx, session_id, revision)


def body_of(body: str) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def undone_from(body: str) -> int:
    """The first line that an undo took back; 0 where it took back none."""
    first = body_of(body).get("from")
    return first if isinstance(first, int) else 0
