"""`GET /api/events`: what changes anywhere in the gateway, live, as ids and states.

While somebody listens, the tables are looked at once a second, and at once when a turn of this node moves. All nodes of
a cluster write to the same tables, so any of them tells of all. Nothing runs while nobody listens.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Mapping
from dataclasses import field
from typing import Any

import orjson
from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import SessionKey
from hermes.hosting.status import troubles
from hermes.servers.api.context import CALLER, STILL, ApiParts, Caller
from hermes.servers.api.errors import ApiError
from hermes.servers.api.streams.sse import ClientGoneError, event_stream
from hermes.services.events import ApprovalRequested, ToolEnded, TurnEnded, TurnEvent, TurnStarted
from hermes.services.keep_running import keep_running
from hermes.services.requests.requests import PLATFORM
from hermes.store import people
from hermes.store.dashboard import changes
from hermes.store.dashboard.changes import ChangedRow

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 0.1
"""The shortest time between two looks."""
OVERLAP_SECONDS = 10.0
"""A row may be committed so long after the time that it carries."""
STATUS_SECONDS = 5.0
LINGER_SECONDS = 120.0
"""Looks go on so long after the last listener left: one that comes back has missed nothing."""
KEEP_ALIVE_SECONDS = 15.0
MAX_REMEMBERED = 1000
MAX_WAITING = 300
MAX_LISTENERS = 200
MAX_OF_ONE_KEY = 50
"""A key that opens more leaves room for the others."""
MOVES = (TurnStarted, TurnEnded, ApprovalRequested, ToolEnded)
RELOAD = "reload"


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """``lane`` and ``person_id`` say whose it is; both '': only for those who see all."""

    number: int
    kind: str
    data: Mapping[str, Any]
    lane: str = ""
    person_id: str = ""


@dataclass(slots=True, eq=False)
class Listener:
    """One open stream. ``has_lost``: more came than it took, so it has to read everything anew."""

    caller: Caller
    person_id: str
    waiting: deque[LiveEvent] = field(default_factory=deque)
    has_news: asyncio.Event = field(default_factory=asyncio.Event)
    has_lost: bool = False
    is_over: bool = False

    def sees(self, event: LiveEvent) -> bool:
        if self.caller.sees_all or event.kind == RELOAD:
            return True
        return event.person_id == self.person_id or is_own_lane(event.lane, self.caller)

    def tell(self, event: LiveEvent) -> None:
        if not self.sees(event):
            return
        if len(self.waiting) >= MAX_WAITING:
            self.waiting.clear()
            self.has_lost = True
        self.waiting.append(event)
        self.has_news.set()


def is_own_lane(lane: str, caller: Caller) -> bool:
    try:
        key = SessionKey.parse(lane)
    except ValueError:
        return False
    return key.platform == PLATFORM and key.person == caller.sender_id


class EventHub:
    """Looks for changes while there are listeners, and remembers the newest for those who come back."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._gateway = parts.gateway
        self._db = parts.gateway.db
        self._clock = parts.gateway.clock
        self.name = secrets.token_hex(4)
        """Names this hub in the ids of events: another process or node numbers its own."""
        self._number = 0
        self._remembered: deque[LiveEvent] = deque(maxlen=MAX_REMEMBERED)
        self.listeners: set[Listener] = set()
        self._known: dict[tuple[str, str], ChangedRow] | None = None
        self._pairings = ""
        self._task_number: int | None = None
        self._states: dict[str, str] = {}
        self._nodes: dict[str, str] = {}
        self._alerts: list[str] = []
        self._looked_at = 0.0
        self._status_at = 0.0
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()

    # Listening

    async def attach(self, listener: Listener) -> None:
        """Begin to listen. Returns when everything until now is known, so that nothing falls between."""
        self.listeners.add(listener)
        async with self._starting:  # pages that come at once share one task
            if self._running is None or self._running.done():
                self._known, self._task_number = None, None
                await self.look()
                running = keep_running("dashboard events", self._run, self._gateway.troubles)
                self._running = asyncio.create_task(running, name="dashboard events")

    def detach(self, listener: Listener) -> None:
        self.listeners.discard(listener)

    def since(self, last_id: str) -> list[LiveEvent] | None:
        """Return what came after this id; None when that is not known any more."""
        name, _, number = last_id.partition("-")
        if name != self.name or not number.isdecimal() or int(number) > self._number:
            return None
        after = int(number)
        oldest = self._remembered[0].number if self._remembered else self._number + 1
        if after < oldest - 1:
            return None
        return [event for event in self._remembered if event.number > after]

    @property
    def size(self) -> int:
        """Count what is kept of rows and events: it must not grow with time."""
        return len(self._remembered) + len(self._known or ()) + sum(len(each.waiting) for each in self.listeners)

    @property
    def last_id(self) -> str:
        return f"{self.name}-{self._number}"

    async def end(self) -> None:
        for listener in self.listeners:
            listener.is_over = True
            listener.has_news.set()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    # Looking

    async def _run(self) -> None:
        alone_since: float | None = None
        bus, news = self._gateway.bus, self._gateway.news
        with bus.watch(self._saw), news.watch(self._heard):
            while True:
                now = self._clock.monotonic()
                alone_since = None if self.listeners else alone_since if alone_since is not None else now
                if alone_since is not None and now - alone_since > LINGER_SECONDS:
                    self._remembered.clear()
                    self._known = None
                    return
                try:
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._wake.wait()
                except TimeoutError:
                    pass  # the other nodes' turns wake nobody here
                self._wake.clear()
                await asyncio.sleep(SETTLE_SECONDS)
                await self.look()

    def _saw(self, event: TurnEvent) -> None:
        if isinstance(event, MOVES):
            self._wake.set()

    def _heard(self, _event: object) -> None:
        self._status_at = 0.0
        self._wake.set()

    async def look(self) -> None:
        """Look once, and tell the listeners what is new. A store that is down is looked at again later."""
        now = self._clock.now()
        try:
            await self._look_at_rows(now)
            await self._look_at_board()
            if self._clock.monotonic() - self._status_at >= STATUS_SECONDS or not self._status_at:
                await self._look_at_status()
        except StoreIsDownError as error:
            log.debug("Store is down", extra={"while": "looking for changes", "reason": str(error)})
            return
        self._looked_at = now

    async def _look_at_rows(self, now: float) -> None:
        known = self._known
        since = min(self._looked_at or now, now) - OVERLAP_SECONDS
        open_ids = [place for place, row in (known or {}).items() if row.state in changes.OPEN[row.kind]]
        found = await self._db.read(changes.look, since=since, open_ids=open_ids)
        settled = {name for kind, name in open_ids if kind == "approval"} - {
            row.id for row in found if row.kind == "approval"
        }
        if settled:
            found += await self._db.read(changes.approvals_of, sorted(settled))
        self._known = {(row.kind, row.id): row for row in found}
        pairings = await self._db.read(changes.pairings)
        if known is None:
            self._pairings = pairings
            return
        if len(found) >= changes.MAX_ROWS:
            self._publish(RELOAD, {})
            return
        for place, row in self._known.items():
            if known.get(place) != row:
                self._publish_row(row)
        if pairings != self._pairings:
            self._pairings = pairings
            self._publish("pairing", {})

    def _publish_row(self, row: ChangedRow) -> None:
        match row.kind:
            case "in":
                self._publish_message("in", row, row.more, _chat(row.place), row.place)
            case "out":
                if row.more not in ("preview", "edit"):
                    platform = row.place.partition(":")[0].partition("@")[0]
                    self._publish_message("out", row, platform, row.place, "")
            case "turn":
                data = {"id": row.id, "session_id": row.more, "session_key": row.place, "state": row.state}
                self._publish("turn", data, lane=row.place, person_id=row.person_id)
            case "session":
                data = {"id": row.id, "session_key": row.place}
                self._publish("session", data, lane=row.place, person_id=row.person_id)
            case "approval":
                data = {"id": row.id, "state": row.state}
                self._publish("approval", data, lane=row.place, person_id=row.person_id)
            case _:
                self._publish("job", {"id": row.id, "state": row.more}, person_id=row.place)

    def _publish_message(self, direction: str, row: ChangedRow, platform: str, chat: str, lane: str) -> None:
        data = {
            "id": row.id,
            "direction": direction,
            "platform": platform,
            "chat": chat,
            "state": row.state,
            "session_key": lane,
        }
        self._publish("message", data, lane=lane)

    async def _look_at_board(self) -> None:
        if self._db.dialect.name == "sqlite" and not (self._gateway.home / "kanban.db").exists():
            self._task_number = 0  # most gateways have no board, and load nothing of it
            return
        db = await self._gateway.board().db()
        if self._task_number is None:
            self._task_number = await db.read(changes.newest_task_event)
            return
        for change in await db.read(changes.task_events_after, self._task_number):
            self._task_number = change.number
            data = {"id": change.task, "board": change.board, "kind": change.kind, "event_id": change.number}
            self._publish("task", data, person_id=change.made_by)

    async def _look_at_status(self) -> None:
        is_first = not self._status_at
        snapshot = {"now": self._clock.now(), **self._parts.process(), **await self._gateway.status()}
        self._status_at = self._clock.monotonic()
        states = {each["account"]: each["state"] for each in snapshot["platforms"]}
        nodes = {each["name"]: each["state"] for each in snapshot.get("nodes", ())}
        alerts = troubles(snapshot)
        kinds = (("platform", self._states, states), ("node", self._nodes, nodes))
        self._states, self._nodes = states, nodes
        for kind, before, after in kinds:
            for name in {**before, **after}:
                if before.get(name) != after.get(name):
                    self._publish(kind, {"name": name, "state": after.get(name, "gone")})
        if alerts != self._alerts or is_first:
            self._alerts = alerts
            self._publish("alert", {"alerts": alerts})

    def publish(self, kind: str, data: Mapping[str, Any]) -> None:
        """Tell those who see all of something that stands in no table."""
        self._publish(kind, data)

    def _publish(self, kind: str, data: Mapping[str, Any], *, lane: str = "", person_id: str = "") -> None:
        self._number += 1
        event = LiveEvent(self._number, kind, data, lane, person_id)
        self._remembered.append(event)
        for listener in self.listeners:
            listener.tell(event)


def _chat(lane: str) -> str:
    try:
        return str(SessionKey.parse(lane).target)
    except ValueError:
        return ""


class EventRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._gateway = parts.gateway
        self.hub = EventHub(parts)

    async def end(self, _app: web.Application) -> None:
        await self.hub.end()

    async def stream(self, request: web.Request) -> web.StreamResponse:
        caller = request[CALLER]
        person = await self._gateway.db.read(people.find, PLATFORM, caller.sender_id)
        count = len(self.hub.listeners)
        own = sum(each.caller.sender_id == caller.sender_id for each in self.hub.listeners)
        if count >= MAX_LISTENERS or own >= MAX_OF_ONE_KEY:
            words = f"{count} pages follow this gateway already. Close one, and try again."
            raise ApiError(429, words, code="too_many_streams", kind="rate_limit_error", headers={"Retry-After": "30"})
        listener = Listener(caller, person.id if person is not None else "-")
        last_id = request.headers.get("Last-Event-ID", "") or request.query.get("last_event_id", "")
        try:
            await self.hub.attach(listener)
            missed = self.hub.since(last_id) if last_id else []
            listener.waiting.clear()  # what came until here is in ``missed``, or is read anew
            begun = self.hub.last_id
            async with event_stream(request, {}) as stream:
                node = self._gateway.node
                await stream.write(_framed("hello", {"node": node.name if node is not None else ""}, begun))
                if missed is None:
                    await stream.write(_framed(RELOAD, {}, begun))
                for event in missed or ():
                    if listener.sees(event):
                        await stream.write(self._frame(event))
                await self._follow(request, listener, stream)
        except ClientGoneError:
            log.debug("Event stream left", extra={"address": request.remote})
        finally:
            self.hub.detach(listener)
        return stream.response

    async def _follow(self, request: web.Request, listener: Listener, stream: Any) -> None:
        """Write what comes until the client leaves, the server ends or the sign-in does."""
        checked = asyncio.get_running_loop().time()
        while not listener.is_over:
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    await listener.has_news.wait()
            except TimeoutError:
                await stream.keep_alive()
            listener.has_news.clear()
            if asyncio.get_running_loop().time() - checked >= KEEP_ALIVE_SECONDS:
                checked = asyncio.get_running_loop().time()
                if not await request[STILL]():
                    return
            if listener.has_lost:
                listener.has_lost = False
                listener.waiting.clear()
                await stream.write(_framed(RELOAD, {}, self.hub.last_id))
            while listener.waiting:
                await stream.write(self._frame(listener.waiting.popleft()))

    def _frame(self, event: LiveEvent) -> bytes:
        return _framed(event.kind, event.data, f"{self.hub.name}-{event.number}")


def _framed(kind: str, data: Mapping[str, Any], event_id: str) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event_id.encode(), kind.encode(), orjson.dumps(dict(data)))
