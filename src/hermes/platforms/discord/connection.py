"""Hold the gateway socket of one account, and resume its session.

discord.py keeps the socket: greeting, heartbeats, compression, IDENTIFY and RESUME. What comes over it is handed on as
it came, since the SDK's own reading of an event ends the whole connection when a field is missing in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Any

import aiohttp
import orjson
from discord import Intents
from discord.errors import ConnectionClosed
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from yarl import URL

from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RateLimitedError, UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.ports import Alive
from hermes.platforms.discord import wire
from hermes.platforms.discord.api import BorrowingClient
from hermes.platforms.discord.cursors import Session
from hermes.platforms.shared.http_errors import BROKEN

try:  # from Python 3.14 on, discord.py asks for zstd in place of zlib
    from compression.zstd import ZstdError  # type: ignore[import-not-found] # not in 3.11
except ImportError:
    ZstdError = zlib.error

log = logging.getLogger(__name__)

CONNECT_SECONDS = 20.0
HEARTBEAT_SECONDS = 60.0  # with nothing heard for so long, the connection is made anew
MAX_RESUMES = 10
RESUMES_SECONDS = 60.0
IDENTIFY_SECONDS = 5.0  # one IDENTIFY in so many
_STAYS = 4000  # Discord keeps a session that we leave with this code; with 1000 it would end it


@dataclass(frozen=True, slots=True)
class Frame:
    """A dispatch: what happened, what Discord tells of it, and its number in the session."""

    event: str
    data: object
    seq: int


@dataclass(frozen=True, slots=True)
class Broken:
    """A frame that cannot be read at all."""

    raw: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more comes. ``error`` None: the session is lost, and a new one has to begin."""

    error: PlatformError | None = None


Heard = Frame | Broken | Ended


class _ClosedError(Exception):
    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason


class _BrokenError(Exception):
    """The connection is gone, without a word."""


class Socket(DiscordWebSocket):
    """The SDK's socket. It parses nothing but what keeps the connection."""

    alive: Alive
    heard: Callable[[Frame | Broken], None]

    async def poll_event(self) -> None:
        """One frame. The SDK would not tell a socket that was closed from one that broke."""
        try:
            message = await self.socket.receive(timeout=HEARTBEAT_SECONDS)
        except TimeoutError:
            raise _ClosedError(_STAYS, "no frame for too long") from None
        if message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            await self.received_message(message.data)
        elif message.type is aiohttp.WSMsgType.CLOSE:
            raise _ClosedError(int(message.data or 1005), str(message.extra or ""))
        elif self._close_code is not None:
            raise _ClosedError(self._close_code, "no heartbeat was answered")
        elif message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.ERROR):
            raise _BrokenError

    async def received_message(self, msg: Any, /) -> None:
        text = self._decompressor.decompress(msg) if isinstance(msg, bytes) else msg
        if text is None:
            return
        frame = loaded(text)
        if isinstance(frame, dict) and frame.get("op") != self.DISPATCH and isinstance(frame.get("op"), int):
            self.alive()
            await super().received_message(text)
            return
        if self._keep_alive:
            self._keep_alive.tick()
        self.heard(self._dispatched(frame) or Broken(text[:100_000]))

    def _dispatched(self, frame: object) -> Frame | None:
        match frame:
            case {"t": str(event), "s": int(seq), "d": data}:
                self.sequence = seq
                match event, data:
                    case "READY", {"session_id": str(session), "resume_gateway_url": str(url)}:
                        self.session_id, self.gateway = session, URL(url)
                    case "READY", _:
                        raise UnreachableError("Discord's greeting cannot be read.")
                return Frame(event, data, seq)
            case _:
                return None


@dataclass(slots=True)
class _State:
    """What the SDK's socket asks of the client that it belongs to: no caches, and no hooks."""

    noted: Callable[[Socket], None]
    heartbeat_timeout: float = HEARTBEAT_SECONDS
    parsers: dict[str, Any] = field(default_factory=dict)
    shard_count: int | None = None
    _activity: None = None
    _status: None = None
    _intents: Intents = field(default_factory=lambda: intents())

    async def call_hooks(self, *_: Any, **__: Any) -> None:
        return

    def _update_references(self, socket: Socket) -> None:
        self.noted(socket)


@dataclass(slots=True)
class _Owner:
    http: BorrowingClient
    loop: asyncio.AbstractEventLoop
    _connection: _State
    _enable_debug_events: bool = False

    def dispatch(self, *_: Any) -> None:
        return


def intents() -> Intents:
    """What is said, where, and what it says. No members, no presences, no typing."""
    return Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)


class Gateway:
    def __init__(self, http: BorrowingClient, url: str, alive: Alive, put: Callable[[Heard], None]) -> None:
        self._url = URL(url)
        self._alive = alive
        self._put = put
        self._socket: Socket | None = None
        self._is_live = False
        self._resumes: deque[float] = deque(maxlen=MAX_RESUMES)
        state = _State(self._noted, HEARTBEAT_SECONDS)
        self._owner: Any = _Owner(http, asyncio.get_running_loop(), state)

    async def listen(self, session: Session | None) -> None:
        """Put what is heard until the session is lost or the connection broke; then, last, that it ended."""
        try:
            while True:
                session = await self._connection(session)
                if session is None:
                    self._put(Ended())
                    return
        except PlatformError as error:
            self._put(Ended(error))

    async def _connection(self, session: Session | None) -> Session | None:
        """One socket's life; the session to be resumed after it, None when that is lost."""
        self._is_live = False
        try:
            socket = await self._opened(session)
            while True:
                await socket.poll_event()
        except ReconnectWebSocket as asked:
            if asked.resume:
                return self._again()
            if session is None and not self._is_live:  # refused before it began: too many begin at once
                raise RateLimitedError("Discord does not begin a session yet.", retry_after=IDENTIFY_SECONDS) from None
        except _ClosedError as closed:
            if self._is_live and closed.code not in wire.FATAL_CODES:
                return self._again()
            if session is not None and closed.code not in wire.FATAL_CODES:
                return None  # closed instead of resumed: asking for the same again would go on for ever
            raise wire.farewell(closed.code, closed.reason) from None
        except ConnectionClosed as closed:
            raise wire.farewell(closed.code) from None
        except _BrokenError:
            raise UnreachableError("The connection to Discord broke.") from None
        except (*BROKEN, zlib.error, ZstdError) as error:
            raise UnreachableError(f"Discord's gateway cannot be reached ({describe_failure(error)})") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:  # a frame of the protocol's own that is none
            raise UnreachableError(f"Discord's gateway speaks another language ({describe_failure(error)})") from None
        finally:
            await self.close()
        return None

    async def _opened(self, session: Session | None) -> Socket:
        """Where Discord said that the session is resumed; where that is gone, at the address that everybody has."""
        if session is None or not session.url:
            return await self._open(self._url, session)
        try:
            return await self._open(URL(session.url), session)
        except BROKEN as error:
            log.info("Resuming elsewhere", extra={"platform": "discord", "reason": type(error).__name__})
            await self.close()
            return await self._open(self._url, session)

    async def _open(self, where: URL, session: Session | None) -> Socket:
        begins: Json = {} if session is None else {"session": session.id, "sequence": session.seq, "resume": True}
        async with asyncio.timeout(CONNECT_SECONDS):
            return await Socket.from_client(self._owner, gateway=where, **begins)

    def _noted(self, socket: Socket) -> None:
        """The SDK made it; from now on it is ours to close, whatever happens before it is handed over."""
        self._socket = socket
        socket.alive, socket.heard = self._sign_of_life, self._heard

    def _heard(self, heard: Frame | Broken) -> None:
        if isinstance(heard, Frame) and heard.event in ("READY", "RESUMED"):
            self._is_live = True
        self._sign_of_life()
        self._put(heard)

    def _sign_of_life(self) -> None:
        """Whoever greets us and then refuses us is not connected."""
        if self._is_live:
            self._alive()

    def _again(self) -> Session:
        """Resumed at once, as Discord asks for now and then; not where it asks for nothing else."""
        socket, now = self._socket, time.monotonic()
        if socket is None or socket.session_id is None or not self._is_live:
            raise UnreachableError("Discord ended the connection before it had begun.")
        if len(self._resumes) == MAX_RESUMES and now - self._resumes[0] < RESUMES_SECONDS:
            raise UnreachableError("Discord ends every connection at once.")
        self._resumes.append(now)
        log.info("Resuming", extra={"platform": "discord"})
        return Session(socket.session_id, socket.sequence or 0, str(socket.gateway))

    async def close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close(_STAYS)


def loaded(text: str) -> object:
    """None for what is not JSON. The slow reader takes what the quick one does not: half of a surrogate pair."""
    value: object
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
    return value
