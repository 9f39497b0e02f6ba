"""Store a batch of events in one transaction, then start what follows from each.

The events of an adapter's batch, their dedupe keys, their verdicts and the adapter's cursor commit together. Only then
may the platform be told that the batch was taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.i18n.languages import guess
from hermes.core.keys import LOCAL, AccountKey
from hermes.core.lane import ONE_MODE, BusyMode
from hermes.core.messages import Cursor, InboundEvent, InboundMessage, Press
from hermes.core.ports import Adapter, Clock, Emit
from hermes.core.roles import PersonRole
from hermes.services.inbound.actions import Actions
from hermes.services.inbound.judge import Arrival, BatchSource, EventJudge
from hermes.services.inbound.notices import Notices
from hermes.services.inbound.owner_settings import apply_settings
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.turns.lanes import Lanes, give_back
from hermes.store import inbox, outbox, outbox_quota, people
from hermes.store.db import Database, Tx
from hermes.store.inbox import Accepted, InboxState
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.turns import TurnState

log = logging.getLogger(__name__)

NOTICE_AFTER_SECONDS = 1.0
STORE_RETRY_SECONDS = (0.1, 0.3, 1.0, 3.0)
MOST_PEOPLE = 5_000  # remembered as known to the store: a forgotten one costs one more look


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """What one transaction did: each event's fate, the targets whose window is open again, the turns it began."""

    accepted: list[Accepted]
    unparked: set[str]
    begun: list[BegunTurn]


class Begin(Protocol):
    def __call__(self, tx: Tx, lane: str, /, *, now: float) -> BegunTurn | None: ...


class Intake:
    """``notice_after_seconds``: how long a message waits for a running turn before its sender hears so.

    ``owners`` are those whom the settings name now.
    """

    def __init__(
        self,
        db: Database,
        clock: Clock,
        lanes: Lanes,
        outbox_writer: OutboxWriter,
        *,
        judge: EventJudge,
        notices: Notices,
        actions: Actions,
        owners: Callable[[], tuple[str, ...]] = lambda: (),
        on_arrival: Callable[[AccountKey, int], None] = lambda *_: None,
        notice_after_seconds: float = NOTICE_AFTER_SECONDS,
    ) -> None:
        self._db = db
        self._clock = clock
        self._lanes = lanes
        self._outbox_writer = outbox_writer
        self._judge = judge
        self._notices = notices
        self._actions = actions
        self._owners = owners
        self._owners_known: tuple[str, ...] = ()
        self._on_arrival = on_arrival
        self._notice_after_seconds = notice_after_seconds
        self._known = BoundedDict[tuple[str, str], bool](MOST_PEOPLE)  # persons already in the store

    def emit_for(self, account: AccountKey, adapter: Adapter) -> Emit:
        """The ``emit`` that this adapter is handed."""

        async def emit(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
            can = adapter.capabilities
            source = BatchSource(account, adapter.identity, can.redelivers, can.sends_per_inbound)
            await self._take(source, events, cursor)

        return emit

    async def _take(self, source: BatchSource, events: Sequence[InboundEvent], cursor: Cursor | None) -> None:
        judged = [arrival for event in events if (arrival := self._judge.judge(source, event)) is not None]
        arrivals = [arrival for arrival in judged if arrival.is_kept]
        for arrival in judged if len(judged) > len(arrivals) else ():
            if not arrival.is_kept:
                self._meet_stranger(arrival)
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

    async def _store(self, source: BatchSource, arrivals: Sequence[Arrival], cursor: Cursor | None) -> IntakeResult:
        """One transaction.

        A platform that will not offer the batch again is kept waiting until it is stored.
        """
        platform, owners = source.account.platform, self._owners()
        if owners != self._owners_known:  # everybody is looked at once more
            self._known.clear()
            self._owners_known = owners
        newcomers = [
            arrival.event
            for arrival in arrivals
            if arrival.event is not None
            and arrival.refusal is None
            and (platform, arrival.event.sender_id) not in self._known
        ]
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
                    owners,
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
                log.exception("Turn not begun", extra={"platform": source.account.platform})
                begin = _begins_nothing
            else:
                for newcomer in newcomers:
                    self._known[source.account.platform, newcomer.sender_id] = True
                return stored

    def _follow_up(self, arrival: Arrival, taken: Accepted) -> None:
        """Everything is stored: wake the lane, act, or notify a stranger. Nothing here may lose the event."""
        event = arrival.event
        if arrival.refusal is not None:
            self._meet_stranger(arrival)
        elif arrival.incoming.state is InboxState.ACTING and event is not None:
            self._actions.start(taken.event_id, arrival.incoming.lane, event)
        elif arrival.incoming.state is InboxState.QUEUED and isinstance(event, InboundMessage):
            # Treat a queued message by the busy mode of its lane, if a turn is running there.
            mode = ONE_MODE.get(arrival.incoming.kind) or self._lanes.mode_of(event.session_key, taken.busy_mode)
            # A turn is steered by its own person alone, and not ended by somebody of a lower role: they wait in line.
            may_join = taken.is_own and not taken.is_below
            may_end = taken.is_own or not taken.is_below
            if (mode is BusyMode.STEER and not may_join) or (mode is BusyMode.INTERRUPT and not may_end):
                mode = BusyMode.QUEUE
            if taken.turn_id and taken.turn_state == TurnState.WAITING:
                self._actions.spawn(self._notices.say_waits_for_approval(taken.turn_id, event))
            elif taken.turn_id and mode is BusyMode.INTERRUPT:
                self._lanes.interrupt(arrival.incoming.lane, taken.turn_id)
            elif taken.turn_id:
                loop = asyncio.get_running_loop()
                loop.call_later(
                    self._notice_after_seconds, self._notify_queued, arrival.incoming.lane, taken, event, mode
                )
            self._lanes.wake(arrival.incoming.lane)
            if (pause := arrival.incoming.ready_at - self._clock.now()) > 0:
                # The slow poll would find it too, up to a second later.
                asyncio.get_running_loop().call_later(pause, self._lanes.wake, arrival.incoming.lane)

    def _meet_stranger(self, arrival: Arrival) -> None:
        if arrival.refusal is None or not isinstance(arrival.event, InboundMessage):
            return
        if (notice := self._notices.meet_stranger(arrival.event, arrival.refusal)) is not None:
            self._actions.spawn(notice)

    def _notify_queued(self, lane: str, taken: Accepted, message: InboundMessage, mode: BusyMode) -> None:
        if not self._actions.is_closed and self._lanes.running_turn(lane) == taken.turn_id:
            self._actions.spawn(self._notices.say_queued(taken, message, mode))


def _store_batch(
    tx: Tx,
    source: BatchSource,
    arrivals: Sequence[Arrival],
    cursor: Cursor | None,
    newcomers: Sequence[InboundMessage | Press],
    owners: tuple[str, ...],
    begin: Begin,
    *,
    now: float,
) -> IntakeResult:
    account = source.account
    for newcomer in newcomers:
        role = PersonRole.OWNER if account.platform == LOCAL else PersonRole.USER
        person = people.ensure(
            tx,
            people.first_id(account.platform, newcomer.sender_id),
            platform=account.platform,
            user_id=newcomer.sender_id,
            name=newcomer.sender_name,
            role=role.value,
            now=now,
            language=guess(newcomer.language, newcomer.text if isinstance(newcomer, InboundMessage) else ""),
        )
        if account.platform != LOCAL:
            apply_settings(tx, owners, person)
    accepted = inbox.accept(tx, [arrival.incoming for arrival in arrivals], now=now)
    writers = {_target_of(arrival) for arrival in arrivals if arrival.event is not None}
    unparked = {target for target in writers if outbox.unpark(tx, target, now=now)}
    if source.sends_per_inbound:
        new = {_target_of(arrival) for arrival, taken in zip(arrivals, accepted, strict=True) if taken.is_new}
        for target in new & writers:
            outbox_quota.allow(tx, target, sends=source.sends_per_inbound)
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


def _target_of(arrival: Arrival) -> str:
    return str(arrival.event.session_key.target) if arrival.event is not None else ""


def _begins_nothing(_tx: Tx, _lane: str, *, now: float) -> None:
    """Begin no turn: a broken lane must not keep a whole batch out of the store."""


def _give_back(tx: Tx, stored: IntakeResult) -> None:
    """The adapter was cancelled meanwhile: its events stay, and their lanes are free for whoever looks next."""
    for begun in stored.begun:
        give_back(tx, begun)
