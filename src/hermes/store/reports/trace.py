"""Read the life of a message from all the tables it passed through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.store import approvals, inbox, outbox, people
from hermes.store.approvals import Approval
from hermes.store.db import Tx
from hermes.store.inbox import InboxRow
from hermes.store.outbox import OutboxRow
from hermes.store.sessions import transcripts
from hermes.store.sessions.transcripts import TranscriptLine
from hermes.store.turns import tool_calls, turns
from hermes.store.turns.tool_calls import StoredCall
from hermes.store.turns.turns import Turn

REPLY_TO_COMMAND = "ob_"
"""The reply to a command is the outbox group ``ob_<event id>``."""


@dataclass(frozen=True, slots=True)
class Life:
    """Everything that belongs to one message or turn; ``turn`` is None for a command or a refused message."""

    events: Sequence[InboxRow] = ()
    turn: Turn | None = None
    lines: Sequence[TranscriptLine] = ()
    calls: Sequence[StoredCall] = ()
    approvals: Sequence[Approval] = ()
    letters: Sequence[OutboxRow] = field(default=())


@dataclass(frozen=True, slots=True)
class Latest:
    """A message that arrived, and how far it is. ``turn`` is None for a command or a refused message."""

    event: InboxRow
    platform: str
    person: str
    turn: Turn | None
    letters: Sequence[OutboxRow]


def newest(tx: Tx, *, limit: int) -> list[Latest]:
    """The latest messages, the newest first."""
    found = tx.all(
        f"SELECT platform, {inbox.COLUMNS} FROM inbox ORDER BY received_at DESC, id DESC LIMIT :limit",
        lambda platform, *row: (str(platform), InboxRow(*row)),
        limit=limit,
    )
    return [latest_of(tx, platform, event) for platform, event in found]


def latest_of(tx: Tx, platform: str, event: InboxRow) -> Latest:
    """Find how far an event is."""
    person = people.find(tx, platform, event.sender_id)
    turn = turns.get(tx, event.turn_id) if event.turn_id else None
    letters = outbox.of_turn(tx, turn.id) if turn else outbox.of_group(tx, f"{REPLY_TO_COMMAND}{event.id}")
    return Latest(event, platform, person.name if person else "", turn, letters)


def life_of(tx: Tx, name: str) -> Life | None:
    """Find by our id (event, turn, delivery, approval), the API's id, or the message's id on its platform."""
    return _by_our_id(tx, _without_the_apis_dress(name)) or _by_platform_id(tx, name)


def _without_the_apis_dress(name: str) -> str:
    """Chat completions, runs and responses carry the id of their event; people paste what their client shows."""
    if name.startswith("resp_"):
        return f"ev_{name}"
    return name.removeprefix("chatcmpl-").removeprefix("run_")


def _by_our_id(tx: Tx, name: str) -> Life | None:
    match name.partition("_")[0]:
        case "t":
            turn = turns.get(tx, name)
            return _of_turn(tx, turn) if turn else None
        case "ev":
            event = inbox.get(tx, name)
            return _of_event(tx, event) if event else None
        case "ob":
            letter = outbox.get(tx, name)
            return _of_letter(tx, letter) if letter else None
        case "ap":
            approval = approvals.get(tx, name)
            turn = turns.get(tx, approval.turn_id) if approval else None
            return _of_turn(tx, turn) if turn else None
        case _:
            return None


def event_of_key(tx: Tx, key: str) -> InboxRow | None:
    """The event that one of its dedupe keys names."""
    found = tx.value("SELECT event_id FROM dedupe WHERE key = :key", key=key)
    return inbox.get(tx, str(found)) if found else None


def _by_platform_id(tx: Tx, name: str) -> Life | None:
    """A key such as ``telegram/77/msg:42:1001``, its end, or the id a platform gave to a message of ours."""
    ending = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    found = tx.value(
        """
        SELECT event_id FROM dedupe
        WHERE key = :name OR key LIKE :part ESCAPE '\\' OR key LIKE :whole ESCAPE '\\' ORDER BY seen_at DESC LIMIT 1
        """,
        name=name,
        part=f"%:{ending}",
        whole=f"%/{ending}",
    )
    event = inbox.get(tx, str(found)) if found else None
    if event is not None:
        return _of_event(tx, event)
    letter_id = tx.value(
        "SELECT id FROM outbox WHERE message_id = :name AND message_id <> '' ORDER BY created_at DESC LIMIT 1",
        name=name,
    )
    letter = outbox.get(tx, str(letter_id)) if letter_id else None
    return _of_letter(tx, letter) if letter else None


def _of_event(tx: Tx, event: InboxRow) -> Life:
    turn = turns.get(tx, event.turn_id) if event.turn_id else None
    if turn is not None:
        return _of_turn(tx, turn)
    return Life(events=[event], letters=outbox.of_group(tx, f"{REPLY_TO_COMMAND}{event.id}"))


def _of_turn(tx: Tx, turn: Turn) -> Life:
    return Life(
        events=inbox.of_turn(tx, turn.id),
        turn=turn,
        lines=_lines(tx, turn),
        calls=tool_calls.of_turn(tx, turn.id),
        approvals=approvals.of_turn(tx, turn.id),
        letters=outbox.of_turn(tx, turn.id),
    )


def _of_letter(tx: Tx, letter: OutboxRow) -> Life:
    turn = turns.get(tx, letter.turn_id) if letter.turn_id else None
    if turn is not None:
        return _of_turn(tx, turn)
    event = inbox.get(tx, letter.group_id.removeprefix(REPLY_TO_COMMAND))
    return Life(events=[event] if event else [], letters=outbox.of_group(tx, letter.group_id))


def _lines(tx: Tx, turn: Turn) -> list[TranscriptLine]:
    return tx.all(
        """
        SELECT seq, turn_id, kind, body, at FROM transcript
        WHERE session_id = :session_id AND turn_id = :turn_id ORDER BY seq
        """,
        transcripts.TranscriptLine,
        session_id=turn.session_id,
        turn_id=turn.id,
    )
