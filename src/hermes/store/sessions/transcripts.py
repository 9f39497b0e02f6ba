"""Store the lines of sessions: appended, never rewritten, read as the context of a turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage
from hermes.store import codec
from hermes.store.db import POSTGRES, SQLITE, Tx
from hermes.store.sessions import revisions

HISTORY_ROWS = 200
TURN_ROWS = 100
LAST_SEQ = 2**62
PAGE_ROWS = 20
MAX_JUMPS = 50


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    seq: int
    turn_id: str
    kind: str
    body: str
    at: float


def append(tx: Tx, session_id: str, turn_id: str, messages: Sequence[ChatMessage], *, now: float) -> int:
    """Add lines, return the last seq; 0 for a session that was deleted meanwhile. A counter numbers the lines."""
    counted = tx.value(
        "UPDATE sessions SET seq = seq + :count, updated_at = :now WHERE id = :id RETURNING seq",
        count=len(messages),
        now=now,
        id=session_id,
    )
    if counted is None:
        return 0
    last = int(counted)
    add_lines(tx, session_id, turn_id, messages, last - len(messages) + 1, now)
    return last


def add_lines(tx: Tx, session_id: str, turn_id: str, messages: Sequence[ChatMessage], first: int, now: float) -> None:
    """Insert the lines under numbers from ``first`` on; the caller has counted them in the session."""
    for seq, message in enumerate(messages, first):
        tx.run(
            """
            INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)
            VALUES (:session_id, :seq, :turn_id, 'message', :body, :now)
            """,
            session_id=session_id,
            seq=seq,
            turn_id=turn_id,
            body=codec.dump(message),
            now=now,
        )


def append_line(tx: Tx, session_id: str, kind: str, body: str, *, now: float) -> int:
    """Add one line that is no message and return its seq. It is no use of the session: its age stays as it is."""
    seq = tx.value("UPDATE sessions SET seq = seq + 1 WHERE id = :id RETURNING seq", id=session_id)
    if seq is None:
        return 0
    tx.run(
        "INSERT INTO transcript (session_id, seq, turn_id, kind, body, at) VALUES (:id, :seq, '', :kind, :body, :now)",
        id=session_id,
        seq=int(seq),
        kind=kind,
        body=body,
        now=now,
    )
    return int(seq)


@dataclass(frozen=True, slots=True)
class Context:
    """The lines of a session that count, their ``seqs``, and the summary (``revision``) of those before them."""

    messages: list[ChatMessage]
    seqs: list[int]
    summary: str = ""
    revision: int = 0
    last_seq: int = 0


def history(tx: Tx, session_id: str, *, limit: int = HISTORY_ROWS) -> list[ChatMessage]:
    """The newest lines that count, oldest first. A bounded number, so that a long session costs no more."""
    return context(tx, session_id, limit=limit).messages


def context(tx: Tx, session_id: str, *, limit: int = HISTORY_ROWS) -> Context:
    """The newest lines that count, at most ``limit`` of them, with the newest revision's summary."""
    talk = _at_once(tx, session_id, limit)
    return talk if talk is not None else _line_by_line(tx, session_id, limit)


def _at_once(tx: Tx, session_id: str, limit: int) -> Context | None:
    """Read all lines as one row; None where one is an undo, or damaged."""
    found: tuple[str, str, str, int] | None
    found = tx.one(_JOINED[tx.dialect.name], lambda *row: row, id=session_id, before=LAST_SEQ, limit=limit)
    if found is None or found[1] != "message":
        return None
    seqs_text, _, bodies, revision = found
    try:
        seqs, messages = codec.load_numbers(seqs_text), codec.load_chats(bodies)
    except msgspec.DecodeError:
        return None
    if len(seqs) != len(messages) or seqs != sorted(seqs, reverse=True):
        return None
    summary = _summary(tx, session_id, revision) if revision else ""
    return Context(messages[::-1], seqs[::-1], summary, revision, seqs[0])


def _line_by_line(tx: Tx, session_id: str, limit: int) -> Context:
    """Read backwards, skipping what an undo hides and lines that cannot be read."""
    kept: list[_Row] = []
    before, last_seq, revision = LAST_SEQ, 0, 0
    for _ in range(MAX_JUMPS):
        rows: list[_Row] = tx.all(_PAGE, lambda *row: row, id=session_id, before=before, limit=limit)
        if not rows:
            break
        last_seq, revision = last_seq or rows[0][0], rows[0][3]
        before = _keep_what_counts(rows, before, kept)
        if len(rows) < limit or len(kept) >= limit:
            break
    summary = _summary(tx, session_id, revision) if revision else ""
    read = [(seq, codec.read_chat(body)) for seq, _, body, _ in reversed(kept[:limit])]
    messages = [message for _, message in read if message is not None]
    seqs = [seq for seq, message in read if message is not None]
    return Context(messages, seqs, summary, revision, last_seq)


_REVISION = "(SELECT COALESCE(MAX(revision), 0) FROM revisions WHERE session_id = :id AND undone_at IS NULL)"

_LINES = """
    FROM transcript
    WHERE session_id = :id AND seq < :before AND kind IN ('message', 'undo')
        AND seq > COALESCE((SELECT up_to FROM revisions WHERE session_id = :id AND undone_at IS NULL
            ORDER BY revision DESC LIMIT 1), 0)
    ORDER BY seq DESC LIMIT :limit
"""
"""Those behind the newest revision, newest first."""

_PAGE = f"SELECT seq, kind, body, {_REVISION} {_LINES}"

_JOINED = {
    dialect.name: f"""
    SELECT {dialect.join}(CAST(seq AS TEXT), ','), MAX(kind), {dialect.join}(body, ','), {_REVISION}
    FROM (SELECT seq, kind, body {_LINES}) AS newest
    """
    for dialect in (SQLITE, POSTGRES)
}
"""The same lines in one row: their numbers, their kind ('undo' if there is one, as it sorts last), and their bodies."""


_Row = tuple[int, str, str, int]
"""A line's seq, kind and body, and the number of the revision that counts. Plain, as some hundred pass with a turn."""


def _keep_what_counts(rows: Sequence[_Row], before: int, kept: list[_Row]) -> int:
    """Add the messages that no undo hides, and say before which line to read on."""
    if all(row[1] == "message" for row in rows):  # as in most talks
        kept.extend(rows)
        return rows[-1][0]
    for row in rows:
        seq, kind, body, _ = row
        if seq >= before:
            continue
        before = (revisions.undone_from(body) if kind == revisions.UNDO else 0) or seq
        if kind == "message":
            kept.append(row)
    return before


def _summary(tx: Tx, session_id: str, revision: int) -> str:
    found = tx.value(
        "SELECT summary FROM revisions WHERE session_id = :id AND revision = :revision",
        id=session_id,
        revision=revision,
    )
    return str(found or "")


def lines(tx: Tx, session_id: str, *, after: int = 0, limit: int = 1000) -> list[TranscriptLine]:
    return tx.all(
        """
        SELECT seq, turn_id, kind, body, at FROM transcript
        WHERE session_id = :id AND seq > :after ORDER BY seq LIMIT :limit
        """,
        TranscriptLine,
        id=session_id,
        after=after,
        limit=limit,
    )


def of_turn(tx: Tx, session_id: str, turn_id: str, *, since: float) -> list[TranscriptLine]:
    """The lines of one turn, in order. ``since`` is when it began: the session before that is not looked at."""
    found: list[TranscriptLine] = []
    for page in _backwards(tx, session_id, PAGE_ROWS):
        found += [line for line in page if line.turn_id == turn_id]
        if page[-1].at < since:
            break
    return found[::-1]


def lines_of_turn(tx: Tx, session_id: str, turn_id: str) -> list[TranscriptLine]:
    """What one turn added, oldest first. Looked for from the end, so the newest turns of a long session cost little."""
    found: list[TranscriptLine] = []
    for page in _backwards(tx, session_id, TURN_ROWS):
        found += [line for line in page if line.turn_id == turn_id]
        if found and page[-1].turn_id != turn_id:
            break
    return found[::-1]


def _backwards(tx: Tx, session_id: str, limit: int) -> Iterator[list[TranscriptLine]]:
    """The lines of a session from its end, a page at a time; none of the pages is empty."""
    before = LAST_SEQ
    while page := tx.all(
        """
        SELECT seq, turn_id, kind, body, at FROM transcript
        WHERE session_id = :id AND seq < :before ORDER BY seq DESC LIMIT :limit
        """,
        TranscriptLine,
        id=session_id,
        before=before,
        limit=limit,
    ):
        yield page
        if len(page) < limit:
            return
        before = page[-1].seq
