"""Rows as the services make them, for tests of the store functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime

from hermes.core.keys import SessionKey, Target
from hermes.core.lane import BusyMode, rows_of_next_prompt
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role, ToolCall, Usage
from hermes.store import approvals, claims, codec, inbox, outbox, outbox_sending
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxRow, InboxState, Incoming
from hermes.store.outbox import OutboxKind, OutboxRow, Outgoing
from hermes.store.sessions import sessions
from hermes.store.sessions.sessions import Session
from hermes.store.turns import begin as turn_begin
from hermes.store.turns import end as turn_end
from hermes.store.turns import steps, turns
from hermes.store.turns.begin import BeginRules, BegunTurn, Pick
from hermes.store.turns.end import Ending
from hermes.store.turns.prompts import Prompt
from hermes.store.turns.tool_calls import NewCall, StoredCall
from hermes.store.turns.turns import TurnState

LANE = "agent:main:telegram:dm:7"
TARGET = "telegram:7"
NOW = 1_000.0
OWNER = "inc_1"
_numbers = itertools.count(1)


def fresh(prefix: str) -> str:
    return f"{prefix}_{next(_numbers)}"


def incoming(
    text: str = "hi",
    *,
    lane: str = LANE,
    keys: Sequence[str] | None = None,
    event_id: str = "",
    state: InboxState = InboxState.QUEUED,
    kind: str = "message",
    ready_at: float = NOW,
    sender_id: str = "7",
) -> Incoming:
    event_id = event_id or fresh("ev")
    message = InboundMessage(
        keys=(event_id,),
        session_key=SessionKey.parse(lane) if lane else SessionKey.parse(LANE),
        sender_id=sender_id,
        text=text,
        sent_at=datetime.fromtimestamp(NOW, UTC),
    )
    names = (event_id,) if keys is None else tuple(keys)
    return Incoming(event_id, names, lane, "telegram", "main", kind, sender_id, codec.dump(message), state, ready_at)


def rules(mode: BusyMode = BusyMode.INTERRUPT, renews: str = "") -> BeginRules:
    """The rules of the services, without their configuration."""

    def pick(rows: Sequence[InboxRow], chosen: str, now: float) -> Pick:
        return Pick(*rows_of_next_prompt(rows, BusyMode(chosen) if chosen else mode, now))

    def reason(_: Session, __: float) -> str:
        return renews

    return BeginRules(pick, compose, reason)


def compose(rows: Sequence[InboxRow]) -> Prompt:
    messages = [codec.load_message(row.body) for row in rows]
    text = "\n".join(message.text for message in messages)
    return Prompt(ChatMessage(Role.USER, text), "telegram", messages[-1].sender_id, "")


def take(
    tx: Tx, lane: str = LANE, *, owner: str = OWNER, now: float = NOW, by: BeginRules | None = None
) -> BegunTurn | None:
    return turn_begin.take(
        tx, lane, owner=owner, now=now, rules=by or rules(), turn_id=fresh("t"), session_id=fresh("s")
    )


def begin_next(tx: Tx, begun: BegunTurn, *, now: float = NOW, by: BeginRules | None = None) -> BegunTurn | None:
    return turn_begin.begin_next(
        tx, begun.claim, now=now, rules=by or rules(), turn_id=fresh("t"), session_id=fresh("s")
    )


async def begun_turn(db: Database, text: str = "hi", *, lane: str = LANE, now: float = NOW) -> BegunTurn:
    """A message that was accepted and whose turn is in hand."""
    await db.write(inbox.accept, [incoming(text, lane=lane, ready_at=now)], now=now)
    begun = await db.write(take, lane, now=now)
    assert begun is not None
    return begun


DONE = Ending(TurnState.DONE, InboxState.ANSWERED, messages=[ChatMessage(Role.ASSISTANT, "done")])


async def finish(db: Database, begun: BegunTurn, ending: Ending = DONE, *, now: float = NOW) -> bool:
    return await db.write(turn_end.finish, begun.claim, begun.turn, ending, now=now)


def question(approval_id: str = "", *, code: str = "", expires_at: float = NOW + 300) -> approvals.Question:
    return approvals.Question(approval_id or fresh("ap"), code or fresh("C").upper(), "p_7", True, "May I?", expires_at)


async def add_calls(
    db: Database, begun: BegunTurn, *calls: tuple[str, approvals.Question | None], now: float = NOW
) -> tuple[BegunTurn, list[StoredCall]]:
    """One step of the model with these calls; returns the turn as it goes on."""
    step = begun.turn.steps + 1
    made = [ToolCall(f"call_{step}_{index}", name, "{}") for index, (name, _) in enumerate(calls)]
    new = [
        NewCall(f"{begun.turn.id}:{step}:{index}", call, asked)
        for index, (call, (_, asked)) in enumerate(zip(made, calls, strict=True))
    ]
    message = ChatMessage(Role.ASSISTANT, "", tool_calls=tuple(made))
    rows = await db.write(steps.add_step, begun.claim, begun.turn, message, new, usage=Usage(10, 5), now=now)
    turn = await db.read(turns.get, begun.turn.id)
    assert turn is not None
    return BegunTurn(begun.claim, turn, [], rows, is_resumed=False), rows


def letter(
    text: str = "hello",
    *,
    target: str = TARGET,
    row_id: str = "",
    group: str = "",
    idx: int = 0,
    kind: OutboxKind = OutboxKind.REPLY,
    expires_at: float = NOW + 3600,
    turn_id: str = "",
    replaces: str = "",
) -> Outgoing:
    row_id = row_id or fresh("ob")
    body = codec.dump(OutboundMessage(Target.parse(target), text))
    return Outgoing(row_id, target, group or row_id, idx, kind, body, expires_at, turn_id, replaces)


async def open_target(db: Database, *rows: Outgoing, now: float = NOW) -> outbox_sending.BegunDelivery:
    """These rows stored, and the first of them in hand."""
    await db.write(outbox.enqueue, rows, now=now)
    begun = await db.write(outbox_sending.take, rows[0].target, owner=OWNER, now=now)
    assert begun is not None
    return begun


async def next_letter(db: Database, held: claims.Claim, *, now: float = NOW) -> outbox_sending.Sending | None:
    begun = await db.write(outbox_sending.begin_next, held, now=now)
    return begun.sending if begun is not None else None


async def row_of(db: Database, row_id: str) -> OutboxRow:
    row = await db.read(outbox.get, row_id)
    assert row is not None
    return row


def start_session(tx: Tx, session_id: str = "s_1", key: str = LANE) -> None:
    """Begin a session that lives under the key."""
    claims.wake(tx, "lanes", key, at=NOW)
    sessions.start(tx, session_id, key, now=NOW)
    tx.run("UPDATE lanes SET session_id = :id WHERE key = :key", id=session_id, key=key)


def said(*texts: str) -> list[ChatMessage]:
    return [ChatMessage(Role.USER, text) for text in texts]
