"""Store sessions: which one lives under a key, whose it is, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage
from hermes.core.roles import capped
from hermes.store.db import Tx
from hermes.store.sessions import revisions, transcripts
from hermes.store.sessions.transcripts import Context


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


COLUMNS = "id, key, title, seq, created_at, updated_at, ended_at, end_reason, heard"


def get(tx: Tx, session_id: str) -> Session | None:
    return tx.one(f"SELECT {COLUMNS} FROM sessions WHERE id = :id", Session, id=session_id)


def current(tx: Tx, key: str) -> Session | None:
    """The session that lives under this key now."""
    session_id = str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")
    return get(tx, session_id) if session_id else None


def of_lane(tx: Tx, key: str) -> str:
    """The id of the session that goes on under a key, or ''."""
    return str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")


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
    transcripts.add_lines(tx, session_id, turn_id, messages, 1, now)
    return Context(list(messages), list(range(1, len(messages) + 1)), last_seq=len(messages))


def leave(tx: Tx, key: str, *, reason: str, now: float) -> str:
    """End the key's session, so that the next message starts a fresh one. Returns the id that ended."""
    session_id = str(tx.value("SELECT session_id FROM lanes WHERE key = :key", key=key) or "")
    if session_id:
        end(tx, session_id, reason=reason, now=now)
        tx.run("UPDATE lanes SET session_id = '' WHERE key = :key", key=key)
    return session_id


def end(tx: Tx, session_id: str, *, reason: str, now: float) -> None:
    tx.run(
        "UPDATE sessions SET ended_at = :now, end_reason = :reason WHERE id = :id AND ended_at IS NULL",
        id=session_id,
        reason=reason,
        now=now,
    )


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


def hear(tx: Tx, session_id: str, role: str) -> str:
    """Record a writer's role in a shared session; return the lowest role of all writers.

    For a session from before this record, the people of its turns count.
    """
    known = heard(tx, session_id)
    lowest = capped(role, *([known] if known else _roles_of_writers(tx, session_id)))
    if lowest != known:
        tx.run("UPDATE sessions SET heard = :heard WHERE id = :id", heard=lowest, id=session_id)
    return lowest


def heard(tx: Tx, session_id: str) -> str:
    """Return the lowest role of those who wrote in a shared session, else ''."""
    return str(tx.value("SELECT heard FROM sessions WHERE id = :id", id=session_id) or "")


def _roles_of_writers(tx: Tx, session_id: str) -> list[str]:
    """Return the roles of the people who had turns in a session."""
    found = """
        SELECT DISTINCT people.role FROM turns JOIN people ON people.id = turns.person_id WHERE turns.session_id = :id
    """
    return tx.all(found, str, id=session_id)


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


def rename(tx: Tx, session_id: str, title: str) -> bool:
    return tx.run("UPDATE sessions SET title = :title WHERE id = :id", title=title, id=session_id) == 1


def delete(tx: Tx, session_id: str) -> bool:
    """Remove a session, its transcript and its list for good. A key that used it starts fresh."""
    tx.run("DELETE FROM transcript WHERE session_id = :id", id=session_id)
    tx.run("DELETE FROM todos WHERE session_id = :id", id=session_id)
    tx.run("DELETE FROM revisions WHERE session_id = :id", id=session_id)
    tx.run("UPDATE lanes SET session_id = '' WHERE session_id = :id", id=session_id)
    return tx.run("DELETE FROM sessions WHERE id = :id", id=session_id) == 1


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
