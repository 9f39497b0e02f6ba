"""Turn queued events into the prompt of a turn; set unreadable ones aside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import Attachment, ChatMessage
from hermes.core.requests import TurnOptions
from hermes.core.roles import PersonRole, capped
from hermes.store import inbox, people
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow, InboxState


@dataclass(frozen=True, slots=True)
class Prompt:
    """A user message made of one or more events of one sender, to whom the turn belongs.

    ``before`` are lines of a request that stand before it. ``person_id`` is set if the gateway asks on a person's
    behalf. ``speaker`` is the writer as the model reads it, '' in a chat with one person. ``overhears``: it carries
    lines of a group that were not addressed to us.
    """

    message: ChatMessage
    platform: str
    sender_id: str
    reply_to: str
    attachments: tuple[Attachment, ...] = ()
    before: tuple[ChatMessage, ...] = ()
    options: TurnOptions | None = None
    person_id: str = ""
    speaker: str = ""
    overhears: bool = False


Compose = Callable[[Sequence[InboxRow]], Prompt]


def composed(tx: Tx, compose: Compose, rows: Sequence[InboxRow], now: float) -> Prompt | None:
    """The prompt these rows make. Rows that cannot be read are set aside, and None says to look again."""
    try:
        return compose(rows) if rows else None
    except ValueError as error:  # not JSON, or not what its kind should hold
        broken = [row for row in rows if _is_broken(compose, row)] or rows
        for row in broken:
            inbox.settle(tx, row.id, state=InboxState.SET_ASIDE, reason=f"unreadable: {error}", now=now)
        return None


def _is_broken(compose: Compose, row: InboxRow) -> bool:
    try:
        compose([row])
    except ValueError:
        return True
    return False


def as_allowed(tx: Tx, row: InboxRow) -> InboxRow:
    """A skill that a guest calls is only what they wrote: what reads skills is not for guests."""
    if row.kind != "skill":
        return row
    person = people.find(tx, SessionKey.parse(row.lane).platform, row.sender_id)
    is_guest = person is None or capped(person.role, row.role) == PersonRole.GUEST
    return replace(row, kind="message") if is_guest else row


def take(tx: Tx, turn_id: str, rows: Sequence[InboxRow]) -> None:
    """These events are this turn's now: none of them begins another one, and they end with it."""
    for row in rows:
        tx.run(
            "UPDATE inbox SET state = 'taken', turn_id = :turn_id WHERE id = :id AND state = 'queued'",
            turn_id=turn_id,
            id=row.id,
        )


def give_back(tx: Tx, turn_id: str) -> None:
    """What a turn took waits in line again."""
    tx.run("UPDATE inbox SET state = 'queued', turn_id = '' WHERE turn_id = :id AND state = 'taken'", id=turn_id)
