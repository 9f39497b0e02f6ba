"""A stream to a client that does not read, or that is to be repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import ClientConnectionResetError, web

from hermes.servers.api.streams import sse
from hermes.servers.api.streams.sse import KEEP_ALIVE, ClientGoneError, EventStream
from hermes.servers.app import HttpServer


class Line(web.StreamResponse):
    """The other end: takes everything, nothing, or is gone."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    async def write(self, data: Any) -> None:
        if self.how == "stuck":
            await asyncio.Event().wait()
        if self.how == "gone":
            raise ClientConnectionResetError


class Cut(asyncio.Transport):
    is_aborted = False

    def get_write_buffer_size(self) -> int:
        return 70_000

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_client_that_never_reads_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "WRITE_SECONDS", 0.01)
    line = Cut()
    with pytest.raises(ClientGoneError):
        await EventStream(Line("stuck"), None, line).send({"a": 1})
    assert line.is_aborted


async def test_what_was_streamed_is_recorded_without_signs_of_life() -> None:
    recording = bytearray()
    stream = EventStream(Line("fine"), recording)
    await stream.send({"a": 1}, event="x")
    await stream.keep_alive()
    await stream.done()
    assert bytes(recording) == b'event: x\ndata: {"a":1}\n\ndata: [DONE]\n\n'
    assert KEEP_ALIVE not in recording


@pytest.mark.parametrize("how", ["gone", "stuck"])
async def test_what_is_recorded_goes_on_to_its_end_without_its_client(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "WRITE_SECONDS", 0.01)
    recording = bytearray()
    stream = EventStream(Line(how), recording, Cut())
    await stream.send({"a": 1})
    await stream.done()
    assert bytes(recording) == b'data: {"a":1}\n\ndata: [DONE]\n\n'


async def test_half_a_stream_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = bytearray(b"data: 1\n\n")
    stream = EventStream(Line("gone"), recording)
    await stream.done()
    stream.forget()
    assert not recording
    with pytest.raises(ClientGoneError):  # nobody reads it, and nobody will
        await stream.done()
    monkeypatch.setattr(sse, "LARGEST_RECORDING", 20)
    stream = EventStream(Line("fine"), recording)
    for _ in range(3):
        await stream.done()
    assert not recording


@pytest.mark.parametrize("is_recorded", [True, False])
async def test_a_client_that_leaves_before_the_headers_are_out_is_gone_and_no_error(
    is_recorded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    entered, ended = asyncio.Event(), asyncio.Event()
    met: list[object] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if is_recorded:
            request[sse.RECORDING] = bytearray()
        entered.set()
        while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110 - aiohttp tells nobody
            await asyncio.sleep(0.01)
        try:
            async with sse.event_stream(request, {}) as stream:
                await stream.send({"a": 1})
                await stream.done()
        except ClientGoneError as error:
            met.append(error)
        met.append(bytes(request.get(sse.RECORDING, b"")))
        ended.set()
        return stream.response

    app = web.Application()
    app.router.add_get("/", answer)
    server = HttpServer(app, "127.0.0.1", 0)
    async with asyncio.timeout(20), server.listening():
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await entered.wait()
        writer.transport.abort()
        await ended.wait()
    gone, recorded = met
    assert isinstance(gone, ClientGoneError)
    assert recorded == (b'data: {"a":1}\n\ndata: [DONE]\n\n' if is_recorded else b"")
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []
