"""Compress a session and take exchanges back; nothing is removed."""

from __future__ import annotations

import json
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Role
from hermes.store.db import Tx
from hermes.store.sessions import revisions, sessions, transcripts
from hermes.store.sessions.revisions import REVISION, UNDO, Revision
from hermes.store.sessions.transcripts import Context

TAKEN = "Taken back: everything from line {} to here."
TAKEN_BACK = "Taken back: the newest summary. The lines it stood for count again."


@dataclass(frozen=True, slots=True)
class Shorter:
    """A summary of the lines up to ``up_to``, made from a context as it was read."""

    basis: Context
    up_to: int
    summary: str
    model: str = ""


def compress(tx: Tx, session_id: str, shorter: Shorter, *, now: float) -> int:
    """Store a revision and return its number; 0, and nothing stored, when the session went another way meanwhile.

    That is: another revision was made or undone, or something was taken back. New lines at the end do no harm.
    """
    if not _hold(tx, session_id):
        return 0
    newest, active = revisions.newest(tx, session_id), revisions.active(tx, session_id)
    undone_since = tx.value(
        "SELECT 1 FROM transcript WHERE session_id = :id AND seq > :seq AND kind = 'undo' LIMIT 1",
        id=session_id,
        seq=shorter.basis.last_seq,
    )
    if (active.revision if active else 0) != shorter.basis.revision or undone_since is not None:
        return 0
    number = (newest.revision if newest else 0) + 1
    fields = {"revision": number, "up_to": shorter.up_to, "text": shorter.summary, "model": shorter.model}
    line = _append(tx, session_id, REVISION, fields, now)
    made = Revision(number, shorter.up_to, line, shorter.summary, shorter.model, now)
    revisions.put(tx, session_id, made)
    return number


@dataclass(frozen=True, slots=True)
class Undone:
    """What an undo took back: a revision, or so many exchanges of which ``text`` began the first. Or nothing."""

    revision: int = 0
    exchanges: int = 0
    text: str = ""
    is_busy: bool = False


NOTHING = Undone()


def undo(tx: Tx, session_id: str, *, count: int = 1, asked: str = "", now: float) -> Undone:
    """Take back the newest revision if nothing was said since, else the newest exchanges; once for each ``asked``.

    An exchange is a turn: what was said and all that came of it. While a turn is open nothing is taken back.
    """
    if not _hold(tx, session_id):
        return NOTHING
    if (repeated := _answer_to(tx, session_id, asked)) is not None:
        return repeated
    if sessions.is_busy(tx, session_id):
        return Undone(is_busy=True)
    active = revisions.active(tx, session_id)
    talk = transcripts.context(tx, session_id)
    if active is not None and not any(seq > active.line for seq in talk.seqs):
        _append(tx, session_id, UNDO, {"revision": active.revision, "text": TAKEN_BACK, "asked": asked}, now)
        tx.run(
            "UPDATE revisions SET undone_at = :now WHERE session_id = :id AND revision = :revision",
            id=session_id,
            revision=active.revision,
            now=now,
        )
        return Undone(revision=active.revision)
    return _take_back(tx, session_id, talk, count, asked, now)


def taken_back(tx: Tx, session_id: str) -> list[tuple[int, int]]:
    """Return the first line of each range that does not count any more, and the line that says so."""
    found = tx.all(
        "SELECT seq, body FROM transcript WHERE session_id = :id AND kind = 'undo' ORDER BY seq",
        lambda seq, body: (revisions.undone_from(str(body)), int(seq)),
        id=session_id,
    )
    return [(first, last) for first, last in found if first]


def newest_exchange(tx: Tx, session_id: str) -> tuple[str, str]:
    """The newest turn that counts and what was said to begin it; nothing of either where there is none."""
    talk = transcripts.context(tx, session_id)
    if not talk.seqs:
        return "", ""
    turn_of = _turns(tx, session_id, talk)
    turn_id = turn_of[talk.seqs[-1]]
    lines = zip(talk.seqs, talk.messages, strict=True)
    texts = (line.text for seq, line in lines if turn_of[seq] == turn_id and line.role is Role.USER)
    return turn_id, next(texts, "")


def take_back_exchange(tx: Tx, session_id: str, *, asked: str = "", now: float) -> Undone:
    """Take back the newest exchange, whatever was made shorter since."""
    if not _hold(tx, session_id):
        return NOTHING
    if sessions.is_busy(tx, session_id):
        return Undone(is_busy=True)
    return _take_back(tx, session_id, transcripts.context(tx, session_id), 1, asked, now)


def _take_back(tx: Tx, session_id: str, talk: Context, count: int, asked: str, now: float) -> Undone:
    turn_of = _turns(tx, session_id, talk)
    turns = list(dict.fromkeys(turn_of[seq] for seq in talk.seqs))[-count:]
    taken = [place for place, seq in enumerate(talk.seqs) if turn_of[seq] in turns]
    if not taken:
        return NOTHING
    first = talk.seqs[taken[0]]
    asking = (talk.messages[place] for place in taken)
    text = next((message.text for message in asking if message.role is Role.USER), "")[:200]
    fields = {"from": first, "exchanges": len(turns), "text": TAKEN.format(first), "said": text, "asked": asked}
    _append(tx, session_id, UNDO, fields, now)
    return Undone(exchanges=len(turns), text=text)


def _turns(tx: Tx, session_id: str, talk: Context) -> dict[int, str]:
    """The turn of every line of a context."""
    rows = tx.all(
        "SELECT seq, turn_id FROM transcript WHERE session_id = :id AND seq BETWEEN :first AND :last",
        lambda seq, turn_id: (int(seq), str(turn_id)),
        id=session_id,
        first=talk.seqs[0] if talk.seqs else 0,
        last=talk.seqs[-1] if talk.seqs else 0,
    )
    return dict(rows)


def _hold(tx: Tx, session_id: str) -> bool:
    """Lock the session's row by writing it. False when there is none."""
    return tx.run("UPDATE sessions SET seq = seq WHERE id = :id", id=session_id) == 1


def _answer_to(tx: Tx, session_id: str, asked: str) -> Undone | None:
    """What this very request did already, if a crash made it come again."""
    if not asked:
        return None
    last = tx.value(
        "SELECT body FROM transcript WHERE session_id = :id AND kind = 'undo' ORDER BY seq DESC LIMIT 1", id=session_id
    )
    fields = revisions.body_of(str(last)) if last else {}
    if fields.get("asked") != asked:
        return None
    return Undone(int(fields.get("revision", 0)), int(fields.get("exchanges", 0)), str(fields.get("said", "")))


def _append(tx: Tx, session_id: str, kind: str, fields: dict[str, Any], now: float) -> int:
    return transcripts.append_line(
        tx, session_id, kind, json.dumps({"role": kind, **fields}, ensure_ascii=False), now=now
    )
