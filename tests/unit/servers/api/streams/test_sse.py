"""A stream to a client that does not read, or that is to be repeated."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import ClientConnectionResetError, web

from hermes.servers.api.streams import sse
from hermes.servers.api.streams.sse import KEEP_ALIVE, ClientGoneError, EventStream


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
