"""Server-sent events: one stream to one client, ended properly whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import ClientConnectionResetError, web

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
WRITE_SECONDS = 60.0
"""A client that reads nothing for so long counts as gone: it may not hold a place for ever."""
LARGEST_UNTIMED = 16 * 1024  # well below what makes aiohttp wait until the client has read
LARGEST_RECORDING = 4 * 1024 * 1024

RECORDING = web.RequestKey("recording", bytearray)
"""Set by whoever wants to give the same answer again: what was streamed is added to it. Empty: not to be repeated."""


class ClientGoneError(Exception):
    """The client closed the connection. The turn goes on unless the client had asked otherwise."""


class EventStream:
    def __init__(
        self,
        response: web.StreamResponse,
        recording: bytearray | None = None,
        transport: asyncio.Transport | None = None,
    ) -> None:
        self.response = response
        self._recording = recording
        self._transport = transport
        self.is_left = False
        """Whether the client was found to be gone."""
        self.goes_on = False
        """Whoever writes goes on without the client: what is written is kept elsewhere."""

    async def send(self, data: Any, *, event: str = "") -> None:
        """One event; ``data`` is dumped as JSON."""
        name = f"event: {event}\n".encode() if event else b""
        await self.write(b"%sdata: %s\n\n" % (name, orjson.dumps(data)))

    async def keep_alive(self) -> None:
        await self.write(KEEP_ALIVE)

    async def done(self) -> None:
        await self.write(DONE)

    async def write(self, raw: bytes) -> None:
        """What is recorded goes on to its end, also without its client: whoever asks again is to get it whole."""
        if not self.is_left:
            await self._send(raw)
        if self._recording is None:
            if self.is_left and not self.goes_on:
                raise ClientGoneError
        elif raw is not KEEP_ALIVE:
            self._recording += raw
            if len(self._recording) > LARGEST_RECORDING:
                self.forget()

    async def _send(self, raw: bytes) -> None:
        try:
            if self._takes_at_once(raw):
                await self.response.write(raw)
            else:
                async with asyncio.timeout(WRITE_SECONDS):
                    await self.response.write(raw)
        except TimeoutError:
            self.is_left = True
            if self._transport is not None:
                self._transport.abort()  # it would also hold up the end of the stream
        except (ClientConnectionResetError, ConnectionResetError):
            self.is_left = True

    def _takes_at_once(self, raw: bytes) -> bool:
        """Whether the client cannot hold up this write. A deadline for each piece would cost as much as the piece."""
        transport = self._transport
        return transport is not None and len(raw) < LARGEST_UNTIMED and not transport.get_write_buffer_size()

    def forget(self) -> None:
        """What was streamed is not to be repeated: it is too much, or says that something failed."""
        if self._recording is not None:
            self._recording.clear()
            self._recording = None


@asynccontextmanager
async def event_stream(request: web.Request, headers: Mapping[str, str]) -> AsyncIterator[EventStream]:
    """Open the stream; its end is written when the block ends, so that no client sees a broken encoding.

    A client that leaves before the headers are out is found to be gone by the first write, as one that leaves later is.
    """
    response = web.StreamResponse(
        headers={
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-cache",
            "X-Accel-Buffering": "no",  # a proxy that gathers the stream would undo it
            **headers,
        }
    )
    stream = EventStream(response, request.get(RECORDING), request.transport)
    try:
        await response.prepare(request)
    except (ClientConnectionResetError, ConnectionResetError):
        stream.is_left = True
    yield stream
    try:
        await response.write_eof()
    except (ClientConnectionResetError, ConnectionResetError) as error:
        raise ClientGoneError from error
