"""Send a message of the CLI and stream everything that it causes.

The message goes the way of every message: through the local platform into the inbox. What is told here is only
watched, so a client that goes away stops nothing, and one that comes back with the same key is told the rest.
"""

from __future__ import annotations

import asyncio
import binascii
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field
from typing import Any

from hermes.agent.backends.output import as_text
from hermes.agent.models.embedded.prompts import hint_in
from hermes.config import ToolProgressMode
from hermes.core.approval import ApprovalState
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.keys import LOCAL, ChatKind, SessionKey, Target
from hermes.core.messages import MAX_PICTURE_BYTES, MAX_PICTURES, OutboundMessage, Picture
from hermes.core.requests import TurnResult
from hermes.core.text import one_line
from hermes.hosting.control.server import Reply
from hermes.services.events import (
    ReasoningArrived,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from hermes.services.gateway import Gateway
from hermes.services.outbound.tool_progress import progress_line
from hermes.store import approvals, inbox, outbox
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.inbox import InboxRow, InboxState
from hermes.store.outbox import OutboxKind, OutboxState
from hermes.store.reports import trace
from hermes.store.turns import tool_calls, turns
from hermes.store.turns.retry import event_after
from hermes.store.turns.turns import TurnState

MAX_SECONDS = 2 * 3600.0
LOOK_SECONDS = 0.5  # whatever the bus did not tell is found in the store
RECORD_SECONDS = 0.01  # all was handed over, and is just being written down as delivered
OUTPUT_BYTES = 4096  # of a running command that a terminal is shown
OUTPUT_LINES = 5
MAX_ARGUMENTS = 20_000  # characters of a call that a terminal is shown
MAX_RESULT = 4_000  # and of its result
LAST_WORDS_SECONDS = 30.0  # after the end of a message; an answer that could not be shown here waits in the outbox
ELSEWHERE_SECONDS = 2.0  # the same for what goes to another chat

_OPEN_INBOX = frozenset({InboxState.QUEUED, InboxState.ACTING, InboxState.TAKEN})
_OPEN_OUTBOX = frozenset({OutboxState.READY, OutboxState.UNKNOWN, OutboxState.JOINED, OutboxState.PARKED})
_NOT_WAITED_FOR = frozenset({OutboxKind.PREVIEW, OutboxKind.EDIT})

_News = TurnEvent | ReasoningArrived | OutboundMessage


@dataclass(frozen=True, slots=True)
class MessageProgress:
    """How far a message is: its row, its turn, what waits for a person, what is still to be delivered."""

    event: InboxRow | None
    turn_id: str = ""
    state: str = ""
    reason: str = ""
    pending: tuple[approvals.Approval, ...] = ()
    undelivered: tuple[outbox.OutboxRow, ...] = ()
    is_over: bool = False


@dataclass(slots=True)
class _FollowedMessage:
    """One message being followed. Only its own task touches this."""

    chat: str
    key: str
    lane: str
    news: asyncio.Queue[_News] = field(default_factory=asyncio.Queue)
    delivered: set[str] = field(default_factory=set)
    turns: set[str] = field(default_factory=set)
    woken: str = ""  # a turn that slept on an approval when this message came
    is_command: bool = False
    wants_reasoning: bool = False
    event_id: str = ""
    over_at: float = 0.0  # since when the store says that the message has ended; 0.0 while it goes on
    result: TurnResult | None = None  # of the last turn that ended
    running: str = ""  # the call of a tool that runs now
    output: str = ""  # of that tool, as last told


class SayHandler:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def say(self, args: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
        """``{chat, text, key?, folder?, language?, pictures?, reasoning?}``.

        Events on the way; the result says how the message ended. ``pictures`` is a list of ``{name, path?, data}`` with
        the data in Base64; ``reasoning`` asks for events with the model's reasoning.
        """
        chat, text = _text(args, "chat"), _text(args, "text")
        key = str(args.get("key") or new_id("k"))
        pictures = _pictures(args.get("pictures"))
        followed = _FollowedMessage(
            chat,
            key,
            str(SessionKey(LOCAL, ChatKind.DM, chat)),
            is_command=text.lstrip().startswith("/"),
            wants_reasoning=args.get("reasoning") is True,
        )
        try:
            async with asyncio.timeout(MAX_SECONDS), self._watched(followed):
                followed.woken = await self._gateway.db.read(_sleeping_turn, followed.lane)
                await self._gateway.hub.submit(
                    chat,
                    text,
                    key,
                    folder=str(args.get("folder") or ""),
                    language=str(args.get("language") or "")[:20],
                    pictures=pictures,
                )
                stored = await self._gateway.db.read(trace.event_of_key, f"local/local/{key}")
                followed.event_id = stored.id if stored is not None else ""
                standing = await self._follow(followed, reply)
        except TimeoutError:
            raise GatewayError(
                f"No end after {MAX_SECONDS / 3600:.0f} hours. The turn goes on; this command stops waiting."
            ) from None
        return {
            "event": standing.event.id if standing.event else "",
            "turn": standing.turn_id,
            "state": standing.state,
            "reason": standing.reason,
            "approvals": [{"code": asked.code, "question": asked.question} for asked in standing.pending],
            **_spent(followed.result),
        }

    @asynccontextmanager
    async def _watched(self, followed: _FollowedMessage) -> AsyncIterator[None]:
        """Listen before anything is said, so that nothing is missed."""
        async with self._gateway.hub.listen(followed.chat) as sent, AsyncExitStack() as stack:
            if followed.wants_reasoning:
                stack.enter_context(self._gateway.bus.watch_reasoning(followed.news.put_nowait, followed.lane))
            forwarding = asyncio.create_task(_forward(sent, followed.news), name=f"listen to {followed.chat}")
            try:
                with self._gateway.bus.watch(followed.news.put_nowait, followed.lane):
                    yield
            finally:
                forwarding.cancel()

    async def _follow(self, followed: _FollowedMessage, reply: Reply) -> MessageProgress:
        """Tell everything until the message has ended and what it caused is recorded as delivered."""
        pause = LOOK_SECONDS
        is_worth_a_look = True  # asked again with the same key, it may be over already
        while True:
            if is_worth_a_look:
                standing = await self._gateway.db.read(
                    _standing, followed.key, followed.lane, followed.woken, followed.turns
                )
                waited_for = await self._waited_for(followed, standing)
                if standing.is_over and not waited_for:
                    await asyncio.sleep(0)  # whatever was handed over just now is still on its way through the queue
                    while not followed.news.empty():
                        await self._tell(followed.news.get_nowait(), followed, reply)
                    return standing
                has_all = standing.is_over and waited_for <= followed.delivered
                pause = RECORD_SECONDS if has_all else LOOK_SECONDS
            is_worth_a_look = await self._tell_news(followed, reply, pause)

    async def _waited_for(self, followed: _FollowedMessage, standing: MessageProgress) -> set[str]:
        """What is still to be delivered, for as long as it is worth waiting for after the end of the message."""
        now, target = asyncio.get_running_loop().time(), str(Target(LOCAL, followed.chat))
        # A stream gives no reason to look, so the time counts from the first look after the end.
        followed.over_at = (followed.over_at or now) if standing.is_over else 0.0
        rows = [row for row in standing.undelivered if row.target == target or row.state != OutboxState.PARKED]
        if standing.is_over and any(row.state == OutboxState.PARKED for row in rows):
            # It was tried before we listened and recorded after we wrote.
            await self._gateway.db.write(outbox.unpark, target, now=self._gateway.clock.now())
            self._gateway.outbox_writer.due_target(target)
        patience = LAST_WORDS_SECONDS if any(row.target == target for row in rows) else ELSEWHERE_SECONDS
        return set() if standing.is_over and now >= followed.over_at + patience else {row.id for row in rows}

    async def _tell_news(self, followed: _FollowedMessage, reply: Reply, seconds: float) -> bool:
        """Tell one thing that happened. True when it is worth a look into the store."""
        try:
            async with asyncio.timeout(seconds):
                news = await followed.news.get()
        except TimeoutError:
            if followed.running:
                await self._tell_output(followed, reply)
            return True
        return await self._tell(news, followed, reply)

    async def _tell_output(self, followed: _FollowedMessage, reply: Reply) -> None:
        """Tell the last lines of the command that runs now, where there are new ones."""
        raw = await self._gateway.last_output(followed.lane, OUTPUT_BYTES)
        if len(raw) == OUTPUT_BYTES:
            raw = raw[raw.find(b"\n") + 1 :]  # of half a line nobody can say whether it holds half a secret
        text = "\n".join(as_text(raw).splitlines()[-OUTPUT_LINES:])
        if text and text != followed.output:
            followed.output = text
            await reply.event({"kind": "tool_output", "call": followed.running, "text": text})

    async def _tell(self, news: _News, followed: _FollowedMessage, reply: Reply) -> bool:
        if isinstance(news, OutboundMessage):
            await self._tell_delivered(news, followed, reply)
            return True
        if followed.is_command and not followed.woken:
            return False  # another window's turn in this chat
        followed.turns.add(news.turn_id)
        match news:
            case TextArrived(text=text, turn_id=turn_id):
                await reply.event({"kind": "delta", "text": text, "turn": turn_id})
                return False
            case ReasoningArrived(text=text, turn_id=turn_id):
                await reply.event({"kind": "reasoning", "text": text, "turn": turn_id})
                return False
            case SegmentEnded(turn_id=turn_id):
                await reply.event({"kind": "segment", "turn": turn_id})
            case ToolStarted(name=name, arguments=arguments):
                followed.running, followed.output = news.call_id, ""
                if self._gateway.config.agent.tool_progress is not ToolProgressMode.OFF:
                    call = {"call": news.call_id, "turn": news.turn_id, "arguments": arguments[:MAX_ARGUMENTS]}
                    label = progress_line(name, arguments)
                    await reply.event({"kind": "tool", "name": name, "label": label, **call})
            case ToolEnded():
                followed.running = ""
                if self._gateway.config.agent.tool_progress is not ToolProgressMode.OFF:
                    end = {"call": news.call_id, "turn": news.turn_id, "outcome": news.outcome}
                    await reply.event(
                        {"kind": "tool_end", "name": news.name, "result": news.result[:MAX_RESULT], **end}
                    )
            case TurnStarted(turn_id=turn_id, event_ids=event_ids):
                is_mine = followed.event_id in event_ids or turn_id == followed.woken
                await reply.event({"kind": "turn", "id": turn_id, "turn": turn_id, "is_mine": is_mine})
            case TurnEnded(result=result):
                followed.result = result
            case _:
                pass
        return isinstance(news, TurnEnded | SegmentEnded)

    async def _tell_delivered(self, message: OutboundMessage, followed: _FollowedMessage, reply: Reply) -> None:
        """What arrived in the chat. Previews are left out: their text was told token by token."""
        row = await self._gateway.db.read(_letter, message.idempotency_key) if message.idempotency_key else None
        if row is None or row.kind in (OutboxKind.PREVIEW, OutboxKind.EDIT):
            return
        followed.delivered.add(row.id)
        name = {"id": row.id, "turn": row.turn_id}
        match row.kind:
            case OutboxKind.QUESTION:
                asked = await self._gateway.db.read(_approval_in, row.turn_id, message.text)
                await reply.event({"kind": "approval", "text": message.text, **asked, **name})
            case OutboxKind.NOTICE:
                await reply.event({"kind": "notice", "text": message.text, **name})
            case _:
                # "note" is the part of the text that the built-in model says about itself, after its answer.
                note = hint_in(message.text, self._gateway.home)
                await reply.event({"kind": "reply", "text": message.text, "note": note, **name})


async def _forward(sent: asyncio.Queue[OutboundMessage], news: asyncio.Queue[_News]) -> None:
    while True:
        news.put_nowait(await sent.get())


def _text(args: Mapping[str, Any], name: str) -> str:
    value = args.get(name)
    if not isinstance(value, str) or not value.strip():
        raise GatewayError(f"say needs a {name}.")
    return value


def _pictures(given: Any) -> tuple[Picture, ...]:
    if given is None:
        return ()
    if not isinstance(given, list) or len(given) > MAX_PICTURES:
        raise GatewayError(f"At most {MAX_PICTURES} pictures go with one message.")
    try:
        read = [
            (str(picture["name"]), binascii.a2b_base64(picture["data"]), str(picture.get("path") or ""))
            for picture in given
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise GatewayError("A picture has a name, and its data in Base64.") from None
    for name, data, _ in read:
        if len(data) > MAX_PICTURE_BYTES:
            raise GatewayError(f"{one_line(name, 80)} is larger than {MAX_PICTURE_BYTES >> 20} MB.")
    return tuple(Picture(one_line(name, 80), data, path) for name, data, path in read)


# What the store knows


def _standing(tx: Tx, key: str, lane: str, woken: str, seen: Collection[str]) -> MessageProgress:
    event = trace.event_of_key(tx, f"local/local/{key}")
    if event is None:
        return MessageProgress(None, state="lost", reason="it was never stored", is_over=True)
    if event.kind == "command" and event.state not in _OPEN_INBOX:
        event = inbox.get(tx, event_after(event.id)) or event  # it had something asked again: that is waited for
    if event.kind == "command" and event.state not in _OPEN_INBOX and woken:
        return _after_answer(tx, event, lane, {woken, *seen})
    turn = turns.get(tx, event.turn_id) if event.turn_id else None
    if turn is None:
        return _without_turn(tx, event, lane)
    pending = _pending(tx, turn.id)
    if turn.state == TurnState.WAITING and pending:
        letters = outbox.of_turn(tx, turn.id)
        return MessageProgress(
            event, turn.id, turn.state, pending=pending, undelivered=_undelivered(letters), is_over=True
        )
    is_over = event.state not in _OPEN_INBOX
    letters = outbox.of_turn(tx, turn.id)
    return MessageProgress(event, turn.id, turn.state, turn.reason, (), _undelivered(letters), is_over)


def _without_turn(tx: Tx, event: InboxRow, lane: str) -> MessageProgress:
    letters = outbox.of_group(tx, f"{trace.REPLY_TO_COMMAND}{event.id}")
    if event.state == InboxState.QUEUED:
        ahead = turns.of_lane(tx, lane)
        pending = _pending(tx, ahead.id) if ahead is not None and ahead.state == TurnState.WAITING else ()
        return MessageProgress(event, "", event.state, pending=pending, is_over=bool(pending))
    is_over = event.state not in _OPEN_INBOX
    return MessageProgress(event, "", event.state, event.reason, (), _undelivered(letters), is_over)


def _after_answer(tx: Tx, event: InboxRow, lane: str, seen: Collection[str]) -> MessageProgress:
    """A command that may have answered an approval: what it set going belongs to it."""
    letters = outbox.of_group(tx, f"{trace.REPLY_TO_COMMAND}{event.id}")
    letters += [row for turn_id in seen for row in outbox.of_turn(tx, turn_id)]
    turn = turns.of_lane(tx, lane)
    if turn is None and inbox.has_queued(tx, lane):
        return MessageProgress(event, "", "running", undelivered=_undelivered(letters))
    if turn is None:
        return MessageProgress(event, "", event.state, undelivered=_undelivered(letters), is_over=True)
    pending = _pending(tx, turn.id)
    is_over = turn.state == TurnState.WAITING and bool(pending)
    return MessageProgress(event, turn.id, turn.state, turn.reason, pending, _undelivered(letters), is_over)


def _pending(tx: Tx, turn_id: str) -> tuple[approvals.Approval, ...]:
    return tuple(asked for asked in approvals.of_turn(tx, turn_id) if asked.state == ApprovalState.PENDING)


def _undelivered(letters: list[outbox.OutboxRow]) -> tuple[outbox.OutboxRow, ...]:
    return tuple(row for row in letters if row.state in _OPEN_OUTBOX and row.kind not in _NOT_WAITED_FOR)


def _sleeping_turn(tx: Tx, lane: str) -> str:
    turn = turns.of_lane(tx, lane)
    return turn.id if turn is not None and turn.state == TurnState.WAITING else ""


def _letter(tx: Tx, idempotency_key: str) -> outbox.OutboxRow | None:
    group, _, index = idempotency_key.rpartition(".")
    return outbox.get(tx, group if index == "0" else idempotency_key)


def _approval_in(tx: Tx, turn_id: str, text: str) -> dict[str, Any]:
    for asked in approvals.of_turn(tx, turn_id):
        if asked.code in text:
            call = tool_calls.get(tx, asked.tool_call_id)
            return {
                "code": asked.code,
                "question": asked.question,
                "tool": call.name if call else "",
                "arguments": call.arguments if call else "",
                "where": asked.where_run,
                "has_scopes": bool(asked.subject),
                "touches_host": bool(asked.touches_host),
                "proof": asked.proof,
            }
    return {"code": "", "question": ""}


def _spent(result: TurnResult | None) -> dict[str, Any]:
    """The model of a turn and its tokens; nothing where no turn ended."""
    if result is None:
        return {}
    used = result.usage
    tokens = {"prompt": used.prompt_tokens, "completion": used.completion_tokens, "cached": used.cached_tokens}
    return {"model": result.model, "tokens": tokens, **({"cost": used.cost} if used.cost else {})}
