"""What the fakes of all platforms share: a server on loopback that goes up and down, is cut, or is slow to answer.

A fake derives from ``Site`` (from ``Unplayed``, where its platform is no server), says who it is and answers requests.
What its platform has not is left out: ``plays`` and ``capabilities`` keep the contract suite from asking for it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import aiohttp
from aiohttp import web

from hermes.core.messages import Cursor, InboundEvent
from hermes.core.ports import Emit
from tests.fakes.server import Changes, Hold, Said, Sent

LARGEST_BYTES = 150_000_000
"""Of a request: more than any platform takes, so that its own limit is what refuses."""


class Unplayed:
    """Every verb of the contract that a platform may do without."""

    platform = ""

    @property
    def polls(self) -> int:
        return 0

    @property
    def typings(self) -> int:
        return 0

    def user_says_in_group(self, text: str, *, to_us: bool) -> Said:
        raise self._missing("groups")

    def user_edits(self, said: Said, text: str) -> Said:
        raise self._missing("edits by its users")

    def user_answers(self, sent: Sent, text: str) -> Said:
        raise self._missing("quotes")

    def user_forwards(self, texts: Sequence[str]) -> list[Said]:
        raise self._missing("forwards")

    def user_sends_album(self, files: Sequence[bytes], caption: str = "") -> list[Said]:
        raise self._missing("albums")

    def user_presses(self, sent: Sent, data: str, *, user: int | None = None, name: str = "Ana") -> Said:
        raise self._missing("buttons")

    def user_sends(self, data: bytes, name: str, caption: str = "") -> Said:
        raise self._missing("files")

    def user_speaks(self, sound: bytes) -> Said:
        raise self._missing("voice messages")

    def user_shows(self, picture: bytes) -> Said:
        raise self._missing("pictures")

    def something_unknown_happens(self) -> None:
        raise self._missing("unknown events")

    def something_broken_arrives(self) -> None:
        raise self._missing("broken events")

    def limit_next_send(self, retry_after: float) -> None:
        raise self._missing("flood control")

    def refuse_credentials(self) -> None:
        raise self._missing("credentials")

    def hold_sends(self) -> Hold:
        raise self._missing("answers that can be kept back")

    def drop_connection(self) -> None:
        raise self._missing("connections")

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{self.platform} has no {what}, so nothing may ask for them")


class Site(Unplayed):
    """A web server with a memory. ``port`` 0 takes a free one at the first start; stop() and start() keep it."""

    def __init__(self, *, port: int = 0) -> None:
        self.port = port
        self.sent: list[Sent] = []
        self.menus: dict[str, dict[str, str]] = {}
        self.counts: Counter[str] = Counter()
        self._holds: dict[str, Hold] = {}
        self._changes = Changes()
        self._server: web.Server | None = None
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        """What the platform's base address is set to."""
        return f"http://127.0.0.1:{self.port}"

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """What the platform does with a request."""
        raise NotImplementedError

    async def start(self) -> None:
        self._server = web.Server(self._answer, request_factory=_large_request)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.01)  # 0 would mean for ever
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """The outage: nothing listens, every connection is cut. What the fake remembers stays."""
        if self._runner is None:
            return
        self.release_all()
        self.drop_connection()
        await self._runner.cleanup()
        self._runner = self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def hold(self, what: str) -> Hold:
        """Requests of this kind are taken and acted on, and their answers kept back."""
        hold = self._holds[what] = Hold(what)
        return hold

    def release(self, what: str) -> None:
        if hold := self._holds.pop(what, None):
            hold.release()

    def release_all(self) -> None:
        for what in list(self._holds):
            self.release(what)

    async def _kept_back(self, what: str) -> None:
        """For the fake, when it has acted and before it answers."""
        if hold := self._holds.get(what):
            await hold.keep_back()

    def drop_connection(self) -> None:
        """Cut every open connection, whatever is going over it."""
        for connection in self._server.connections if self._server else ():
            if connection.transport is not None:
                connection.transport.abort()

    @property
    def open_connections(self) -> int:
        return len(self._server.connections) if self._server else 0

    async def wait_for(self, predicate: Callable[[], bool], deadline: float = 20.0) -> None:
        await self._changes.wait_for(predicate, deadline)


def _large_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BYTES)


@asynccontextmanager
async def session(lent: aiohttp.ClientSession | None) -> AsyncIterator[aiohttp.ClientSession]:
    """The one that was lent, or one that is closed at the end."""
    if lent is not None:
        yield lent
        return
    async with aiohttp.ClientSession() as own:
        yield own


def keeping(emit: Emit, marks: dict[str, str]) -> Emit:
    """What an adapter asks to be stored with its events is kept for the next one, as the gateway's store does."""

    async def keep(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        await emit(events, cursor)
        marks.update(cursor or {})
        for name in [name for name, value in marks.items() if not value]:
            del marks[name]

    return keep
