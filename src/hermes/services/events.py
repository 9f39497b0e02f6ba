"""Publish what a turn does to watchers in this process: plain callables that must not block. Nothing is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.requests import TurnResult


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """``tool_progress`` is the chat's own choice, '' where it made none."""

    lane: str
    turn_id: str
    is_resumed: bool = False
    event_ids: tuple[str, ...] = ()
    tool_progress: str = ""


@dataclass(frozen=True, slots=True)
class TextArrived:
    lane: str
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningArrived:
    """A piece of the model's reasoning: for requests of the API, and for those who asked for it in a chat."""

    lane: str
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class SegmentEnded:
    """The model finished one message of several (it calls tools now)."""

    lane: str
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    lane: str
    turn_id: str
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    lane: str
    turn_id: str
    call_id: str
    name: str
    outcome: str
    result: str = ""


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    lane: str
    turn_id: str
    approval_id: str
    code: str
    question: str


@dataclass(frozen=True, slots=True)
class TurnEnded:
    lane: str
    turn_id: str
    state: str
    text: str
    reason: str = ""
    result: TurnResult = field(default_factory=lambda: TurnResult("", ""))


@dataclass(frozen=True, slots=True)
class ModelCalled:
    """One answer of a model, or why there was none. ``outcome`` is 'ok' or the kind of the error."""

    turn_id: str
    model: str
    outcome: str
    seconds: float
    prompt_tokens: int = 0
    completion_tokens: int = 0


TurnEvent = (
    TurnStarted
    | TextArrived
    | ReasoningArrived
    | SegmentEnded
    | ToolStarted
    | ToolEnded
    | ApprovalRequested
    | TurnEnded
)
Watcher = Callable[[TurnEvent], None]
ReasoningWatcher = Callable[[ReasoningArrived], None]
ModelWatcher = Callable[[ModelCalled], None]
EndWatcher = Callable[[TurnEnded], None]


class EventBus:
    """``on_interest`` is called when somebody begins to watch a lane."""

    def __init__(self) -> None:
        self._everywhere: list[Watcher] = []
        self._of_ends: list[EndWatcher] = []
        self._of_relayed: list[Watcher] = []
        self._by_lane: dict[str, list[Watcher]] = {}
        self._of_reasoning: dict[str, list[ReasoningWatcher]] = {}
        self._of_models: list[ModelWatcher] = []
        self._awaited: dict[str, list[str]] = {}  # by lane: the events whose turns are waited for
        self.on_interest: Callable[[], None] | None = None

    def publish(self, event: TurnEvent) -> None:
        for watcher in (*self._everywhere, *self._by_lane.get(event.lane, ())):
            watcher(event)
        if isinstance(event, TurnEnded):
            for watcher_of_ends in self._of_ends:
                watcher_of_ends(event)

    @contextmanager
    def watch_ends(self, watcher: EndWatcher) -> Iterator[None]:
        """Call ``watcher`` at the end of every turn here. Most services need no more, and words arrive often."""
        self._of_ends.append(watcher)
        try:
            yield
        finally:
            self._of_ends.remove(watcher)

    def publish_model(self, call: ModelCalled) -> None:
        for watcher in self._of_models:
            watcher(call)

    @contextmanager
    def watch_models(self, watcher: ModelWatcher) -> Iterator[None]:
        """Call ``watcher`` after each call of a model, for those who count and time them."""
        self._of_models.append(watcher)
        try:
            yield
        finally:
            self._of_models.remove(watcher)

    def publish_reasoning(self, lane: str, turn_id: str, text: str) -> None:
        for watcher in self._of_reasoning.get(lane, ()):
            watcher(ReasoningArrived(lane, turn_id, text))

    @contextmanager
    def watch_reasoning(self, watcher: ReasoningWatcher, lane: str) -> Iterator[None]:
        """Call ``watcher`` with the model's reasoning in one lane. Where nobody watches, it is not even built."""
        watchers = self._of_reasoning.setdefault(lane, [])
        watchers.append(watcher)
        try:
            yield
        finally:
            watchers.remove(watcher)
            if not watchers:
                self._of_reasoning.pop(lane, None)

    def relay(self, event: TurnEvent) -> None:
        """Tell those who watch the lane of an event of another node. That node's own services have seen it there."""
        for watcher in (*self._of_relayed, *self._by_lane.get(event.lane, ())):
            watcher(event)

    @contextmanager
    def watch_relayed(self, watcher: Watcher) -> Iterator[None]:
        """Call ``watcher`` for the events of other nodes that somebody here follows."""
        self._of_relayed.append(watcher)
        try:
            yield
        finally:
            self._of_relayed.remove(watcher)

    def is_watched(self, lane: str) -> bool:
        return lane in self._by_lane

    def watched_lanes(self) -> list[str]:
        return list(self._by_lane)

    def awaited_in(self, lane: str) -> list[str]:
        """The events of this lane whose turns somebody waits for."""
        return self._awaited.get(lane, [])

    @contextmanager
    def watch(self, watcher: Watcher, lane: str | None = None, *, event_id: str = "") -> Iterator[None]:
        """Call ``watcher`` for the events of one lane, or of all. ``event_id``: its turn is the one waited for."""
        watchers = self._everywhere if lane is None else self._by_lane.setdefault(lane, [])
        watchers.append(watcher)
        if lane is not None and event_id:
            self._awaited.setdefault(lane, []).append(event_id)
        if lane is not None and self.on_interest is not None:
            self.on_interest()
        try:
            yield
        finally:
            watchers.remove(watcher)
            if lane is not None and event_id:
                self._awaited[lane].remove(event_id)
            if lane is not None and not watchers:
                self._by_lane.pop(lane, None)
                self._awaited.pop(lane, None)
