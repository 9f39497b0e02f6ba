"""Hold one WebSocket to QQ's gateway: heartbeats, dispatches, end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from hermes.core.errors import UnreachableError
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.platforms.qq import session, wire
from hermes.platforms.qq.session import End
from hermes.platforms.shared.http_errors import BROKEN

CONNECT_SECONDS = 15.0
HELLO_SECONDS = 10.0
SEND_SECONDS = 10.0
HEARTBEAT_SHARE = 0.8
MIN_HEARTBEAT_SECONDS, MAX_HEARTBEAT_SECONDS = 1.0, 60.0
MAX_WAITING = 2000  # events that came while the inbox was busy; more are left at QQ until there is room
COMING_BACK = 4000  # 1000 would say that the session is over
MAX_FRAME_BYTES = 4 * 1024 * 1024


class EndedError(Exception):
    """The connection is over; ``code`` and ``reason`` as QQ closed it, 0 where it did not."""

    def __init__(self, code: int, reason: str, *, may_resume: bool = True) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.may_resume = may_resume


class Connection:
    """Whoever opened it takes what was dispatched with ``frames`` until that raises its end."""

    def __init__(self, ws: aiohttp.ClientWebSocketResponse, alive: Callable[[], None]) -> None:
        self._ws = ws
        self._alive = alive
        self._loop = asyncio.get_running_loop()
        self.seq = 0  # the last event that is stored, for heartbeats
        self.was_resume = False
        self.was_answered = False
        self.has_settled = False
        self._started_at = self._loop.time()
        self._is_acknowledged = True
        self._waiting: list[object] = []
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over: BaseException | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def hello(self) -> float:
        """Wait for the greeting; the seconds between two heartbeats."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                while True:
                    frame = wire.decode(_data(await self._ws.receive()))
                    if isinstance(frame, dict) and frame.get("op") == session.HELLO:
                        data = frame.get("d")
                        milliseconds: Any = data.get("heartbeat_interval") if isinstance(data, dict) else None
                        is_told = isinstance(milliseconds, int | float) and milliseconds > 0
                        seconds = milliseconds / 1000 if is_told else 45.0
                        return min(max(seconds, MIN_HEARTBEAT_SECONDS), MAX_HEARTBEAT_SECONDS) * HEARTBEAT_SHARE
        except TimeoutError:
            raise EndedError(0, f"QQ's gateway said nothing within {HELLO_SECONDS:.0f} s") from None

    async def begin(self, frame: Json, heartbeat: float) -> None:
        """Identify or resume, and keep the connection going from now on."""
        self.was_resume = frame["op"] == session.RESUME
        self._started_at = self._loop.time()
        await self._send(frame)
        for work in (self._receive(), self._keep_alive(heartbeat), self._expect_answer(), self._settle()):
            task = asyncio.create_task(work)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._ws.close(code=COMING_BACK)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None and self._over is None:
            self._over = error
        self._news.set()

    async def frames(self) -> list[object]:
        """Return the events since the last call; nothing, once, when settled. Raises the end after the last event."""
        while not self._waiting:
            if self._over is not None:
                raise self._over
            self._news.clear()
            await self._news.wait()
            if self.has_settled:
                break
        taken, self._waiting = self._waiting, []
        self._room.set()
        return taken

    @property
    def age(self) -> float:
        return self._loop.time() - self._started_at

    def end(self, error: EndedError) -> End:
        return End(error.code, error.reason, self.age, self.was_resume, self.was_answered, error.may_resume)

    async def _receive(self) -> None:
        """Read until the end, which is raised."""
        while True:
            data = _data(await self._ws.receive())
            frame = wire.decode(data)
            op = frame.get("op") if isinstance(frame, dict) else session.DISPATCH
            match op:
                case session.HEARTBEAT_ACK:
                    self._is_acknowledged = True
                    if self.was_answered:
                        self._alive()
                case session.HEARTBEAT:
                    await self._heartbeat()
                case session.RECONNECT:
                    raise EndedError(0, "QQ asked to connect again")
                case session.INVALID_SESSION:
                    assert isinstance(frame, dict)  # noqa: S101 - it has an op
                    raise EndedError(0, "QQ does not know the session", may_resume=frame.get("d") is True)
                case session.DISPATCH:
                    self.was_answered = True
                    self._alive()
                    self._waiting.append(frame)
                    self._news.set()
                    if len(self._waiting) >= MAX_WAITING:
                        self._room.clear()
                        await self._room.wait()
                case _:
                    pass  # Hello once more, or something of a later version

    async def _settle(self) -> None:
        await asyncio.sleep(session.QUICK_SECONDS)
        self.has_settled = self.was_answered

    async def _keep_alive(self, seconds: float) -> None:
        """Send heartbeats; a connection on which they are not answered is dead, however open it looks."""
        while True:
            await asyncio.sleep(seconds)
            if not self._is_acknowledged:
                raise EndedError(0, "QQ did not answer a heartbeat")
            self._is_acknowledged = False
            await self._heartbeat()

    async def _expect_answer(self) -> None:
        """A session may be dead without a word: then nothing ever follows. Ends once something has."""
        await asyncio.sleep(session.ANSWER_SECONDS)
        if not self.was_answered:
            request = "Resume" if self.was_resume else "Identify"
            raise EndedError(0, f"QQ did not answer {request} within {session.ANSWER_SECONDS:.0f} s")

    async def _heartbeat(self) -> None:
        await self._send({"op": session.HEARTBEAT, "d": self.seq or None})

    async def _send(self, frame: Json) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                await self._ws.send_str(orjson.dumps(frame).decode())
        except (*BROKEN, RuntimeError) as error:  # aiohttp says RuntimeError of a socket that is closing
            raise EndedError(1006, f"the line broke ({describe_failure(error)})") from None


@asynccontextmanager
async def connected(http: aiohttp.ClientSession, url: str, alive: Callable[[], None]) -> AsyncIterator[Connection]:
    """A socket that is closed at the end, whatever happened."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            ws = await http.ws_connect(url, max_msg_size=MAX_FRAME_BYTES, timeout=aiohttp.ClientWSTimeout(ws_close=2.0))
    except (*BROKEN, ValueError) as error:
        raise UnreachableError(f"QQ's gateway could not be reached ({describe_failure(error)})") from None
    link = Connection(ws, alive)
    try:
        yield link
    finally:
        await link.close()


def _data(message: aiohttp.WSMessage) -> Any:
    match message.type:
        case aiohttp.WSMsgType.TEXT | aiohttp.WSMsgType.BINARY:
            return message.data
        case aiohttp.WSMsgType.CLOSE:
            raise EndedError(int(message.data or 1005), str(message.extra or ""))
        case aiohttp.WSMsgType.ERROR:
            raise EndedError(1006, f"the line broke ({describe_failure(message.data)})")
        case _:
            raise EndedError(1006, "the line broke")
