"""What the transcript says of a chain of responses: where it ends, and how it stood when one of them had ended."""

from __future__ import annotations

from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage
from hermes.servers.api.transcripts import newest_lines
from hermes.store import codec, inbox
from hermes.store.api.responses import StoredResponse
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow
from hermes.store.sessions import transcripts


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a session, and whether a response is the newest thing in it.

    ``key`` is where it was answered: an admin may go on from what somebody else asked, and a key may change its role.
    ``is_open``: it is still on its way, so there is nothing to branch from; what goes on from it waits behind it.
    ``is_lost``: it has ended, and its session was deleted since.
    """

    key: SessionKey
    is_newest: bool
    messages: tuple[ChatMessage, ...] = ()
    is_open: bool = False
    is_lost: bool = False


def read_tail(tx: Tx, previous: StoredResponse, key: SessionKey, *, with_lines: bool = False) -> Tail:
    """``key`` counts where nothing else is known of it.

    The lines are read only for who needs them: a long chain is not to cost more than a short one.
    """
    row = inbox.get(tx, previous.event_id)
    key = SessionKey.parse(row.lane) if row is not None else key
    lane = str(key)
    messages = tuple(newest_lines(tx, lane)) if with_lines else ()
    if row is not None and row.settled_at is None:
        return Tail(key, is_newest=True, messages=messages, is_open=True)
    if _is_lost(tx, row, lane):
        return Tail(key, is_newest=False, is_lost=True)
    if row is None:
        return Tail(key, is_newest=True, messages=messages)
    later = tx.value(
        """
        SELECT 1 FROM inbox
        WHERE lane = :lane AND (state = 'queued' OR state = 'acting' OR state = 'taken') AND seq > :seq LIMIT 1
        """,
        lane=lane,
        seq=row.seq,
    )
    if later is not None:
        return Tail(key, is_newest=False, messages=messages)
    last: Any = tx.value(
        """
        SELECT turn_id FROM transcript
        WHERE session_id = (SELECT session_id FROM lanes WHERE key = :lane) AND kind = 'message'
        ORDER BY seq DESC LIMIT 1
        """,
        lane=lane,
    )
    return Tail(key, last is None or last == row.turn_id, messages)


def _is_lost(tx: Tx, row: InboxRow | None, lane: str) -> bool:
    """Whether the session of a response that has ended is gone. One that was never begun has nothing to lose."""
    if row is not None and not row.turn_id:
        return False
    session_id = tx.value("SELECT session_id FROM turns WHERE id = :id", id=row.turn_id) if row is not None else None
    session_id = session_id or tx.value("SELECT session_id FROM lanes WHERE key = :lane", lane=lane)
    return not tx.value("SELECT 1 FROM sessions WHERE id = :id", id=session_id or "")


def read_up_to(tx: Tx, previous: StoredResponse) -> list[ChatMessage]:
    """The talk as it was when that response had ended."""
    row = inbox.get(tx, previous.event_id)
    where = tx.one(
        "SELECT session_id, MAX(seq) FROM transcript WHERE turn_id = :turn_id AND session_id = "
        "(SELECT session_id FROM turns WHERE id = :turn_id) GROUP BY session_id",
        lambda session_id, seq: (session_id, seq),
        turn_id=row.turn_id if row is not None else "",
    )
    if where is None:
        return []
    bodies = tx.all(
        "SELECT body FROM transcript WHERE session_id = :id AND seq <= :seq AND kind = 'message' "
        "ORDER BY seq DESC LIMIT :limit",
        str,
        id=where[0],
        seq=where[1],
        limit=transcripts.HISTORY_ROWS,
    )
    found = (codec.read_chat(body) for body in reversed(bodies))
    return [message for message in found if message is not None]


def read_lines(tx: Tx, newest: StoredResponse) -> list[ChatMessage]:
    """All lines of the session of a response that count, the oldest first."""
    row = inbox.get(tx, newest.event_id)
    session_id = tx.value("SELECT session_id FROM lanes WHERE key = :lane", lane=row.lane) if row is not None else None
    return transcripts.history(tx, str(session_id)) if session_id else []
