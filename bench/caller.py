"""Clients of the API that cost next to nothing, so that a thousand of them leave the machine to the gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from bench.rig import BenchError, GatewayProcess

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
DONE = b"data: [DONE]"
LAST_CHUNK = b"\r\n0\r\n\r\n"
FIRST_WORDS = b'"delta":{"content":"'
PATIENCE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Door:
    """Where the API is, and the key that opens it."""

    port: int
    key: str

    def request(self, path: str, body: Any = None, *, method: str = "POST") -> bytes:
        raw = b"" if body is None else orjson.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        )
        return head.encode() + raw


def door_of(gateway: GatewayProcess) -> Door:
    return Door(gateway.port, (gateway.home / "api_server.key").read_text("ascii").strip())


class Line:
    """One connection that is kept open: whole answers, one after another."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Line:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._door.port, limit=1 << 20)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    async def ask(self, path: str, body: Any = None, *, method: str = "POST") -> Any:
        status, raw = await self.exchange(self._door.request(path, body, method=method))
        if status != 200:
            raise BenchError(f"An API request was not answered: {status} {raw[:300]!r}")
        return orjson.loads(raw)

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and read its answer, whatever the answer says: the status and the body."""
        assert self._reader is not None
        assert self._writer is not None
        self._writer.write(request)
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            raw = await self._reader.readexactly(length)
        return int(head.split(b" ", 2)[1]), raw


@dataclass(slots=True)
class Streamed:
    """One stream: when its first words came, and all that came."""

    opened_at: float
    first_at: float = 0.0
    pieces: list[bytes] = field(default_factory=list)
    ended: bool = False

    def events(self) -> list[Any]:
        """Every event but the last, which only says that it is over."""
        text = _unchunked(b"".join(self.pieces).partition(b"\r\n\r\n")[2])
        told = [line[6:] for line in text.split(b"\n") if line.startswith(b"data: ")]
        return [orjson.loads(line) for line in told if line != b"[DONE]"]

    def content(self) -> str:
        choices = (choice for event in self.events() for choice in event.get("choices", ()))
        return "".join(choice["delta"].get("content") or "" for choice in choices)


def _unchunked(raw: bytes) -> bytes:
    whole = bytearray()
    position = 0
    while position < len(raw):
        end = raw.index(b"\r\n", position)
        size = int(raw[position:end], 16)
        whole += raw[end + 2 : end + 2 + size]
        position = end + 2 + size + 2
    return bytes(whole)


class _Reading(asyncio.Protocol):
    def __init__(self, request: bytes, streamed: Streamed, over: asyncio.Future[None]) -> None:
        self._request = request
        self._streamed = streamed
        self._over = over
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        streamed = self._streamed
        if not streamed.first_at and FIRST_WORDS in data:
            streamed.first_at = time.monotonic()
        streamed.pieces.append(data)
        self._tail = (self._tail + data)[-64:]
        if self._tail.endswith(LAST_CHUNK) and not self._over.done():
            streamed.ended = DONE in self._tail
            self._over.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._over.done():
            self._over.set_result(None)


async def stream(door: Door, path: str, body: Any = None, *, method: str = "POST") -> Streamed:
    """Ask for a stream and read it to its end; one that breaks off has not ``ended``."""
    loop = asyncio.get_running_loop()
    streamed = Streamed(time.monotonic())
    over: asyncio.Future[None] = loop.create_future()
    request = door.request(path, body, method=method)
    transport, _ = await loop.create_connection(lambda: _Reading(request, streamed, over), "127.0.0.1", door.port)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await over
    except TimeoutError:
        pass
    finally:
        transport.close()
    return streamed


async def cut_stream(door: Door, path: str, body: Any) -> None:
    """Ask for a stream and hang up at its first bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    try:
        writer.write(door.request(path, body))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read(4096)
    finally:
        writer.transport.abort()


async def streams(door: Door, path: str, body: Any, count: int, *, per_second: float) -> Sequence[Streamed]:
    """Open so many at this pace; all of them, read to their ends."""
    tasks = []
    began = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / per_second - time.monotonic()))
        tasks.append(asyncio.create_task(stream(door, path, body)))
    return await asyncio.gather(*tasks)
