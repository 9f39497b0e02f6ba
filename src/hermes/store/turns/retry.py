"""Retry the last exchange: take it back, and queue its events again."""

from __future__ import annotations

from collections.abc import Callable

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.store import codec, inbox, people
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow, Incoming
from hermes.store.sessions import sessions, undo
from hermes.store.turns import turns

ASKABLE = ("message", "skill")

Again = Callable[[InboxRow | None, str], tuple[str, str]]
"""Given an event, or None where it is forgotten, and what was said: the kind and the body of the new one."""


@dataclass(frozen=True, slots=True)
class RetryOrigin:
    """Where it is asked again, and who asks."""

    lane: str
    platform: str
    account: str
    sender_id: str
    person_id: str
    role: str = ""
    """The most that the new turn may; '' for the role of whoever asks."""


@dataclass(frozen=True, slots=True)
class Retried:
    """``text`` is what is asked again, '' where there is nothing."""

    text: str = ""
    is_busy: bool = False
    is_anothers: bool = False


NOTHING = Retried()


def event_after(command_id: str, position: int = 0) -> str:
    """The id of an event that a command put in line."""
    return f"{command_id}.{position}"


def retry(tx: Tx, session_id: str, place: RetryOrigin, again: Again, *, asked: str, now: float) -> Retried:
    """Take the newest exchange back and queue its start again, once per ``asked``; only for who asked it."""
    if (done := inbox.get(tx, event_after(asked))) is not None:
        return Retried(text=codec.load_message(done.body).text)
    turn_id, text = undo.newest_exchange(tx, session_id)
    if not text:
        return NOTHING
    if not _is_theirs(tx, session_id, turn_id, place.person_id):
        return Retried(is_anothers=True)
    undone = undo.take_back_exchange(tx, session_id, asked=asked, now=now)
    if undone.is_busy or not undone.exchanges:
        return Retried(is_busy=undone.is_busy)
    # A turn of an older version may hold words of others, which whoever asks again must not say for them.
    rows: list[InboxRow | None] = [
        row for row in inbox.of_turn(tx, turn_id) if row.kind in ASKABLE and _is_of(tx, row, place)
    ]
    inbox.accept(tx, [_event(place, row, text, again, asked, n, now) for n, row in enumerate(rows or [None])], now=now)
    return Retried(text=text)


def _is_theirs(tx: Tx, session_id: str, turn_id: str, person_id: str) -> bool:
    turn = turns.get(tx, turn_id)
    return turn.person_id == person_id if turn is not None else sessions.belongs_to(tx, session_id, person_id)


def _is_of(tx: Tx, row: InboxRow, place: RetryOrigin) -> bool:
    person = people.find(tx, SessionKey.parse(row.lane).platform, row.sender_id)
    return person.id == place.person_id if person is not None else row.sender_id == place.sender_id


def _event(
    place: RetryOrigin, row: InboxRow | None, text: str, again: Again, asked: str, position: int, now: float
) -> Incoming:
    kind, body = again(row, text)
    event_id = event_after(asked, position)
    return Incoming(
        event_id,
        (f"again/{event_id}",),
        place.lane,
        place.platform,
        place.account,
        kind,
        place.sender_id,  # the same person by another name, where it was first asked on another platform
        body,
        inbox.InboxState.QUEUED,
        ready_at=now,
        role=place.role,
    )
