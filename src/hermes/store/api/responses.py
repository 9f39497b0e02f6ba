"""Store responses and conversations: put once, finished once, then evicted."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.store.db import Database, OnTrouble, StoreLimits, Tx
from hermes.store.open import open_beside

log = logging.getLogger(__name__)

FILE = "response_store.db"
MIGRATIONS = "hermes.store.response_migrations"
FAMILY = "responses"
"""On PostgreSQL these tables live beside the others and count their migrations under this name."""

OPEN = frozenset({"queued", "in_progress"})
BITE = 500

MAX_RESPONSES = 10_000
LIVE_SECONDS = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class NewResponse:
    """A response that was asked for. ``inputs`` says how many of its request's messages are its own input.

    ``standing`` are the system words that its chain has heard so far; ``conversation`` is '' or a name.
    """

    id: str
    event_id: str
    session_id: str
    asked_by: str
    body: dict[str, Any]
    inputs: int
    standing: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class StoredResponse:
    id: str
    event_id: str
    session_id: str
    asked_by: str
    status: str
    inputs: int
    standing: str
    body: dict[str, Any]

    @property
    def is_open(self) -> bool:
        return self.status in OPEN


@dataclass(frozen=True, slots=True)
class Damaged:
    """A row whose body is no response any more."""

    id: str
    reason: str


COLUMNS = "id, event_id, session_id, asked_by, status, inputs, standing, body"


# Opening


def open_store(
    main: Database, home: Path, *, on_trouble: OnTrouble | None = None, limits: StoreLimits | None = None
) -> AbstractAsyncContextManager[Database]:
    """The database that holds the responses: a file of its own, or, on PostgreSQL, the one that is open already."""
    return open_beside(main, home / FILE, migrations=MIGRATIONS, family=FAMILY, on_trouble=on_trouble, limits=limits)


# Writing


def put(tx: Tx, new: NewResponse, *, now: float) -> None:
    """Store a response and make it the newest of its conversation. Repeating it changes nothing."""
    tx.run(
        """
        INSERT INTO responses (id, event_id, session_id, asked_by, status, inputs, standing, body, created_at)
        VALUES (:id, :event_id, :session_id, :asked_by, :status, :inputs, :standing, :body, :now)
        ON CONFLICT (id) DO NOTHING
        """,
        id=new.id,
        event_id=new.event_id,
        session_id=new.session_id,
        asked_by=new.asked_by,
        status=str(new.body["status"]),
        inputs=new.inputs,
        standing=new.standing,
        body=_dumped(new.body),
        now=now,
    )
    if new.conversation:
        tx.run(
            """
            INSERT INTO conversations (asked_by, name, response_id) VALUES (:asked_by, :name, :id)
            ON CONFLICT (asked_by, name) DO UPDATE SET response_id = excluded.response_id
            """,
            asked_by=new.asked_by,
            name=new.conversation,
            id=new.id,
        )


def finish(tx: Tx, body: dict[str, Any], *, now: float) -> bool:
    """Give a response its final state. False when it has one already, or is gone: the first word counts."""
    changed = tx.run(
        """
        UPDATE responses SET status = :status, body = :body, ended_at = :now
        WHERE id = :id AND status IN ('queued', 'in_progress')
        """,
        id=str(body["id"]),
        status=str(body["status"]),
        body=_dumped(body),
        now=now,
    )
    return changed == 1


def delete(tx: Tx, response_id: str) -> bool:
    """Remove a response and the conversation it is the newest of."""
    return tx.run("DELETE FROM responses WHERE id = :id", id=response_id) == 1


def delete_session(tx: Tx, session_id: str, asked_by: str = "") -> bool:
    """Remove the responses of a session, and the conversations they are of. Returns whether there were any.

    ``asked_by``: only those of this key. Clients choose the names of their sessions, so two keys may use the same name.
    """
    own = "session_id = :id AND responses.asked_by = :asked_by" if asked_by else "session_id = :id"
    given = {"id": session_id, **({"asked_by": asked_by} if asked_by else {})}
    named = f"SELECT 1 FROM responses WHERE responses.id = conversations.response_id AND {own}"
    tx.run(
        f"""
        DELETE FROM conversation_objects WHERE EXISTS (
            SELECT 1 FROM conversations WHERE conversations.asked_by = conversation_objects.asked_by
                AND conversations.name = conversation_objects.name AND EXISTS ({named}))
        """,
        **given,
    )
    return tx.run(f"DELETE FROM responses WHERE {own}", **given) > 0


def evict(tx: Tx, *, most: int = MAX_RESPONSES, before: float = 0.0, bite: int = BITE) -> int:
    """Delete what is older than ``before``, and the oldest ended beyond ``most``; a bounded number at a time."""
    old = tx.run(
        """
        DELETE FROM responses WHERE id IN (
            SELECT id FROM responses WHERE created_at < :before ORDER BY created_at LIMIT :bite)
        """,
        before=before,
        bite=bite,
    )
    too_many = tx.run(
        """
        DELETE FROM responses WHERE status NOT IN ('queued', 'in_progress') AND id IN (
            SELECT id FROM responses ORDER BY created_at DESC, id DESC LIMIT :bite OFFSET :most)
        """,
        most=most,
        bite=bite,
    )
    return old + too_many


# Reading


def get(tx: Tx, response_id: str) -> StoredResponse | Damaged | None:
    return tx.one(f"SELECT {COLUMNS} FROM responses WHERE id = :id", _read, id=response_id)


def newest_of(tx: Tx, asked_by: str, conversation: str) -> str:
    """The newest response of a conversation, or ''."""
    sql = "SELECT response_id FROM conversations WHERE asked_by = :asked_by AND name = :name"
    return str(tx.value(sql, asked_by=asked_by, name=conversation) or "")


def open_ones(tx: Tx, *, limit: int = 1000) -> list[str]:
    """The event ids of responses without a final state, oldest first."""
    return tx.all(
        "SELECT event_id FROM responses WHERE status IN ('queued', 'in_progress') ORDER BY created_at LIMIT :limit",
        str,
        limit=limit,
    )


def open_of(tx: Tx, event_id: str) -> list[str]:
    """The ids of responses of this event without a final state: a turn that asked questions answers several."""
    return tx.all(
        "SELECT id FROM responses WHERE status IN ('queued', 'in_progress') AND event_id = :event_id ORDER BY id",
        str,
        event_id=event_id,
    )


def note(tx: Tx, body: dict[str, Any]) -> bool:
    """Keep what an open response has told so far."""
    changed = tx.run(
        "UPDATE responses SET body = :body WHERE id = :id AND status IN ('queued', 'in_progress')",
        id=str(body["id"]),
        body=_dumped(body),
    )
    return changed == 1


def reopen(tx: Tx, response_id: str) -> bool:
    """Let a response go on that failed or was cancelled, since its turn does."""
    return (
        tx.run(
            """
            UPDATE responses SET status = 'in_progress', ended_at = NULL
            WHERE id = :id AND status IN ('failed', 'cancelled', 'incomplete')
            """,
            id=response_id,
        )
        == 1
    )


def count(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM responses"))


async def load(db: Database, response_id: str) -> StoredResponse | None:
    """Read a response. One whose body is damaged is removed with its conversation, with a warning, and is None."""
    found = await db.read(get, response_id)
    if isinstance(found, Damaged):
        log.warning("Response cannot be read; removed", extra={"response": found.id, "reason": found.reason})
        await db.write(delete, found.id)
        return None
    return found


def _dumped(body: dict[str, Any]) -> str:
    return orjson.dumps(body).decode()


def _read(
    id: str,
    event_id: str,
    session_id: str,
    asked_by: str,
    status: str,
    inputs: int,
    standing: str,
    text: str,
) -> StoredResponse | Damaged:
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return Damaged(id, str(error))
    if not isinstance(body, dict) or body.get("id") != id:
        return Damaged(id, "it is not a response object")
    return StoredResponse(id, event_id, session_id, asked_by, status, inputs, standing, body)
