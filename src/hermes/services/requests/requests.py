"""Take requests of the API through the same inbox, lanes and turns as a chat.

Whoever asks follows the turn over the event bus. Going away does not stop it, unless that was asked for. What
became of a request is read from the store, so it can be told after a restart too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.lane import DOORS
from hermes.core.ports import Clock
from hermes.core.requests import AgentRequest, RequestKind, TurnResult
from hermes.core.roles import PersonRole, capped
from hermes.core.secret import Redactor
from hermes.core.text import storable
from hermes.services.events import EventBus, SegmentEnded, TextArrived, TurnEnded, TurnEvent, TurnStarted
from hermes.services.inbound.intake import MOST_PEOPLE, Begin
from hermes.services.turns import StopReason
from hermes.services.turns.lanes import Lanes, give_back
from hermes.store import approvals, codec, inbox, outbox, people
from hermes.store.api import api_keys, idempotency, pictures
from hermes.store.approvals import Approval
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.inbox import InboxRow, InboxState, Incoming
from hermes.store.outbox import Outgoing
from hermes.store.turns import end as turn_end
from hermes.store.turns import turns
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.end import CardWriter, Ending
from hermes.store.turns.turns import Turn, TurnState

PLATFORM = api_keys.PLATFORM
CLIENT_GONE = "client gone"
LOOK_AGAIN_SECONDS = 60.0
LARGE_CHARS = 128 * 1024
"""A request with more text is encoded beside the loop."""
CLOCK_TICK_SECONDS = 0.001  # a loop may call a timer that much early


@dataclass(slots=True)
class RequestHandle:
    """A request that was accepted, and the events of the turn that answers it as they come."""

    event_id: str
    lane: str
    is_new: bool = True
    turn_id: str = ""
    only: tuple[type[TurnEvent], ...] = ()
    """The kinds of events that whoever follows wants; () for all of them."""
    _partial: list[str] = field(default_factory=list)  # of the message that the model writes now
    _repeated: str = ""  # what a turn that was taken up again is expected to say once more
    _events: deque[TurnEvent] = field(default_factory=deque)
    _waiter: asyncio.Future[None] | None = None
    _waits_until: float = 0.0
    _timer: asyncio.TimerHandle | None = None

    def saw(self, event: TurnEvent) -> None:
        """Called on the bus for everything in the lane; only the turn of this request is kept."""
        if isinstance(event, TurnStarted) and self.event_id in event.event_ids:
            self.turn_id = event.turn_id
        if event.turn_id == self.turn_id and (not self.only or isinstance(event, self.only)):
            new = self._new_in(event)
            if new is None:
                return
            self._events.append(new)
            if self._waiter is not None:
                _wake(self._waiter)

    def _new_in(self, event: TurnEvent) -> TurnEvent | None:
        """Leave out text that was passed on before its turn was taken up again, here or by another node."""
        if isinstance(event, TextArrived):
            if self._repeated:
                event = self._without_repeat(event)
            self._partial.append(event.text)
            return event if event.text else None
        if isinstance(event, SegmentEnded):
            self._partial.clear()
        elif isinstance(event, TurnStarted) and self._partial:
            self._repeated = "".join(self._partial)
        return event

    def _without_repeat(self, event: TextArrived) -> TextArrived:
        expected, text = self._repeated, event.text
        if expected.startswith(text):
            self._repeated = expected[len(text) :]
            return replace(event, text="")
        self._repeated = ""
        if text.startswith(expected):
            return replace(event, text=text[len(expected) :])
        # The model says something else this time: its message begins anew, below what stands there already.
        before = "".join(self._partial)
        self._partial.clear()
        return replace(event, text=f"\n\n{before[: len(before) - len(expected)]}{text}")

    async def within(self, seconds: float) -> TurnEvent | None:
        """Wait for the next event; None when none came. One waiter at a time."""
        if not self._events:
            # By hand, because this is done for every piece of every stream: asyncio.timeout costs more than the rest,
            # and so does a timer for each wait. One serves them all, and looks again where it came too early.
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            self._waits_until = loop.time() + seconds
            if self._timer is None or self._timer.when() > self._waits_until:
                self._set_timer(loop)
            try:
                await waiter
            finally:
                self._waiter = None
        return self._events.popleft() if self._events else None

    def _set_timer(self, loop: asyncio.AbstractEventLoop) -> None:
        self.close()
        self._timer = loop.call_at(self._waits_until, self._time_is_up, loop)

    def _time_is_up(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._waiter is None:
            return
        if loop.time() + CLOCK_TICK_SECONDS < self._waits_until:
            self._set_timer(loop)
        else:
            _wake(self._waiter)

    def close(self) -> None:
        """Nobody follows any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def take_only(self, *kinds: type[TurnEvent]) -> None:
        """Leave out every other kind of event from now on, also those that have come already."""
        self.only = kinds
        self._events = deque(event for event in self._events if isinstance(event, kinds))

    @property
    def has_events(self) -> bool:
        return bool(self._events)

    async def has_news(self, seconds: float) -> bool:
        """Wait for an event without taking it. False when none came."""
        event = await self.within(seconds)
        if event is not None:
            self._events.appendleft(event)
        return event is not None

    async def early_end(self, seconds: float) -> TurnResult | None:
        """Wait for the first event after the start, without taking any. Return its result, if the turn ended."""
        seen: list[TurnEvent] = []
        while not seen or isinstance(seen[-1], TurnStarted):
            event = await self.within(seconds)
            if event is None:
                break
            seen.append(event)
        self._events.extendleft(reversed(seen))
        return seen[-1].result if seen and isinstance(seen[-1], TurnEnded) else None

    def ready(self) -> list[TurnEvent]:
        """Take the events that have come, without waiting."""
        events = list(self._events)
        self._events.clear()
        return events

    async def result(self) -> TurnResult:
        """Wait for the end of the turn, passing over what happens before."""
        while True:
            event = await self.within(LOOK_AGAIN_SECONDS)
            if isinstance(event, TurnEnded):
                return event.result


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


@dataclass(frozen=True, slots=True)
class RequestState:
    """The stored state of a request: its event, its turn, its pending approvals."""

    row: InboxRow
    turn: Turn | None
    pending: tuple[Approval, ...] = ()

    @property
    def status(self) -> str:
        """queued, running, waiting_approval, completed, failed or cancelled."""
        if self.row.state == InboxState.QUEUED:
            return "queued"
        if self.row.state == InboxState.TAKEN:
            return "waiting_approval" if self.pending else "running"
        if self.row.state == InboxState.ANSWERED:
            return "completed"
        stopped = self.turn is not None and self.turn.state in (TurnState.STOPPED, TurnState.INTERRUPTED)
        return "cancelled" if stopped or self.row.reason in (CLIENT_GONE, StopReason.STOPPED.value) else "failed"


class Requests:
    def __init__(self, db: Database, clock: Clock, bus: EventBus, lanes: Lanes, redact: Redactor | None = None) -> None:
        self._db = db
        self._clock = clock
        self._bus = bus
        self._lanes = lanes
        self._redact = redact or Redactor()
        self._met = BoundedDict[str, PersonRole | None](MOST_PEOPLE)  # who asked before, and the role they had

    @asynccontextmanager
    async def ask(
        self,
        request: AgentRequest,
        *,
        key: str = "",
        event_id: str = "",
        role: PersonRole | None = None,
        at_most: PersonRole | None = None,
        attempt: str = "",
        shown: Sequence[Outgoing] = (),
    ) -> AsyncIterator[RequestHandle]:
        """Store a request and follow it. Leaving the block ends the following, not the turn.

        ``key`` names the request for dedupe: asking twice with one key makes one turn, and ``is_new`` says so.
        ``attempt`` is the fingerprint by which ``attempts_of`` finds the request when it is sent again.
        ``role`` is the caller's role; without it, an unknown caller is a user. The turn has no more rights than that,
        also if the caller's account is linked to a person of a higher role. ``at_most`` limits this one turn, if
        another turn or a command asks on the caller's behalf. ``shown`` are the rows that show the request in the chat
        of its lane; they are stored with it.
        """
        handle = RequestHandle(event_id or new_id("ev"), str(request.session_key))
        with self._bus.watch(handle.saw, handle.lane, event_id=handle.event_id):
            handle.is_new = await self._accept(request, handle, key, attempt, role, at_most, shown)
            try:
                yield handle
            finally:
                handle.close()

    async def submit(
        self,
        request: AgentRequest,
        *,
        key: str = "",
        event_id: str = "",
        role: PersonRole | None = None,
        at_most: PersonRole | None = None,
        shown: Sequence[Outgoing] = (),
    ) -> str:
        """Store a request that nobody follows; returns its event id."""
        async with self.ask(request, key=key, event_id=event_id, role=role, at_most=at_most, shown=shown) as handle:
            return handle.event_id

    def redact(self, text: str) -> str:
        """Return the text without our own secrets: no model reads them."""
        return self._redact(text)

    async def meet(self, sender_id: str, role: PersonRole | None) -> None:
        """Make sure that whoever asks or answers is a person, and has this role. Cheap after the first time."""
        if sender_id in self._met and role in (None, self._met[sender_id]):
            return
        await self._db.write(_meet, sender_id, role, now=self._clock.now())
        self._met[sender_id] = role

    async def _accept(
        self,
        request: AgentRequest,
        handle: RequestHandle,
        key: str,
        attempt: str,
        role: PersonRole | None,
        at_most: PersonRole | None,
        shown: Sequence[Outgoing],
    ) -> bool:
        if not request.person_id:
            await self.meet(request.sender_id, role)
        # What comes by a door into the chat of a platform is an event of the door.
        platform = request.session_key.platform if request.session_key.platform in DOORS else PLATFORM
        is_large = sum(len(message.text) for message in request.messages) > LARGE_CHARS
        if is_large or any(message.images for message in request.messages):
            body, found = await asyncio.to_thread(_encoded, request, self._redact)
        else:
            body, found = _encoded(request, self._redact)
        incoming = Incoming(
            id=handle.event_id,
            keys=(f"{platform}/{storable(key)}",) if key else (),
            lane=handle.lane,
            platform=platform,
            account="main",
            kind="request",
            sender_id=request.sender_id,
            body=body,
            state=InboxState.QUEUED,
            ready_at=self._clock.now(),
            role=_lower(role, at_most),
            attempt=attempt,
        )
        is_new, begun = await self._db.claim(
            _accept, incoming, found, shown, self._lanes.begin_within, now=self._clock.now(), if_gone=_give_back
        )
        if begun is not None:
            self._lanes.adopt(begun)
        else:
            self._lanes.wake(handle.lane)
        return is_new

    async def state_of(self, event_id: str) -> RequestState | None:
        return await self._db.read(_state, event_id)

    async def attempts_of(self, attempt: str, *, since: float) -> list[str]:
        """The events that were asked for with this fingerprint since then, the newest first."""
        return await self._db.read(idempotency.attempts_of, attempt, since=since)

    async def attempts_between(self, since: float, until: float) -> frozenset[str]:
        """Return the fingerprints of all requests received in this period."""
        return frozenset(await self._db.read(idempotency.attempts_between, since, until))

    @asynccontextmanager
    async def join(self, event_id: str) -> AsyncIterator[tuple[RequestHandle, RequestState] | None]:
        """Follow a request that was asked for before, from here on; None: there is no such request.

        The state is read after the following began: the end comes by one of the two.
        """
        found = await self.state_of(event_id)
        if found is None:
            yield None
            return
        handle = RequestHandle(event_id, found.row.lane, is_new=False, turn_id=found.row.turn_id)
        with self._bus.watch(handle.saw, handle.lane, event_id=event_id):
            state = await self.state_of(event_id) or found
            handle.turn_id = handle.turn_id or state.row.turn_id
            try:
                yield handle, state
            finally:
                handle.close()

    async def reopen(self, event_id: str) -> bool:
        """Let the turn of a request that failed or was stopped go on from its last step. False: it cannot."""
        from hermes.store.turns import reopen  # a start needs it not

        if not await self._db.write(reopen.reopen, event_id, now=self._clock.now()):
            return False
        if (state := await self.state_of(event_id)) is not None:
            self._lanes.wake(state.row.lane)
        return True

    async def stop(self, event_id: str) -> RequestState | None:
        """End a request wherever it is: queued, running or waiting. One that has ended stays as it is."""
        state = await self.state_of(event_id)
        if state is None or state.status in ("completed", "failed", "cancelled"):
            return state
        if state.turn is not None and self._lanes.interrupt(state.row.lane, state.turn.id, StopReason.STOPPED):
            return await self.state_of(event_id)
        ended = await self._db.write(_stop, event_id, self._lanes.cards, now=self._clock.now())
        if ended:
            # A turn that slept has no task that could publish its end.
            stopped, reason = TurnState.STOPPED.value, StopReason.STOPPED.value
            result = TurnResult(ended, stopped, reason=reason, finish_reason="error")
            self._bus.publish(TurnEnded(state.row.lane, ended, stopped, "", reason, result))
        self._lanes.wake(state.row.lane)  # what waited behind it goes on
        return await self.state_of(event_id)

    async def forget_gone_clients(self) -> int:
        """At start: requests whose client waited on a connection that died with the last process."""
        return await self._db.write(_set_aside_gone, now=self._clock.now())


def _lower(role: PersonRole | None, at_most: PersonRole | None) -> str:
    """Return the lower of a caller's role and a limit; '' where neither is given."""
    limit = at_most.value if at_most is not None else ""
    return capped(role.value, limit) if role is not None else limit


def _encoded(request: AgentRequest, redact: Redactor) -> tuple[str, dict[str, str]]:
    """Return the request as it is stored, without our secrets, and its pictures, which are stored apart."""
    messages, found = pictures.take_out(request.messages)
    if found:
        request = replace(request, messages=messages)
    body = codec.dump(request)
    if redact(body) != body:  # whoever sent one of our secrets along, no model reads it
        body = codec.dump(_without_secrets(request, redact))
    return body, found


def _accept(
    tx: Tx, incoming: Incoming, found: dict[str, str], shown: Sequence[Outgoing], begin: Begin, *, now: float
) -> tuple[bool, BegunTurn | None]:
    """Store the request and its pictures, and begin its turn, if its lane is idle: one transaction."""
    pictures.keep(tx, found, now=now)
    [accepted] = inbox.accept(tx, [incoming], now=now)
    if shown and accepted.is_new:
        outbox.enqueue(tx, shown, now=now)
    return accepted.is_new, begin(tx, incoming.lane, now=now) if accepted.is_new else None


def _give_back(tx: Tx, accepted: tuple[bool, BegunTurn | None]) -> None:
    give_back(tx, accepted[1])


def _state(tx: Tx, event_id: str) -> RequestState | None:
    row = inbox.get(tx, event_id)
    if row is None:
        return None
    turn = turns.get(tx, row.turn_id) if row.turn_id else None
    pending = [asked for asked in approvals.of_turn(tx, row.turn_id) if asked.state == "pending"] if turn else []
    return RequestState(row, turn, tuple(pending))


def _stop(tx: Tx, event_id: str, cards: CardWriter, *, now: float) -> str:
    """End what nobody has in hand: a row in the queue, or a turn that sleeps. Returns the id of such a turn, or ''."""
    row = inbox.get(tx, event_id)
    if row is None:
        return ""
    reason = StopReason.STOPPED.value
    if row.state == InboxState.QUEUED:
        inbox.settle(tx, event_id, state=InboxState.SET_ASIDE, reason=reason, now=now)
        return ""
    if row.state != InboxState.TAKEN:
        return ""
    ending = Ending(TurnState.STOPPED, InboxState.SET_ASIDE, reason, cards=cards)
    return turn_end.cancel_waiting(tx, row.lane, ending, now=now, only=row.turn_id)


def _meet(tx: Tx, sender_id: str, role: PersonRole | None, *, now: float) -> None:
    person_id = people.first_id(PLATFORM, sender_id)
    person = people.ensure(
        tx,
        person_id,
        platform=PLATFORM,
        user_id=sender_id,
        name=api_keys.label_of(tx, sender_id),
        role=(role or PersonRole.USER).value,
        now=now,
    )
    # Somebody who was linked to another person keeps that one's role.
    if role is not None and person.id == person_id and person.role != role.value:
        people.set_role(tx, person_id, role.value)


def _set_aside_gone(tx: Tx, *, now: float) -> int:
    count = 0
    for row in inbox.open_requests(tx, PLATFORM):
        if not _is_chat(row):
            continue
        turn = turns.get(tx, row.turn_id) if row.turn_id else None
        if turn is not None and turn.state == TurnState.WAITING:
            continue  # its question was put to a person, who may answer it with the next message
        count += 1
        if row.turn_id:
            turn_end.cancel_waiting(tx, row.lane, Ending(TurnState.STOPPED, InboxState.SET_ASIDE, CLIENT_GONE), now=now)
        else:
            inbox.settle(tx, row.id, state=InboxState.SET_ASIDE, reason=CLIENT_GONE, now=now)
    return count


def _is_chat(row: InboxRow) -> bool:
    """Whether a row is a chat request; an unreadable one is left to its lane."""
    try:
        return codec.load_request(row.body).kind is RequestKind.CHAT
    except ValueError:
        return False


def _without_secrets(request: AgentRequest, redact: Redactor) -> AgentRequest:
    """Redact each text alone, so that a match never spans two of them."""
    messages = tuple(
        replace(
            message,
            text=redact(message.text),
            tool_calls=tuple(replace(call, arguments=redact(call.arguments)) for call in message.tool_calls),
        )
        for message in request.messages
    )
    options = replace(request.options, instructions=redact(request.options.instructions))
    return replace(request, messages=messages, options=options)
