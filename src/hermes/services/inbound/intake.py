"""Intake: who is it, what is it, stored in one transaction; then whoever must act is told.

An adapter's batch, its dedupe keys, its verdicts and its cursor commit together. Only then may the platform be told
that the batch was taken. What must not wait (a command, a button) acts at once, beside the lane it is about.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from hermes.config import Config
from hermes.core.access import Allowed, RefusalReason, Refused, Unaddressed, Verdict, judge
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import guess, pick
from hermes.core.keys import LOCAL, AccountKey, ChatKind, SessionKey
from hermes.core.lane import ONE_MODE, BusyMode
from hermes.core.messages import (
    Attachment,
    Cursor,
    Ignored,
    InboundEvent,
    InboundMessage,
    OutboundMessage,
    Press,
    Unreadable,
)
from hermes.core.people import PersonRole
from hermes.core.ports import Adapter, Clock, Emit
from hermes.core.secret import Redactor
from hermes.core.slash_command import read_command
from hermes.core.text import storable
from hermes.services.inbound.group_context import GroupContext
from hermes.services.inbound.throttle import Throttle
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.turns.lanes import Lanes, give_back
from hermes.store import codec, inbox, outbox, people
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.inbox import Accepted, InboxState, Incoming
from hermes.store.outbox import OutboxKind
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.turns import TurnState

log = logging.getLogger(__name__)

MAX_TEXT = 1_000_000
STRANGER_TOLD_EVERY_SECONDS = 3600.0
CODE_SHOWN_EVERY_SECONDS = 20.0
LOOK_AGAIN_SECONDS = 5.0
ONE_COMMAND_SECONDS = 20.0
TOLD_AFTER_SECONDS = 1.0
STORE_RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0)


class Strangers(Protocol):
    """Who was let in by pairing, and what is said to those who were not."""

    def is_paired(self, platform: str, user_id: str) -> bool: ...
    async def meet(self, message: InboundMessage, account: str) -> None: ...


class Acts(Protocol):
    """Runs a stored command or press; ends its inbox row."""

    async def act(self, event_id: str, event: InboundMessage | Press) -> None: ...


@dataclass(frozen=True, slots=True)
class Arrival:
    """One event on its way in: what is stored, and what to do once it is."""

    incoming: Incoming
    event: InboundMessage | Press | None = None
    refusal: RefusalReason | None = None


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What one transaction did: each event's fate, the targets whose window is open again, the turns it began."""

    accepted: list[Accepted]
    unparked: set[str]
    begun: list[BegunTurn]


class Begin(Protocol):
    def __call__(self, tx: Tx, lane: str, /, *, now: float) -> BegunTurn | None: ...


@dataclass(frozen=True, slots=True)
class BatchSource:
    """The account a batch came from."""

    account: AccountKey
    identity: str
    redelivers: bool
    sends_per_inbound: int = 0

    def scoped(self, keys: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self.account.platform}/{self.identity}/{storable(key)}" for key in keys)


class Intake:
    def __init__(
        self,
        db: Database,
        config: Callable[[], Config],
        clock: Clock,
        lanes: Lanes,
        outbox_writer: OutboxWriter,
        actions: Acts,
        strangers: Strangers,
        on_arrival: Callable[[AccountKey, int], None] = lambda *_: None,
        calls_skill: Callable[[str, str], bool] = lambda *_: False,
        told_after_seconds: float = TOLD_AFTER_SECONDS,
        redact: Redactor | None = None,
    ) -> None:
        """``calls_skill``: whether a command of this name, on this platform, begins a turn with a skill.

        ``told_after_seconds``: how long a message waits for a running turn before its sender hears so.
        """
        self._db = db
        self._config = config
        self._clock = clock
        self._lanes = lanes
        self._outbox_writer = outbox_writer
        self._actions = actions
        self._strangers = strangers
        self._on_arrival = on_arrival
        self._calls_skill = calls_skill
        self._told_after_seconds = told_after_seconds
        self._redact = redact or Redactor()
        self._is_closed = False
        self._known: set[tuple[str, str]] = set()  # persons already in the store
        self._told = Throttle(STRANGER_TOLD_EVERY_SECONDS)
        self._shown_code = Throttle(CODE_SHOWN_EVERY_SECONDS)
        self._logged = Throttle(STRANGER_TOLD_EVERY_SECONDS)
        self._group_context = GroupContext()
        self._in_hand: set[str] = set()  # events that are being acted on
        self._newest: dict[str, asyncio.Future[None]] = {}  # the last command of each chat that is at it
        self._acting: set[asyncio.Future[None]] = set()

    def emit_for(self, account: AccountKey, adapter: Adapter) -> Emit:
        """The ``emit`` that this adapter is handed."""

        async def emit(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
            can = adapter.capabilities
            source = BatchSource(account, adapter.identity, can.redelivers, can.sends_per_inbound)
            await self._take(source, events, cursor)

        return emit

    async def _take(self, source: BatchSource, events: Sequence[InboundEvent], cursor: Cursor | None) -> None:
        arrivals = [arrival for event in events if (arrival := self._judge(source, event)) is not None]
        if not arrivals and not cursor:
            return
        stored = await self._store(source, arrivals, cursor)
        for target in stored.unparked:
            self._outbox_writer.due_target(target)
        for begun in stored.begun:
            self._lanes.adopt(begun)
        in_turn = {event_id for begun in stored.begun for event_id in begun.event_ids}
        fresh = [
            (arrival, taken)
            for arrival, taken in zip(arrivals, stored.accepted, strict=True)
            if taken.is_new and taken.event_id not in in_turn
        ]
        self._on_arrival(source.account, sum(taken.is_new for taken in stored.accepted))
        for arrival, taken in fresh:
            self._follow_up(arrival, taken)

    # Who and what

    def _judge(self, source: BatchSource, event: InboundEvent) -> Arrival | None:
        """Say what is stored of an event. One that cannot be judged is kept raw; the batch goes on."""
        try:
            match event:
                case Ignored():
                    return None
                case Unreadable():
                    return self._unreadable(source, event.raw, event.reason, event.keys)
                case InboundMessage():
                    return self._message(source, _clean(event, self._redact))
                case Press():
                    return self._press(source, _clean_press(event))
        except Exception as error:
            log.exception("Event could not be judged", extra={"platform": source.account.platform})
            return self._unreadable(source, repr(event), f"{type(error).__name__}: {error}", ())

    def _unreadable(self, source: BatchSource, raw: str, reason: str, keys: Sequence[str]) -> Arrival:
        log.warning("Unreadable event kept", extra={"platform": source.account.platform, "reason": reason})
        body = self._redact(storable(raw[:MAX_TEXT]))
        return Arrival(self._incoming(source, keys, "", "unreadable", "", body, InboxState.SET_ASIDE, storable(reason)))

    def _message(self, source: BatchSource, message: InboundMessage) -> Arrival | None:
        verdict = self._verdict(source, message.session_key, message.sender_id, is_addressed=message.is_addressed)
        message = self._with_overheard(source, message, verdict)
        lane = str(lane_key(message, self._config()))
        if isinstance(verdict, Allowed):
            self._shown_code.forget((source.account.platform, message.sender_id))
            kind, message = self._kind(message)
            body = codec.dump(message)
            state = InboxState.ACTING if kind == "command" else InboxState.QUEUED
            pause = self._config().agent.join_pause_seconds if message.may_continue else 0.0
            incoming = self._incoming(source, message.keys, lane, kind, message.sender_id, body, state, pause=pause)
            return Arrival(incoming, message)
        if isinstance(verdict, Refused):
            refused = InboxState.REFUSED
            incoming = self._incoming(
                source, message.keys, lane, "message", message.sender_id, "", refused, verdict.reason.value
            )
            return Arrival(incoming, message, verdict.reason)
        return None  # a group's talk that is not for us

    def _with_overheard(self, source: BatchSource, message: InboundMessage, verdict: Verdict) -> InboundMessage:
        """In a group where the owner wants it: with what was said there before, or kept for whoever asks next."""
        account = self._config().account(source.account.platform, source.account.account)
        most = account.group_context_lines if account is not None else 0
        if account is None or not most or message.session_key.kind is ChatKind.DM:
            return message
        if isinstance(verdict, Unaddressed) and account.access.answers_in_groups:
            self._group_context.hear(message, most)
        if isinstance(verdict, Allowed) and message.is_addressed:
            return replace(message, group_context=self._group_context.before(message, most))
        return message

    def _kind(self, message: InboundMessage) -> tuple[str, InboundMessage]:
        """A command acts at once; one that names a skill is a message like any other, for which the skill is read.

        ``/queue TEXT`` and ``/steer TEXT`` are the message TEXT, which says what it does while a turn runs.
        """
        line = read_command(message.text)
        if line is None:
            return "message", message
        if line.name in ONE_MODE and line.rest:
            return line.name, replace(message, text=line.rest)
        return "skill" if self._calls_skill(line.name, message.session_key.platform) else "command", message

    def _press(self, source: BatchSource, press: Press) -> Arrival:
        verdict = self._verdict(source, press.session_key, press.sender_id, is_addressed=True)
        lane = str(press.session_key)
        state, reason = InboxState.ACTING, ""
        if isinstance(verdict, Refused):
            state, reason = InboxState.REFUSED, verdict.reason.value
        incoming = self._incoming(source, press.keys, lane, "press", press.sender_id, codec.dump(press), state, reason)
        return Arrival(incoming, press if state is InboxState.ACTING else None)

    def _verdict(self, source: BatchSource, key: SessionKey, sender_id: str, *, is_addressed: bool) -> Verdict:
        if key.platform == LOCAL:
            return Allowed(PersonRole.OWNER)
        account = self._config().account(source.account.platform, source.account.account)
        if account is None:
            return Refused(RefusalReason.NOT_LISTED)
        return judge(
            account.access,
            kind=key.kind,
            sender_id=sender_id,
            chat=key.chat,
            is_addressed=is_addressed,
            is_paired=self._strangers.is_paired(source.account.platform, sender_id),
        )

    def _incoming(
        self,
        source: BatchSource,
        keys: Sequence[str],
        lane: str,
        kind: str,
        sender_id: str,
        body: str,
        state: InboxState,
        reason: str = "",
        pause: float = 0.0,
    ) -> Incoming:
        account = source.account
        ready_at = self._clock.now() + pause
        return Incoming(
            new_id("ev"),
            source.scoped(keys),
            lane,
            account.platform,
            account.account,
            kind,
            storable(sender_id),
            body,
            state,
            ready_at,
            reason,
        )

    # Storing

    async def _store(self, source: BatchSource, arrivals: Sequence[Arrival], cursor: Cursor | None) -> IntakeResult:
        """One transaction.

        A platform that will not offer the batch again is kept waiting until it is stored.
        """
        newcomers = self._newcomers(source, arrivals)
        begin: Begin = self._lanes.begin_within
        attempt = 0
        while True:
            try:
                stored = await self._db.claim(
                    _store_batch,
                    source,
                    arrivals,
                    cursor,
                    newcomers,
                    begin,
                    now=self._clock.now(),
                    if_gone=_give_back,
                )
            except StoreIsDownError:
                if source.redelivers:
                    raise
                log.warning("Store is down", extra={"platform": source.account.platform, "holding": len(arrivals)})
                await asyncio.sleep(STORE_RETRY_SECONDS[min(attempt, len(STORE_RETRY_SECONDS) - 1)])
                attempt += 1
            except Exception:
                if begin is _begins_nothing:
                    raise
                log.exception("A message could not begin its turn", extra={"platform": source.account.platform})
                begin = _begins_nothing
            else:
                self._known.update((source.account.platform, newcomer.sender_id) for newcomer in newcomers)
                return stored

    def _newcomers(self, source: BatchSource, arrivals: Sequence[Arrival]) -> list[InboundMessage | Press]:
        platform = source.account.platform
        return [
            arrival.event
            for arrival in arrivals
            if arrival.event is not None
            and arrival.refusal is None
            and (platform, arrival.event.sender_id) not in self._known
        ]

    # Afterwards

    def _follow_up(self, arrival: Arrival, taken: Accepted) -> None:
        """Everything is stored: wake the lane, act, or tell a stranger. Nothing here may lose the event."""
        event = arrival.event
        if arrival.refusal is not None and isinstance(event, InboundMessage):
            self._meet_stranger(event, arrival.refusal)
        elif arrival.incoming.state is InboxState.ACTING and event is not None:
            self._act(taken.event_id, arrival.incoming.lane, event)
        elif arrival.incoming.state is InboxState.QUEUED and isinstance(event, InboundMessage):
            self._hurry(arrival.incoming.lane, arrival.incoming.kind, taken, event)
            if (pause := arrival.incoming.ready_at - self._clock.now()) > 0:
                # The slow poll would find it too, up to a second later.
                asyncio.get_running_loop().call_later(pause, self._lanes.wake, arrival.incoming.lane)

    def _hurry(self, lane: str, kind: str, taken: Accepted, message: InboundMessage) -> None:
        mode = ONE_MODE.get(kind) or self._lanes.mode_of(message.session_key, taken.busy_mode)
        if taken.turn_id and taken.turn_state == TurnState.WAITING:
            self._tell_waiting(taken.turn_id, message)
        elif taken.turn_id and mode is BusyMode.INTERRUPT:
            self._lanes.interrupt(lane, taken.turn_id)
        elif taken.turn_id:
            loop = asyncio.get_running_loop()
            loop.call_later(self._told_after_seconds, self._tell_busy, lane, taken, message, mode)
        self._lanes.wake(lane)

    def _tell_busy(self, lane: str, taken: Accepted, message: InboundMessage, mode: BusyMode) -> None:
        """Say what becomes of it, if it still waits after a moment: once for each turn and each way of waiting."""
        if self._is_closed or self._lanes.running_turn(lane) != taken.turn_id:
            return
        self._spawn(self._tell_while_waiting(taken, message, mode))

    async def _tell_while_waiting(self, taken: Accepted, message: InboundMessage, mode: BusyMode) -> None:
        words = await self._words(message)
        text = words.TAKEN_INTO_ACCOUNT if mode is BusyMode.STEER else words.WAITS_IN_LINE
        rows = self._outbox_writer.rows(
            OutboundMessage(message.session_key.target, text, reply_to=message.message_id),
            OutboxKind.NOTICE,
            key=f"ob_busy_{mode}_{taken.turn_id}",
        )
        if await self._db.write(_tell_if_queued, taken.event_id, rows, now=self._clock.now()):
            self._outbox_writer.due(rows)

    def _tell_waiting(self, turn_id: str, message: InboundMessage) -> None:
        """Once for each turn, whoever waits how often: the letter's name makes it so."""
        name = f"ob_waits_{turn_id}"

        async def tell() -> None:
            text = (await self._words(message)).WAITS_FOR_APPROVAL
            await self._send(self._outbox_writer.notice(message.session_key.target, text, turn_id=turn_id, key=name))

        self._spawn(tell())

    async def _words(self, event: InboundMessage | Press) -> Texts:
        """The words of whoever sent it."""
        person = await self._db.read(people.find, event.session_key.platform, event.sender_id)
        text = event.text if isinstance(event, InboundMessage) else ""
        own = person.language if person is not None else ""
        return words_of(pick(self._config().language, own, hint=event.language, text=text))

    def _meet_stranger(self, message: InboundMessage, reason: RefusalReason) -> None:
        """Tell a stranger in a direct chat how to be let in, now and then; a group is never told anything."""
        platform = message.session_key.platform
        now = self._clock.now()
        who = (platform, message.sender_id)
        if self._logged.is_due((who, reason), now):
            log.warning(
                "Unauthorized user", extra={"platform": platform, "user": message.sender_id, "reason": reason.value}
            )
        is_pairing = reason is RefusalReason.NOT_PAIRED
        answers = message.session_key.kind is ChatKind.DM and reason is not RefusalReason.DMS_DISABLED
        if not answers or not (self._shown_code if is_pairing else self._told).is_due(who, now):
            return
        if is_pairing:
            self._spawn(self._strangers.meet(message, message.session_key.account))
            return
        self._spawn(self._tell_stranger(message, f"{platform.upper()}_ALLOWED_USERS"))

    async def _tell_stranger(self, message: InboundMessage, setting: str) -> None:
        text = (await self._words(message)).STRANGER.format(sender_id=message.sender_id, setting=setting)
        await self._send(self._outbox_writer.notice(message.session_key.target, text))

    async def _send(self, rows: Sequence[outbox.Outgoing]) -> None:
        await self._db.write(outbox.enqueue, rows, now=self._clock.now())
        self._outbox_writer.due(rows)

    def _spawn(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._acting.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Future[None]) -> None:
        self._acting.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("Telling somebody failed", exc_info=task.exception())

    # What acts at once

    def _act(self, event_id: str, lane: str, event: InboundMessage | Press) -> None:
        """Act now, but for the commands that were written in this chat before and are still at it."""
        self._in_hand.add(event_id)
        earlier = self._newest.get(lane)
        task = self._newest[lane] = self._spawn(self._acted(event_id, event, earlier))
        task.add_done_callback(lambda _: self._newest.pop(lane, None) if self._newest.get(lane) is task else None)

    async def _acted(self, event_id: str, event: InboundMessage | Press, earlier: asyncio.Future[None] | None) -> None:
        try:
            if earlier is not None:
                await asyncio.wait([earlier], timeout=ONE_COMMAND_SECONDS)
            await self._actions.act(event_id, event)
        except StoreIsDownError as error:
            # Its row stays open and is taken up again.
            log.warning("Store is down", extra={"event": event_id, "reason": str(error)})
        except Exception as error:
            log.exception("Command broke", extra={"event": event_id})
            await self._break_off(event_id, event, error)
        finally:
            self._in_hand.discard(event_id)

    async def _break_off(self, event_id: str, event: InboundMessage | Press, error: Exception) -> None:
        """End an event that cannot be acted on, in words, so that what was written after it goes on."""
        text = (await self._words(event)).COMMAND_FAILED.format(reason=type(error).__name__)
        rows = self._outbox_writer.notice(event.session_key.target, text, key=f"ob_{event_id}")
        reason = f"{type(error).__name__}: {error}"
        lane = await self._db.write(_set_aside, event_id, reason, rows, now=self._clock.now())
        self._outbox_writer.due(rows)
        self._lanes.wake(lane)

    async def run(self) -> None:
        """Look, now and then, for what has not acted: until closed or cancelled.

        An event whose COMMIT was unknown, or whose store was down when it was to act, is open and in nobody's hand.
        """
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            if self._is_closed:
                return
            try:
                await self.take_up(LOOK_AGAIN_SECONDS)
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "looking for commands", "reason": str(error)})

    async def take_up(self, age_seconds: float = 0.0) -> None:
        """Act on what is open, that old and in nobody's hand; at a start, on all that the last process left."""
        before = self._clock.now() - age_seconds
        in_hand = set(self._in_hand)  # by now: what ends while we read is read as open
        for row in await self._db.read(inbox.acting):
            if row.id in in_hand or row.id in self._in_hand or row.received_at > before:
                continue
            try:
                event = codec.load_press(row.body) if row.kind == "press" else codec.load_message(row.body)
            except ValueError as error:
                await self._db.write(_set_aside, row.id, f"unreadable: {error}", (), now=self._clock.now())
            else:
                self._act(row.id, row.lane, event)

    async def close(self) -> None:
        self._is_closed = True
        if self._acting:
            await asyncio.wait(self._acting, timeout=2)
        for task in self._acting:
            task.cancel()


def _store_batch(
    tx: Tx,
    source: BatchSource,
    arrivals: Sequence[Arrival],
    cursor: Cursor | None,
    newcomers: Sequence[InboundMessage | Press],
    begin: Begin,
    *,
    now: float,
) -> IntakeResult:
    account = source.account
    for newcomer in newcomers:
        _meet(tx, account.platform, newcomer, now=now)
    accepted = inbox.accept(tx, [arrival.incoming for arrival in arrivals], now=now)
    writers = {_target_of(arrival) for arrival in arrivals if arrival.event is not None}
    unparked = {target for target in writers if outbox.unpark(tx, target, now=now)}
    if source.sends_per_inbound:
        new = {_target_of(arrival) for arrival, taken in zip(arrivals, accepted, strict=True) if taken.is_new}
        for target in new & writers:
            outbox.allow(tx, target, sends=source.sends_per_inbound)
    if cursor:
        people.move_marks(tx, account.platform, account.account, cursor)
    # Last, so that a turn takes all that came for its lane in this batch.
    lanes = dict.fromkeys(
        arrival.incoming.lane
        for arrival, taken in zip(arrivals, accepted, strict=True)
        if taken.is_new and arrival.incoming.state is InboxState.QUEUED and arrival.incoming.ready_at <= now
    )
    begun = [turn for lane in lanes if (turn := begin(tx, lane, now=now)) is not None]
    return IntakeResult(accepted, unparked, begun)


def _meet(tx: Tx, platform: str, newcomer: InboundMessage | Press, *, now: float) -> None:
    role = PersonRole.OWNER if platform == LOCAL else PersonRole.USER
    people.ensure(
        tx,
        person_id_of(platform, newcomer.sender_id),
        platform=platform,
        user_id=newcomer.sender_id,
        name=newcomer.sender_name,
        role=role.value,
        now=now,
        language=guess(newcomer.language, newcomer.text if isinstance(newcomer, InboundMessage) else ""),
    )


def _target_of(arrival: Arrival) -> str:
    return str(arrival.event.session_key.target) if arrival.event is not None else ""


def _tell_if_queued(tx: Tx, event_id: str, rows: Sequence[outbox.Outgoing], *, now: float) -> bool:
    row = inbox.get(tx, event_id)
    if row is None or row.state != InboxState.QUEUED:
        return False
    outbox.enqueue(tx, rows, now=now)
    return True


def _begins_nothing(_tx: Tx, _lane: str, *, now: float) -> None:
    """One broken lane must not keep a whole batch out of the store: it breaks by itself later, and alone."""


def _give_back(tx: Tx, stored: IntakeResult) -> None:
    """The adapter was cancelled meanwhile: its events stay, and their lanes are free for whoever looks next."""
    for begun in stored.begun:
        give_back(tx, begun)


def _set_aside(tx: Tx, event_id: str, reason: str, rows: Sequence[outbox.Outgoing], *, now: float) -> str:
    """End the event and say so. Returns its lane."""
    if inbox.settle(tx, event_id, state=InboxState.SET_ASIDE, reason=reason, now=now):
        outbox.enqueue(tx, rows, now=now)
    row = inbox.get(tx, event_id)
    return row.lane if row is not None else ""


def person_id_of(platform: str, sender_id: str) -> str:
    """The id a person gets at the first meeting; linking accounts may give them another later."""
    return people.first_id(platform, sender_id)


def lane_key(message: InboundMessage, config: Config) -> SessionKey:
    """Whose conversation this is: in a group each person has their own, if it is not shared; a thread all share."""
    key = message.session_key
    if key.kind is ChatKind.GROUP and not key.thread and config.has_session_per_person(key):
        return key.for_person(message.sender_id)
    return key


def _clean_press(press: Press) -> Press:
    return replace(press, data=storable(press.data[:1000]), sender_name=storable(press.sender_name))


def _clean(message: InboundMessage, redact: Redactor) -> InboundMessage:
    """Text that every store takes, without secrets of ours; megabytes are kept to what a model could read."""
    quote = message.quote
    if quote is not None:
        quote = replace(
            quote,
            text=redact(storable(quote.text[:MAX_TEXT])),
            sender_name=storable(quote.sender_name),
            message_id=storable(quote.message_id),
        )
    text = message.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}\n[cut: {len(message.text) - MAX_TEXT} more characters]"
    text, name = redact(storable(text)), redact(storable(message.sender_name))
    if quote is None and not message.attachments and (text, name) == (message.text, message.sender_name):
        return message
    files = tuple(_clean_file(each) for each in message.attachments)
    return replace(message, text=text, sender_name=name, quote=quote, attachments=files)


def _clean_file(file: Attachment) -> Attachment:
    return replace(file, file_id=storable(file.file_id), name=storable(file.name), mime=storable(file.mime))
