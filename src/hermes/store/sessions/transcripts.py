"""Store sessions and their transcripts: appended, never rewritten."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage
from hermes.core.roles import capped
from hermes.store import codec
from hermes.store.db import POSTGRES, SQLITE, Tx
from hermes.store.sessions import revisions

HISTORY_ROWS = 200
TURN_ROWS = 100
LAST_SEQ = 2**62
PAGE_ROWS = 20
MAX_JUMPS = 50


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    key: str
    title: str
    seq: int
    created_at: float
    updated_at: float
    ended_at: float | None
    end_reason: str
    heard: str = ""


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    seq: int
    turn_id: str
    kind: str
    body: str
    at: float


COLUMNS = "id, key, title, seq, created_at, updated_at, ended_at, end_reason, heard"


def get(tx: Tx, session_id: str) -> Session | None:
    return tx.one(f"SELECT {COLUMNS} FROM sessions WHERE id = :id", Session, id=session_id)


def start(
    tx: Tx, session_id: str, key: str, turn_id: str = "", messages: Sequence[ChatMessage] = (), *, now: float
) -> Context:
    """Begin a session with its first lines, which are all that counts of it. Whoever calls notes it in the lane."""
    tx.run(
        """
        INSERT INTO sessions (id, key, seq, created_at, updated_at) VALUES (:id, :key, :seq, :now, :now)
        ON CONFLICT (id) DO NOTHING
        """,
        id=session_id,
        key=key,
        seq=len(messages),
        now=now,
    )
    _add_lines(tx, session_id, turn_id, messages, 1, now)
    return Context(list(messages), list(range(1, len(messages) + 1)), last_seq=len(messages))


def of_lane(tx: Tx, key: str) -> str:
    """The id of the session that goes on under a key, or ''."""
    return str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")


def hear(tx: Tx, session_id: str, role: str) -> str:
    """Record a writer's role in a shared session; return the lowest role of all writers.

    For a session from before this record, the people of its turns count.
    """
    known = heard(tx, session_id)
    lowest = capped(role, *([known] if known else _roles_of_writers(tx, session_id)))
    if lowest != known:
        tx.run("UPDATE sessions SET heard = :heard WHERE id = :id", heard=lowest, id=session_id)
    return lowest


def _roles_of_writers(tx: Tx, session_id: str) -> list[str]:
    """Return the roles of the people who had turns in a session."""
    found = """
        SELECT DISTINCT people.role FROM turns JOIN people ON people.id = turns.person_id WHERE turns.session_id = :id
    """
    return tx.all(found, str, id=session_id)


def heard(tx: Tx, session_id: str) -> str:
    """Return the lowest role of those who wrote in a shared session, else ''."""
    return str(tx.value("SELECT heard FROM sessions WHERE id = :id", id=session_id) or "")


def end(tx: Tx, session_id: str, *, reason: str, now: float) -> None:
    tx.run(
        "UPDATE sessions SET ended_at = :now, end_reason = :reason WHERE id = :id AND ended_at IS NULL",
        id=session_id,
        reason=reason,
        now=now,
    )


def leave(tx: Tx, key: str, *, reason: str, now: float) -> str:
    """End the key's session, so that the next message starts a fresh one. Returns the id that ended."""
    session_id = str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")
    if session_id:
        end(tx, session_id, reason=reason, now=now)
        tx.run("UPDATE lanes SET session_id = '' WHERE key = :key", key=key)
    return session_id


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
    _add_lines(tx, session_id, turn_id, messages, last - len(messages) + 1, now)
    return last


def _add_lines(tx: Tx, session_id: str, turn_id: str, messages: Sequence[ChatMessage], first: int, now: float) -> None:
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


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions a list shows; an empty field does not matter. ``beginnings`` are of the key.

    ``own`` is how keys begin and end whose sessions a caller sees that does not see all; ``person_id`` adds the
    sessions that belong to this person alone.
    """

    key: str = ""
    beginnings: tuple[str, str] = ("", "")
    own: tuple[str, str] = ("", "")
    person_id: str = ""


def page(tx: Tx, wanted: SessionFilter, *, before: tuple[float, str], limit: int) -> list[Session]:
    """The newest that come after ``before`` (time of the last use, id) in a list that is newest first."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM sessions
        WHERE (updated_at < :at OR (updated_at = :at AND id < :id))
            AND (:key = '' OR key = :key)
            AND (:one = '' OR substr(key, 1, length(:one)) = :one OR substr(key, 1, length(:other)) = :other)
            AND (:ending = ''
                OR (substr(key, length(key) - length(:ending) + 1) = :ending AND substr(key, 1, length(:own)) = :own)
                OR (:person <> ''
                    AND EXISTS (SELECT 1 FROM turns WHERE session_id = sessions.id AND person_id = :person)
                    AND NOT EXISTS (SELECT 1 FROM turns WHERE session_id = sessions.id AND person_id <> :person)))
        ORDER BY updated_at DESC, id DESC LIMIT :limit
        """,
        Session,
        own=wanted.own[0],
        person=wanted.person_id,
        at=before[0],
        id=before[1],
        key=wanted.key,
        one=wanted.beginnings[0],
        other=wanted.beginnings[1],
        ending=wanted.own[1],
        limit=limit,
    )


def with_title(tx: Tx, words: Sequence[str], ending: str, *, limit: int) -> list[Session]:
    """The newest whose title holds every word, whatever their case; with ``ending`` only keys that end so."""
    given = {f"word{number}": word.lower() for number, word in enumerate(words)}
    held = " AND ".join(f"{tx.dialect.find}(lower(title), :{name}) > 0" for name in given) or "1 = 0"
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM sessions
        WHERE title <> '' AND {held} AND (:ending = '' OR substr(key, length(key) - length(:ending) + 1) = :ending)
        ORDER BY updated_at DESC, id DESC LIMIT :limit
        """,
        Session,
        ending=ending,
        limit=limit,
        **given,
    )


def fork(tx: Tx, source_id: str, session_id: str, key: str, *, title: str, up_to: int, now: float) -> int:
    """Copy a transcript up to a line into a new session under a key of its own, and say how many lines that was.

    The copy remembers the lowest role of those who wrote the original: another person may go on with it.
    """
    tx.run(
        """
        INSERT INTO sessions (id, key, title, created_at, updated_at, heard)
        VALUES (:id, :key, :title, :now, :now, :heard) ON CONFLICT (id) DO NOTHING
        """,
        id=session_id,
        key=key,
        title=title,
        now=now,
        heard=heard(tx, source_id) or capped(*(_roles_of_writers(tx, source_id) or [""])),
    )
    count = tx.run(
        """
        INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)
        SELECT CAST(:id AS TEXT), seq, turn_id, kind, body, at FROM transcript
        WHERE session_id = :source AND seq <= :up_to
        ON CONFLICT (session_id, seq) DO NOTHING
        """,
        id=session_id,
        source=source_id,
        up_to=up_to,
    )
    tx.run(
        """
        UPDATE sessions SET seq = COALESCE((SELECT MAX(seq) FROM transcript WHERE session_id = :id), 0) WHERE id = :id
        """,
        id=session_id,
    )
    revisions.make_again(tx, session_id)
    tx.run(
        "INSERT INTO lanes (key, session_id) VALUES (:key, :id) ON CONFLICT (key) DO NOTHING", key=key, id=session_id
    )
    return count


def newest(tx: Tx, *, key: str = "", limit: int = 50) -> list[Session]:
    where = "WHERE key = :key" if key else ""
    return tx.all(
        f"SELECT {COLUMNS} FROM sessions {where} ORDER BY updated_at DESC LIMIT :limit",
        Session,
        **({"key": key} if key else {}),
        limit=limit,
    )


def count(tx: Tx, *, key: str = "") -> int:
    """How many sessions there are, of one key or in all."""
    where = "WHERE key = :key" if key else ""
    return int(tx.value(f"SELECT COUNT(*) FROM sessions {where}", **({"key": key} if key else {})))


def rename(tx: Tx, session_id: str, title: str) -> bool:
    return tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=title, id=session_id) == 1


def delete(tx: Tx, session_id: str) -> bool:
    """Remove a session, its transcript and its list for good. A key that used it starts fresh."""
    tx.run("DELETE FROM transcript WHERE session_id = :id", id=session_id)
    tx.run("DELETE FROM todos WHERE session_id = :id", id=session_id)
    tx.run("DELETE FROM revisions WHERE session_id = :id", id=session_id)
    tx.run("UPDATE lanes SET session_id = '' WHERE session_id = :id", id=session_id)
    return tx.run("DELETE FROM sessions WHERE id = :id", id=session_id) == 1


def belongs_to(tx: Tx, session_id: str, person_id: str) -> bool:
    """Whether this person had turns in it and nobody else ever did. A shared talk belongs to nobody alone."""
    return bool(person_id) and sole_person(tx, session_id) == person_id


def sole_person(tx: Tx, session_id: str) -> str:
    """Return the person who had all turns of a session; '' for a shared talk, and for one without turns."""
    people = tx.all("SELECT DISTINCT person_id FROM turns WHERE session_id = :id LIMIT 2", str, id=session_id)
    return people[0] if len(people) == 1 else ""


def of_person(tx: Tx, person_id: str, *, limit: int) -> list[Session]:
    """The newest sessions that belong to this person alone, wherever they were had."""
    columns = ", ".join(f"sessions.{name}" for name in COLUMNS.split(", "))
    return tx.all(
        f"""
        SELECT DISTINCT {columns} FROM turns JOIN sessions ON sessions.id = turns.session_id
        WHERE turns.person_id = :person AND NOT EXISTS (
            SELECT 1 FROM turns AS other WHERE other.session_id = sessions.id AND other.person_id <> :person)
        ORDER BY sessions.updated_at DESC LIMIT :limit
        """,
        Session,
        person=person_id,
        limit=limit,
    )


def current(tx: Tx, key: str) -> Session | None:
    """The session that lives under this key now."""
    session_id = str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")
    return get(tx, session_id) if session_id else None


def switch(tx: Tx, key: str, session_id: str, *, now: float) -> None:
    """From now on this session lives under this key; the one before rests, and can be taken up again."""
    tx.run(
        """
        INSERT INTO lanes (key, session_id) VALUES (:key, :id)
        ON CONFLICT (key) DO UPDATE SET session_id = excluded.session_id
        """,
        key=key,
        id=session_id,
    )
    # Under two keys it would show the words of a private chat, which name no speaker, in a shared one.
    tx.run("UPDATE lanes SET session_id = '' WHERE session_id = :id AND key <> :key", id=session_id, key=key)
    # Touched, so that no reset policy ends at once what somebody has just taken up.
    tx.run(
        "UPDATE sessions SET key = :key, ended_at = NULL, end_reason = '', updated_at = :now WHERE id = :id",
        key=key,
        id=session_id,
        now=now,
    )


def is_busy(tx: Tx, session_id: str) -> bool:
    """Whether a turn is open in this session, running or waiting."""
    return tx.value("SELECT 1 FROM lanes WHERE session_id = :id AND turn_id <> '' LIMIT 1", id=session_id) is not None


def find(tx: Tx, name: str) -> list[Session]:
    """By id, by the beginning of an id, or by title; the newest first, a handful at most."""
    exact = get(tx, name)
    if exact is not None:
        return [exact]
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM sessions
        WHERE substr(id, 1, :length) = :name OR (title = :name AND title <> '') ORDER BY updated_at DESC LIMIT 10
        """,
        Session,
        name=name,
        length=len(name),
    )


def stale(tx: Tx, before: float) -> list[str]:
    """Sessions that have ended and were not touched since then."""
    return tx.all(
        "SELECT id FROM sessions WHERE ended_at IS NOT NULL AND updated_at < :before ORDER BY updated_at LIMIT 10000",
        str,
        before=before,
    )


def put_back(tx: Tx, session_id: str, session: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> int:
    """Add lines of a transcript file that the store lacks, remaking a lost session; a lane keeps its session."""
    known = get(tx, session_id)
    if known is None:
        if not lines or not session.get("key"):
            return 0
        _make_again(tx, session_id, session, lines)
    present = set(tx.all("SELECT seq FROM transcript WHERE session_id = :id", int, id=session_id))
    missing = [line for line in lines if line["seq"] not in present]
    for line in missing:
        body = line["body"]
        tx.run(
            """
            INSERT INTO transcript (session_id, seq, turn_id, kind, body, at)
            VALUES (:session_id, :seq, :turn_id, :kind, :body, :at)
            """,
            session_id=session_id,
            seq=line["seq"],
            turn_id=line.get("turn") or "",
            kind=line.get("kind") or "message",
            body=body if isinstance(body, str) else json.dumps(body, ensure_ascii=False),
            at=line["at"],
        )
    revisions.make_again(tx, session_id)
    if missing:
        tx.run(
            "UPDATE sessions SET seq = (SELECT MAX(seq) FROM transcript WHERE session_id = :id) WHERE id = :id",
            id=session_id,
        )
    return len(missing)


def _make_again(tx: Tx, session_id: str, session: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> None:
    tx.run(
        """
        INSERT INTO sessions (id, key, title, created_at, updated_at, ended_at, end_reason)
        VALUES (:id, :key, :title, :created_at, :updated_at, :ended_at, :end_reason)
        """,
        id=session_id,
        key=str(session["key"]),
        title=str(session.get("title") or ""),
        created_at=float(session.get("created_at") or lines[0]["at"]),
        updated_at=float(lines[-1]["at"]),
        ended_at=session.get("ended_at"),
        end_reason=str(session.get("end_reason") or ""),
    )
    if session.get("ended_at") is None:
        # The conversation goes on where it was, unless its lane has another session by now.
        tx.run(
            """
            INSERT INTO lanes (key, session_id) VALUES (:key, :id)
            ON CONFLICT (key) DO UPDATE SET session_id = excluded.session_id WHERE lanes.session_id = ''
            """,
            key=str(session["key"]),
            id=session_id,
        )
