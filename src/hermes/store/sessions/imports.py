"""Import sessions once, recognise them again, remove them as one batch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.store import people
from hermes.store.db import Tx
from hermes.store.sessions import sessions

IMPORTED = "imported"
"""The reason of the one turn that says whose an imported session is."""


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """``exchange`` counts what was said: with it, one exchange after the other can be taken back."""

    exchange: int
    body: str
    at: float


@dataclass(frozen=True, slots=True)
class ImportedSession:
    """``id`` follows from where it came from, so that it is known again. ``is_current``: it goes on under its key.

    ``user_id`` is whose it is, on the key's platform; '' where it is nobody's alone.
    """

    id: str
    key: str
    title: str
    created_at: float
    user_id: str
    is_current: bool
    lines: Sequence[ImportedLine]


class ImportOutcome(StrEnum):
    NEW = "new"
    LONGER = "longer"  # it was here, and has more lines where it came from by now
    SAME = "same"
    OURS = "ours"  # it went on here since, so nothing is added to it


def bring_in(tx: Tx, session: ImportedSession, *, batch: str) -> tuple[ImportOutcome, int]:
    """Store a session, or what it has more than before. Says what became of it, and how many lines were added.

    A chat that is in a session of its own by now stays in it; the imported one can be taken up.
    """
    known = sessions.get(tx, session.id)
    if known is not None and known.seq >= len(session.lines):
        return ImportOutcome.SAME, 0
    if known is not None and is_used(tx, session.id):
        return ImportOutcome.OURS, 0
    if known is None:
        _begin(tx, session, batch)
    have = known.seq if known is not None else 0
    for seq, line in enumerate(session.lines[have:], have + 1):
        tx.run(
            """
            INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)
            VALUES (:id, :seq, :turn_id, 'message', :body, :at) ON CONFLICT (session_id, seq) DO NOTHING
            """,
            id=session.id,
            seq=seq,
            turn_id=f"t_{session.id}_{line.exchange}",
            body=line.body,
            at=line.at,
        )
    tx.run(
        "UPDATE sessions SET seq = :seq, updated_at = :at WHERE id = :id",
        id=session.id,
        seq=len(session.lines),
        at=session.lines[-1].at,
    )
    return ImportOutcome.NEW if known is None else ImportOutcome.LONGER, len(session.lines) - have


def _begin(tx: Tx, session: ImportedSession, batch: str) -> None:
    last = session.lines[-1].at
    tx.run(
        """
        INSERT INTO sessions (id, key, title, created_at, updated_at, ended_at, end_reason, batch)
        VALUES (:id, :key, :title, :created_at, :last, :ended_at, :end_reason, :batch)
        """,
        id=session.id,
        key=session.key,
        title=session.title,
        created_at=session.created_at,
        last=last,
        ended_at=None if session.is_current else last,
        end_reason="" if session.is_current else IMPORTED,
        batch=batch,
    )
    tx.run(
        """
        INSERT INTO turns (id, lane, session_id, state, person_id, created_at, ended_at, reason)
        VALUES (:id, :lane, :session_id, 'done', :person_id, :created_at, :last, :reason)
        ON CONFLICT (id) DO NOTHING
        """,
        id=f"t_{session.id}_1",
        lane=session.key,
        session_id=session.id,
        person_id=_person(tx, session),
        created_at=session.created_at,
        last=last,
        reason=IMPORTED,
    )
    if session.is_current:
        tx.run(
            """
            INSERT INTO lanes (key, session_id) VALUES (:key, :id)
            ON CONFLICT (key) DO UPDATE SET session_id = excluded.session_id WHERE lanes.session_id = ''
            """,
            key=session.key,
            id=session.id,
        )


def _person(tx: Tx, session: ImportedSession) -> str:
    """Who it is here; somebody who has not been met yet gets this id at the first meeting."""
    if not session.user_id:
        return ""
    platform = SessionKey.parse(session.key).platform
    known = people.find(tx, platform, session.user_id)
    return known.id if known is not None else people.first_id(platform, session.user_id)


def note_batch(tx: Tx, session_id: str, batch: str) -> None:
    """This session came with that import."""
    tx.run("UPDATE sessions SET batch = :batch WHERE id = :id", id=session_id, batch=batch)


def is_used(tx: Tx, session_id: str) -> bool:
    """Whether anything was said in it here."""
    used = tx.value(
        "SELECT 1 FROM turns WHERE session_id = :id AND reason <> :imported LIMIT 1", id=session_id, imported=IMPORTED
    )
    return used is not None


def remove(tx: Tx, batch: str, *, now: float) -> tuple[list[str], list[str]]:
    """Delete what came with one import and was not gone on with since. Returns what was deleted and what was kept."""
    from hermes.store.retention import deletion  # rarely needed

    found = tx.all("SELECT id FROM sessions WHERE batch = :batch AND batch <> '' ORDER BY id", str, batch=batch)
    kept = [session_id for session_id in found if is_used(tx, session_id)]
    gone = [session_id for session_id in found if session_id not in kept]
    for session_id in gone:
        deletion.delete(tx, session_id, now=now)
    return gone, kept
