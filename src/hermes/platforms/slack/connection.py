"""Hold the sockets of one account; two while Slack moves us to a new one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import field

import aiohttp
import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConflictError, PlatformError, RateLimitedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.ports import Alive
from hermes.platforms.shared.http_errors import BROKEN
from hermes.platforms.slack.api import Api

HEARTBEAT_SECONDS = 10.0
HELLO_SECONDS = 10.0
CONNECT_SECONDS = 10.0
CLOSE_SECONDS = 1.0
DISABLED_SECONDS = 30.0  # until somebody has switched it on, each try is one too many
MAX_FRAME_BYTES = 16 * 1024 * 1024


@dataclass(slots=True, eq=False)
class Link:
    socket: aiohttp.ClientWebSocketResponse
    is_leaving: bool = False
    has_successor: bool = False
    reader: asyncio.Task[None] | None = None

    async def ack(self, envelope_id: str) -> None:
        """Slack may be told late or not at all: it then hands the event out again, and it is known by its key."""
        if self.socket.closed:
            return
        try:
            await self.socket.send_str(orjson.dumps({"envelope_id": envelope_id}).decode())
        except BROKEN as error:
            raise UnreachableError(f"The socket to Slack broke ({describe_failure(error)})") from None


@dataclass(frozen=True, slots=True)
class Frame:
    """What came over a socket, or, with ``data`` None, that it ended."""

    link: Link
    data: str | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """The next socket is open, and all that came over the old one was put before this; or ``error``: there is none."""

    old: Link
    error: PlatformError | None = None


@dataclass(slots=True)
class Links:
    api: Api
    http: aiohttp.ClientSession
    alive: Alive
    put: Callable[[Frame | Moved], None]
    _open: set[Link] = field(default_factory=set)
    _moves: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> None:
        """Connect and wait for the hello; from then on frames are put."""
        url = await self.api.open_socket()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                # Pings are answered by hand, so that each one counts as a sign of life.
                socket = await self.http.ws_connect(
                    url,
                    autoping=False,
                    heartbeat=HEARTBEAT_SECONDS,
                    max_msg_size=MAX_FRAME_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
        except BROKEN as error:
            raise UnreachableError(f"Slack's socket cannot be opened ({describe_failure(error)})") from None
        link = Link(socket)
        self._open.add(link)
        await self._greeted(link)
        self.alive()
        link.reader = asyncio.create_task(self._read(link))

    async def _greeted(self, link: Link) -> None:
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                while True:
                    message = await link.socket.receive()
                    if message.type is aiohttp.WSMsgType.PING:
                        await link.socket.pong(message.data)
                    elif message.type is aiohttp.WSMsgType.TEXT:
                        break
                    elif message.type is not aiohttp.WSMsgType.PONG:
                        raise UnreachableError(_ending(link, message))
        except BROKEN as error:
            raise UnreachableError(f"Slack's socket did not say hello ({describe_failure(error)})") from None
        greeting = loaded(message.data)
        if not isinstance(greeting, dict) or greeting.get("type") != "hello":
            raise farewell(greeting if isinstance(greeting, dict) else {})

    async def _read(self, link: Link) -> None:
        try:
            while True:
                message = await link.socket.receive()
                match message.type:
                    case aiohttp.WSMsgType.TEXT:
                        self.alive()
                        self.put(Frame(link, message.data))
                    case aiohttp.WSMsgType.PING:
                        self.alive()
                        await link.socket.pong(message.data)
                    case aiohttp.WSMsgType.PONG | aiohttp.WSMsgType.BINARY:
                        self.alive()
                    case _:
                        self.put(Frame(link, None, _ending(link, message)))
                        return
        except BROKEN as error:
            self.put(Frame(link, None, f"The socket to Slack broke ({describe_failure(error)})"))

    def replace(self, old: Link) -> None:
        """Open the next socket beside one that Slack will close, without holding up events. Ends with a ``Moved``."""
        if not old.is_leaving:
            old.is_leaving = True
            task = asyncio.create_task(self._move(old))
            self._moves.add(task)
            task.add_done_callback(self._moves.discard)

    async def _move(self, old: Link) -> None:
        try:
            await self.open()
        except PlatformError as error:
            self.put(Moved(old, error))
        else:
            old.has_successor = True
            self.put(Moved(old))

    async def leave(self, link: Link) -> None:
        self._open.discard(link)
        if link.reader is not None:
            link.reader.cancel()
            await asyncio.wait({link.reader})
        await link.socket.close()

    async def close(self) -> None:
        for move in list(self._moves):
            move.cancel()
            await asyncio.wait({move})
        for link in list(self._open):
            await self.leave(link)


def loaded(data: str) -> object:
    """None for what is not JSON. The slow reader takes what the quick one does not: half of a surrogate pair."""
    value: object
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return None
    return value


def farewell(frame: Json) -> PlatformError:
    """Why Slack does not want this socket."""
    reason = str(frame.get("reason") or frame.get("type") or "no hello")[:100]
    match reason:
        case "link_disabled":
            reason = "Socket Mode is switched off for this app. Switch it on: your app, Socket Mode."
            return RateLimitedError(reason, retry_after=DISABLED_SECONDS)
        case "too_many_websockets":
            return ConflictError("Ten sockets of this app are open already, and Slack takes no more.")
        case _:
            return UnreachableError(f"Slack ended the socket: {reason}")


def _ending(link: Link, message: aiohttp.WSMessage) -> str:
    code = message.data if isinstance(message.data, int) else link.socket.close_code
    return f"WebSocket closed: code={code} reason={str(message.extra or '')[:100]}".removesuffix(" reason=")
