"""Show a turn that runs on another node to clients of this one.

The node that runs a turn remembers what the turn has shown (``TurnRecorder``) and writes it down a few times a second
while somebody watches. The node whose client watches reads it and passes it on, as events of its own bus
(``TurnFollower``). Pieces of text come coarser that way. The end is not left to this: a turn that ended without a word
is found in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from dataclasses import asdict, field
from typing import Any

import msgspec
import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, NodeIsGoneError, StoreIsDownError
from hermes.services.cluster.calls import Json, NodeCalls
from hermes.services.events import (
    ApprovalRequested,
    EventBus,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from hermes.services.requests.stored_result import stored_result
from hermes.store import inbox
from hermes.store.cluster import turn_progress
from hermes.store.cluster.turn_progress import LaneOwner, StoredProgress
from hermes.store.db import Database, Tx
from hermes.store.turns import turns
from hermes.store.turns.turns import TurnState

log = logging.getLogger(__name__)

WRITE_SECONDS = 0.3
WATCH_SECONDS = 15.0
RENEW_SECONDS = 5.0
LOOK_SECONDS = 0.5
SETTLE_SECONDS = 0.1
"""A lane that begins here within so long is not looked for elsewhere; and no more than ten looks in a second."""
ASK_SECONDS = 5.0
LAST_WORDS_SECONDS = 1.0
"""So long the node of a turn that has ended may tell its last words; then the end is read from the store."""
FORGET_SECONDS = 60.0
MAX_TURN_CHARS = 256 * 1024
MAX_DETAIL_CHARS = 8000
"""Of the arguments and the result of a tool."""
MAX_LANES = 500
MAX_TURNS = 2000

WATCH = "turn.watch"
OPEN = (TurnState.RUNNING, TurnState.WAITING)

_KINDS: dict[str, type[TurnEvent]] = {
    kind.__name__: kind
    for kind in (TurnStarted, TextArrived, SegmentEnded, ToolStarted, ToolEnded, ApprovalRequested, TurnEnded)
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def dump_event(event: TurnEvent) -> Json:
    """Write an event as JSON, with the beginnings of long details."""
    fields = asdict(event)
    for name in ("arguments", "result"):
        if isinstance(fields.get(name), str):
            fields[name] = fields[name][:MAX_DETAIL_CHARS]
    return {"kind": _NAMES[type(event)], **fields}


def load_event(fields: Json) -> TurnEvent | None:
    """Read an event of another node; None for one that this program does not know."""
    kind = _KINDS.get(str(fields.get("kind")))
    if kind is None:
        return None
    try:
        return msgspec.convert({name: value for name, value in fields.items() if name != "kind"}, kind)
    except msgspec.ValidationError:
        return None


# The node that runs the turn


@dataclass(slots=True)
class _Recorded:
    """One turn. The last event grows while it is text; ``version`` grows with every change."""

    lane: str
    turn_id: str
    events: list[Json] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    size: int = 0
    dropped: int = 0
    version: int = 0
    written: int = 0
    is_over: bool = False

    def add(self, event: TurnEvent) -> None:
        self.version += 1
        if isinstance(event, TextArrived):
            if not self.texts:
                self.events.append({"kind": "TextArrived", "lane": self.lane, "turn_id": self.turn_id, "text": ""})
            self.texts.append(event.text)
            self.size += len(event.text)
        else:
            self._close_text()
            dumped = dump_event(event)
            self.events.append(dumped)
            self.size += sum(len(value) for value in dumped.values() if isinstance(value, str))
        while self.size > MAX_TURN_CHARS and len(self.events) > 1:
            gone = self.events.pop(0)
            self.size -= sum(len(value) for value in gone.values() if isinstance(value, str))
            self.dropped += 1

    def _close_text(self) -> None:
        if self.texts:
            self.events[-1]["text"] = "".join(self.texts)
            self.texts = []

    def dump(self, node_id: str) -> str:
        if self.texts:
            self.texts = ["".join(self.texts)]
            self.events[-1]["text"] = self.texts[0]
        return orjson.dumps({"node": node_id, "first": self.dropped, "events": self.events}).decode()


class TurnRecorder:
    """Remembers the turns of this node while they run, and writes down those that other nodes watch."""

    def __init__(self, db: Database, bus: EventBus, node_id: str) -> None:
        self._db = db
        self._bus = bus
        self._node_id = node_id
        self._turns = BoundedDict[str, _Recorded](MAX_TURNS)  # one that waits may be ended by another node
        self._watched: dict[str, float] = {}
        self._due = asyncio.Event()
        self._forget_at = 0.0

    def handlers(self) -> dict[str, Callable[[Json], Any]]:
        return {WATCH: self.watch}

    async def watch(self, body: Json) -> Json:
        """``{lane}``: another node shows this lane to a client. It asks again while the client is there."""
        self._watched[str(body.get("lane") or "")] = asyncio.get_running_loop().time() + WATCH_SECONDS
        self._due.set()
        return {}

    async def run(self) -> None:
        with self._bus.watch(self._saw):
            while True:
                await self._due.wait()
                self._due.clear()
                await self._write()
                await asyncio.sleep(WRITE_SECONDS)

    def _saw(self, event: TurnEvent) -> None:
        """On the bus, for every event there is: it must be quick."""
        recorded = self._turns.get(event.turn_id)
        if recorded is None:
            recorded = self._turns[event.turn_id] = _Recorded(event.lane, event.turn_id)
        recorded.add(event)
        if isinstance(event, TurnEnded):
            recorded.is_over = True
        if event.lane in self._watched:
            self._due.set()
        elif recorded.is_over:
            del self._turns[event.turn_id]

    async def _write(self) -> None:
        now = asyncio.get_running_loop().time()
        for lane in [lane for lane, until in self._watched.items() if until < now]:
            del self._watched[lane]
        for recorded in list(self._turns.values()):
            if recorded.lane in self._watched and recorded.version > recorded.written:
                recorded.written = recorded.version
                progress = StoredProgress(recorded.turn_id, recorded.version, recorded.dump(self._node_id))
                try:
                    await self._db.write(turn_progress.save, progress)
                except NodeIsGoneError:
                    raise
                except StoreIsDownError as error:
                    log.warning("StoredProgress not stored", extra={"turn": recorded.turn_id, "reason": str(error)})
            if recorded.is_over:
                self._turns.pop(recorded.turn_id, None)
        if now >= self._forget_at:
            self._forget_at = now + FORGET_SECONDS
            with contextlib.suppress(StoreIsDownError):  # the next time
                await self._db.write(turn_progress.forget_old)


# The node whose client watches


@dataclass(slots=True)
class _FollowedTurn:
    """A turn of another node, and how much of it the clients here have been shown."""

    lane: str
    turn_id: str
    node: str = ""
    seq: int = -1
    events: int = 0
    chars: int = 0
    asked_at: float = -math.inf
    shown: str = ""  # of the message that the model writes now
    is_over: bool = False
    left_at: float = 0.0  # when its lane was seen to have left it


class TurnFollower:
    """Passes on what turns of other nodes show, while somebody here watches their lanes.

    ``serves`` tells whether this node serves a lane itself.
    """

    def __init__(
        self, db: Database, bus: EventBus, calls: NodeCalls, node_id: str, serves: Callable[[str], bool]
    ) -> None:
        self._db = db
        self._bus = bus
        self._calls = calls
        self._node_id = node_id
        self._serves = serves
        self._followed: dict[str, _FollowedTurn] = {}  # by lane
        self._leaving: dict[str, _FollowedTurn] = {}  # by turn: its lane has gone on, and its end was not told yet
        self._reported = BoundedDict[str, None](MAX_TURNS)  # turns whose end the clients here have been told
        self._woken = asyncio.Event()
        self._asking: set[asyncio.Task[None]] = set()

    def notified(self, kind: str, key: str) -> None:
        """Look at once where a notification is about something that somebody watches."""
        is_news = {
            "turn": lambda: (
                key in self._leaving or any(followed.turn_id == key for followed in self._followed.values())
            ),
            "lane": lambda: self._bus.is_watched(key),
            "node": lambda: bool(self._followed),
        }
        if kind in is_news and is_news[kind]():
            self._woken.set()

    async def run(self) -> None:
        self._bus.on_interest = self._woken.set
        try:
            with self._bus.watch(self._saw_here):
                await self._follow_forever()
        finally:
            self._bus.on_interest = None
            for task in self._asking:
                task.cancel()

    def _saw_here(self, event: TurnEvent) -> None:
        """What this node's own turns show is told by themselves."""
        if isinstance(event, TurnEnded):
            self._reported[event.turn_id] = None
        elif isinstance(event, TurnStarted) and self._bus.is_watched(event.lane):
            followed = self._followed.get(event.lane)
            if followed is not None and followed.turn_id == event.turn_id:
                del self._followed[event.lane]

    async def _follow_forever(self) -> None:
        while True:
            # Also while all of them are served here: another node may have a lane in a moment.
            seconds = LOOK_SECONDS if self._bus.watched_lanes() else None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._woken.clear()
            try:
                await self._look()
            except NodeIsGoneError:
                raise
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "following turns", "reason": str(error)})
                await asyncio.sleep(LOOK_SECONDS)

    def _elsewhere(self) -> list[str]:
        """The lanes that somebody watches here and that this node does not serve."""
        return [lane for lane in self._bus.watched_lanes() if not self._serves(lane)][:MAX_LANES]

    async def _look(self) -> None:
        for followed in [*self._leaving.values(), *self._followed.values()]:
            # Nobody watches, or the turn goes on here.
            if not self._bus.is_watched(followed.lane) or (not followed.left_at and self._serves(followed.lane)):
                self._forget(followed)
        lanes = self._elsewhere()
        if not lanes and not self._leaving:
            return
        for owner in await self._db.read(turn_progress.owners_of, lanes):
            self._follow(owner)
        awaited = [event_id for lane in lanes for event_id in self._bus.awaited_in(lane)]
        for lane, turn_id in await self._db.read(turn_progress.ended_turns, awaited[:MAX_LANES]):
            # It began and ended between two looks: nobody has told it here.
            if turn_id not in self._reported and turn_id not in self._leaving:
                self._leave(self._followed.get(lane) or _FollowedTurn(lane, turn_id), turn_id)
        following = [*self._leaving.values(), *self._followed.values()]
        shown = await self._db.read(turn_progress.of_turns, [turn.turn_id for turn in following])
        now = asyncio.get_running_loop().time()
        for followed in following:
            if (progress := shown.get(followed.turn_id)) is not None:
                self._show(followed, progress)
            is_known_there = progress is not None or followed.asked_at > -math.inf
            patience = LAST_WORDS_SECONDS if is_known_there else 0.0
            if followed.is_over:
                self._forget(followed)
            elif followed.left_at and now - followed.left_at >= patience:
                self._forget(followed)
                await self._conclude(followed)

    def _leave(self, followed: _FollowedTurn, turn_id: str) -> None:
        """The lane has left this turn: its last words may come yet."""
        if turn_id in self._reported:
            self._followed.pop(followed.lane, None)
            return
        if followed.turn_id != turn_id:
            followed = _FollowedTurn(followed.lane, turn_id)
        elif self._followed.get(followed.lane) is followed:
            del self._followed[followed.lane]
        followed.left_at = asyncio.get_running_loop().time()
        self._leaving[turn_id] = followed

    def _forget(self, followed: _FollowedTurn) -> None:
        if followed.is_over or followed.left_at:
            self._reported[followed.turn_id] = None
        self._leaving.pop(followed.turn_id, None)
        if self._followed.get(followed.lane) is followed:
            del self._followed[followed.lane]

    def _follow(self, owner: LaneOwner) -> None:
        followed = self._followed.get(owner.lane)
        if followed is not None and followed.turn_id != owner.turn_id:
            self._leave(followed, followed.turn_id)
            followed = None
        if not owner.turn_id or self._serves(owner.lane):
            return
        if followed is None:
            followed = self._followed[owner.lane] = _FollowedTurn(owner.lane, owner.turn_id)
        if not owner.owner or owner.owner == self._node_id:
            return  # it sleeps, or somebody is about to take it up
        if owner.owner != followed.node:  # another node goes on with the turn, and tells it from where it took it up
            followed = self._followed[owner.lane] = _FollowedTurn(owner.lane, owner.turn_id, owner.owner)
        now = asyncio.get_running_loop().time()
        if now - followed.asked_at >= RENEW_SECONDS:
            followed.asked_at = now
            task = asyncio.create_task(self._ask(followed), name="watch a turn of another node")
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _ask(self, followed: _FollowedTurn) -> None:
        try:
            await self._calls.ask(followed.node, WATCH, {"lane": followed.lane}, seconds=ASK_SECONDS)
        except NodeIsGoneError:
            raise
        except GatewayError as error:
            log.info("Turn not watched", extra={"turn": followed.turn_id, "reason": str(error)})
            followed.asked_at = -math.inf

    def _show(self, followed: _FollowedTurn, progress: StoredProgress) -> None:
        """Pass on what is new. A turn that another node took up again tells its events from the beginning."""
        dumped = orjson.loads(progress.events)
        followed.node = followed.node or str(dumped.get("node"))
        if dumped.get("node") != followed.node or progress.seq <= followed.seq:
            return  # of a node that is gone, or seen before
        followed.seq = progress.seq
        first, events = int(dumped["first"]), dumped["events"]
        for number, event in enumerate(events, first):
            if number < followed.events:
                continue
            is_last = number == first + len(events) - 1
            self._show_one(followed, number, event, is_last=is_last)

    def _show_one(self, followed: _FollowedTurn, number: int, dumped: Json, *, is_last: bool) -> None:
        event = load_event(dumped)
        if isinstance(event, TextArrived):
            self._show_text(followed, event.text[followed.chars :] if number == followed.events else event.text)
            if is_last:
                followed.events, followed.chars = number, len(event.text)
                return
        elif event is not None:
            if isinstance(event, SegmentEnded):
                followed.shown = ""
            followed.is_over = isinstance(event, TurnEnded)
            self._bus.relay(event)
        followed.events, followed.chars = number + 1, 0

    def _show_text(self, followed: _FollowedTurn, text: str) -> None:
        if text:
            followed.shown += text
            self._bus.relay(TextArrived(followed.lane, followed.turn_id, text))

    async def _conclude(self, followed: _FollowedTurn) -> None:
        """Tell the end of a turn from the store: its node died, or never knew that somebody watches."""
        found = await self._db.read(_ended, followed.turn_id)
        if found is None:
            return  # it goes on somewhere, and is found there
        started, ended = found
        if not followed.events and not followed.chars:
            self._bus.relay(started)
        if ended.result.is_completed and not ended.result.tool_calls:
            text = ended.result.text
            is_more = text.startswith(followed.shown)
            self._show_text(followed, text[len(followed.shown) :] if is_more else f"\n\n{text}")
        self._bus.relay(ended)


def _ended(tx: Tx, turn_id: str) -> tuple[TurnStarted, TurnEnded] | None:
    turn = turns.get(tx, turn_id)
    if turn is None or turn.state in OPEN:
        return None
    events = tuple(row.id for row in inbox.of_turn(tx, turn_id))
    result = stored_result(tx, turn)
    ended = TurnEnded(turn.lane, turn.id, turn.state, result.text, turn.reason, result)
    return TurnStarted(turn.lane, turn.id, event_ids=events), ended
