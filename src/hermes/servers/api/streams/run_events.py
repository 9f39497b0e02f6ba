"""What a run does, told as typed events: numbered, kept for a while, and read by any number of clients.

A feed listens from the moment its run is stored, so a client that connects late gets what happened so far. Feeds live
in memory: after a restart, or when too much has happened, a ``run.snapshot`` stands in for what is not there any more.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from typing import assert_never

import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.messages import Json
from hermes.core.ports import Clock
from hermes.servers.api.streams.turn_stream import BATCH_SECONDS
from hermes.servers.api.transcripts import message_id, trimmed
from hermes.services.events import (
    ApprovalRequested,
    EventBus,
    ReasoningArrived,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from hermes.store.ids import new_id

RUN = "run_"
SNAPSHOT = "run.snapshot"
MAX_GATHERED_CHARS = 64 * 1024
"""Text that is gathered for one event at most, however quickly it comes."""
EVENT_BYTES = 100
"""What an event takes in memory beside its text, about."""


@dataclass(frozen=True, slots=True)
class FeedLimits:
    """Of one feed, and of all together. Whatever does not fit goes, the oldest first.

    ``event_bytes`` is for all events of one feed; of an event that is larger by itself, the beginnings of its texts are
    kept. ``ended``: feeds of runs that have ended. The store tells of such a run too, as a snapshot, so few are kept.
    """

    events: int = 1000
    event_bytes: int = 512 * 1024
    feeds: int = 1000
    ended: int = 100
    all_bytes: int = 16 * 1024 * 1024


FEED_LIMITS = FeedLimits()


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One event, ready to be sent."""

    sequence: int
    kind: str
    raw: bytes


def run_id_of(event_id: str) -> str:
    return f"{RUN}{event_id}"


class RunFeed:
    """The events of one run. ``saw`` is called on the bus; readers ask ``after`` and wait with ``changed``.

    ``is_over``: the turn has ended; ``is_complete``: its last event has been told too; ``is_left``: nobody listens to
    the turn any more, though it may go on, since the server closes.
    """

    def __init__(
        self,
        event_id: str,
        session_id: str,
        clock: Clock,
        *,
        batch_seconds: float = BATCH_SECONDS,
        limits: FeedLimits = FEED_LIMITS,
        on_growth: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.event_id = event_id
        self.session_id = session_id
        self.turn_id = ""
        self.is_over = False
        self.is_complete = False
        self.is_left = False
        self.readers = 0
        self.size = 0  # bytes that are kept, of events told and of events held back
        self.name = new_id("f")  # tells our numbers from those of an earlier process
        self._clock = clock
        self._batch_seconds = batch_seconds
        self._limits = limits
        self._on_growth = on_growth
        self._events: deque[RunEvent] = deque()
        self._sequence = 0
        self._segment = 1
        self._text: list[str] = []
        self._text_size = 0
        self._next_text_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._calls = BoundedDict[str, str](limits.events)  # started and not ended: id and name
        self._told_calls = BoundedDict[str, None](limits.events)
        self._held: deque[TurnEvent] | None = None
        self._changed = asyncio.Event()

    # What happens

    def begin(self) -> None:
        self.tell("run.queued")

    def hold(self, turn_id: str) -> None:
        """Begin in the middle of a turn: keep what happens until ``resume`` says what happened before."""
        self.turn_id = turn_id
        self._held = deque()

    def resume(self, turn_id: str, snapshot: Json, *, texts: Sequence[str], calls: Iterable[str]) -> None:
        """What was before is in the snapshot and is not told again: the messages ``said``, the answered ``calls``."""
        held, self._held = self._held or (), None
        self._grow(-sum(_size_of(event) for event in held))
        self.turn_id = turn_id
        self._segment = len(texts) + 1
        self._told_calls.update(dict.fromkeys(calls))
        self.tell(SNAPSHOT, **snapshot)
        for event in held:
            if not (isinstance(event, SegmentEnded) and event.text in texts):
                self.saw(event)

    def saw(self, event: TurnEvent) -> None:
        if isinstance(event, TurnStarted) and self.event_id in event.event_ids:
            self.turn_id = event.turn_id
        if not self.turn_id or event.turn_id != self.turn_id or self.is_over or isinstance(event, ReasoningArrived):
            return
        if self._held is not None:
            self._hold_back(self._held, event)
            return
        if isinstance(event, TextArrived):
            self._gather(event.text)
            return
        self._say_text()
        match event:
            case TurnStarted():
                self.tell("run.started", resumed=event.is_resumed)
            case SegmentEnded():
                self._end_segment(event.text)
            case ToolStarted():
                self._start_call(event)
            case ToolEnded():
                self._end_call(event.call_id, event.outcome)
            case ApprovalRequested():
                approval = {"id": event.approval_id, "code": event.code, "question": event.question}
                self.tell("run.waiting_approval", approval=approval)
            case TurnEnded():
                self.end()
            case _:
                assert_never(event)

    def _hold_back(self, held: deque[TurnEvent], event: TurnEvent) -> None:
        """Keep an event for later. If there are too many, the newest are kept."""
        held.append(event)
        self._grow(_size_of(event))
        while len(held) > self._limits.events or (self.size > self._limits.event_bytes and len(held) > 1):
            self._grow(-_size_of(held.popleft()))

    def end(self) -> None:
        """The run has ended. Its last event is told by ``conclude``, when somebody is there to hear it."""
        self._say_text()
        self.is_over = True
        self._wake()

    def leave(self) -> None:
        self._say_text()
        self.is_left = True
        self._wake()

    def close(self) -> int:
        """Release the events. Returns the bytes that were counted."""
        self._on_growth = lambda _: None
        self._events.clear()
        self._held = None
        size, self.size = self.size, 0
        return size

    def conclude(self, kind: str, body: Json, *, last_words: str = "", number: int = 0) -> None:
        """The last event, once: the calls that were cut off, the last message, then how it ended.

        ``number`` is that of the last message; one that stands in the snapshot already keeps its id.
        """
        if self.is_complete:
            return
        for call_id in list(self._calls):
            self._end_call(call_id, "interrupted")
        if last_words:
            self.tell("assistant.completed", number or self._segment, text=last_words)
        self.tell(kind, **body)
        self.is_complete = True
        self._wake()

    def _end_segment(self, text: str) -> None:
        if text:
            self.tell("assistant.completed", self._segment, text=text)
        self._segment += 1

    def _start_call(self, event: ToolStarted) -> None:
        """Exactly two events for each call, also when it is run again after a restart."""
        if event.call_id in self._told_calls:
            return
        self._told_calls[event.call_id] = None
        self._calls[event.call_id] = event.name
        arguments = trimmed(event.arguments)
        self.tell("tool.started", self._segment - 1, tool=event.name, call_id=event.call_id, arguments=arguments)

    def _end_call(self, call_id: str, outcome: str) -> None:
        name = self._calls.pop(call_id, None)
        if name is not None:
            self.tell("tool.completed", self._segment - 1, tool=name, call_id=call_id, outcome=outcome)

    # Text: the first piece at once, then gathered

    def _gather(self, text: str) -> None:
        self._text.append(text)
        self._text_size += len(text)
        if self._timer is not None and self._text_size <= MAX_GATHERED_CHARS:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._next_text_at or self._text_size > MAX_GATHERED_CHARS:
            self._say_text()
        else:
            self._timer = loop.call_at(self._next_text_at, self._say_text)

    def _say_text(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._text:
            delta = "".join(self._text)
            self._text.clear()
            self._text_size = 0
            self._next_text_at = asyncio.get_running_loop().time() + self._batch_seconds
            self.tell("assistant.delta", self._segment, delta=delta)

    # Keeping

    def tell(self, kind: str, segment: int = 0, /, **fields: object) -> None:
        self._sequence += 1
        raw = self.dressed(kind, self._sequence, segment, fields)
        if len(raw) > self._limits.event_bytes:
            raw = self.dressed(kind, self._sequence, segment, _shortened(fields))
        self._events.append(RunEvent(self._sequence, kind, raw))
        self._grow(len(raw))
        while len(self._events) > self._limits.events or (
            self.size > self._limits.event_bytes and len(self._events) > 1
        ):
            self._drop_oldest()
        self._wake()

    def shrink(self, most_bytes: int) -> None:
        """Drop the oldest events until so many bytes are left; a reader who missed them gets a snapshot."""
        while self.size > most_bytes and self._events:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        self._grow(-len(self._events.popleft().raw))

    def _grow(self, by: int) -> None:
        self.size += by
        self._on_growth(by)

    def dressed(self, kind: str, sequence: int, segment: int, fields: Json) -> bytes:
        """An event as it goes over the wire."""
        data = {
            "type": kind,
            "sequence": sequence,
            "time": round(self._clock.now(), 3),
            "run_id": run_id_of(self.event_id),
            "session_id": self.session_id,
            "turn_id": self.turn_id or None,
            "message_id": message_id(self.turn_id, segment) if segment else None,
            **fields,
        }
        return b"id: %s-%d\nevent: %s\ndata: %s\n\n" % (self.name.encode(), sequence, kind.encode(), orjson.dumps(data))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # Reading

    @property
    def first(self) -> int:
        """The number of the oldest event that is still kept."""
        return self._events[0].sequence if self._events else self._sequence + 1

    def after(self, sequence: int) -> list[RunEvent]:
        return [event for event in self._events if event.sequence > sequence] if sequence < self._sequence else []

    def place_of(self, last_event_id: str) -> int:
        """The number of the last event a client has seen; 0 where it has seen none of ours."""
        name, _, number = last_event_id.rpartition("-")
        is_ours = name == self.name and number.isascii() and number.isdigit() and len(number) < 16
        return int(number) if is_ours else 0

    async def changed(self, after: int, seconds: float) -> bool:
        """Wait for more than ``after``. False when nothing came for so long."""
        if self._sequence > after or self.is_over or self.is_left:
            return True
        waiting = self._changed
        try:
            async with asyncio.timeout(seconds):
                await waiting.wait()
        except TimeoutError:
            return False
        return True


def _size_of(event: TurnEvent) -> int:
    """About the bytes that an event takes while it is held back."""
    match event:
        case TextArrived() | SegmentEnded():
            return EVENT_BYTES + len(event.text)
        case ToolStarted():
            return EVENT_BYTES + len(event.arguments)
        case _:
            return EVENT_BYTES


def _shortened(fields: Mapping[str, object]) -> Json:
    """Shorten the texts of an event that is too large to keep; the run itself has the rest."""
    short = {name: trimmed(value) if isinstance(value, str) else value for name, value in fields.items()}
    return {name: None if isinstance(value, list | dict) else value for name, value in short.items()}


@dataclass(slots=True)
class _OpenFeed:
    feed: RunFeed
    owner: str
    watching: ExitStack = field(default_factory=ExitStack)


class RunFeeds:
    """The feeds of this process, bounded at all times.

    Feeds without readers are dropped first; a snapshot replaces them. Then the oldest events are dropped, then the
    oldest feed of the caller with the most feeds.
    """

    def __init__(self, bus: EventBus, clock: Clock, limits: FeedLimits = FEED_LIMITS) -> None:
        self._bus = bus
        self._clock = clock
        self._limits = limits
        self._kept: OrderedDict[str, _OpenFeed] = OrderedDict()
        self.size = 0  # bytes of all feeds
        self.making = asyncio.Lock()

    def open(self, event_id: str, session_id: str, lane: str) -> RunFeed:
        """Listen for a run, from before it is stored."""
        self.discard(event_id)
        feed = RunFeed(event_id, session_id, self._clock, limits=self._limits, on_growth=self._grew)
        kept = self._kept[event_id] = _OpenFeed(feed, lane.partition(":p=")[2])
        kept.watching.enter_context(self._bus.watch(self._saw(kept), lane, event_id=event_id))
        self._make_room()
        return feed

    def _saw(self, kept: _OpenFeed) -> Callable[[TurnEvent], None]:
        def saw(event: TurnEvent) -> None:
            kept.feed.saw(event)
            if kept.feed.is_over:
                kept.watching.close()

        return saw

    def find(self, event_id: str) -> RunFeed | None:
        kept = self._kept.get(event_id)
        return kept.feed if kept is not None else None

    def ended(self, event_id: str) -> None:
        """It ended without a word on the bus: it was stopped before it began."""
        kept = self._kept.get(event_id)
        if kept is not None and not kept.feed.is_over:
            kept.feed.end()
            kept.watching.close()

    def discard(self, event_id: str) -> None:
        kept = self._kept.pop(event_id, None)
        if kept is not None:
            kept.watching.close()
            kept.feed.leave()
            self.size -= kept.feed.close()

    def close(self) -> None:
        for event_id in list(self._kept):
            self.discard(event_id)

    def _grew(self, by: int) -> None:
        self.size += by
        if by > 0 and self.size > self._limits.all_bytes:
            self._make_room()

    def _make_room(self) -> None:
        ended = [event_id for event_id, kept in self._kept.items() if kept.feed.is_over and not kept.feed.readers]
        for event_id in ended[: -self._limits.ended]:
            self.discard(event_id)
        for event_id, kept in list(self._kept.items())[:-1]:
            if not self._has_too_many() and self.size <= self._limits.all_bytes:
                return
            if not kept.feed.readers:
                self.discard(event_id)
        if self.size > self._limits.all_bytes:
            share = self._limits.all_bytes // max(1, len(self._kept))
            for kept in list(self._kept.values()):
                kept.feed.shrink(share)
        while self._has_too_many():
            owners = Counter(kept.owner for kept in self._kept.values())
            most = owners.most_common(1)[0][0]
            self.discard(next(event_id for event_id, kept in self._kept.items() if kept.owner == most))

    def _has_too_many(self) -> bool:
        return len(self._kept) > self._limits.feeds
