"""How long a stream lets its tokens gather, and how it does so."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from contextlib import ExitStack

import aiohttp
import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import TestServer

from hermes.agent.models.stream_timeouts import ConcurrentStreams, hold_back, read_all


def test_the_more_streams_there_are_the_longer_each_lets_its_tokens_gather() -> None:
    crowd = ConcurrentStreams()
    pauses = [crowd.pause_seconds(0.0)]
    with ExitStack() as stack:
        for _ in range(1500):
            stack.enter_context(crowd.joined())
            pauses.append(crowd.pause_seconds(0.0))
        assert crowd.open == 1500
    assert crowd.open == 0
    assert set(pauses[:33]) == {0.0}
    assert 0 < pauses[33] < 0.01
    assert pauses == sorted(pauses)
    assert pauses[-1] == 0.25


def test_a_lone_stream_is_read_as_it_comes_at_first_and_never_held_up_for_long() -> None:
    crowd = ConcurrentStreams()
    with crowd.joined():
        assert crowd.pause_seconds(0.0) == 0.0
        assert crowd.pause_seconds(0.02) == 0.02
        assert crowd.pause_seconds(1.0) == 0.1


async def test_what_comes_while_it_is_held_back_is_read_in_one_piece_and_what_comes_later_as_ever() -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await held.wait()
        for _ in range(5):
            await response.write(b"x")
            await asyncio.sleep(0.002)
        await said.wait()
        await response.write(b"last")
        return response

    held, said = asyncio.Event(), asyncio.Event()
    app = web.Application()
    app.router.add_get("/", trickle)
    async with TestServer(app) as server, aiohttp.ClientSession() as http, http.get(server.make_url("/")) as response:
        assert await response.content.readany() == b"first"
        hold_back(response, 0.1)
        held.set()
        assert await response.content.readany() == b"xxxxx"
        said.set()
        assert await response.content.readany() == b"last"
        assert await response.content.readany() == b""
        hold_back(response, 0.1)  # all has come: nothing to hold back, and the connection is another's now


async def test_many_chunks_are_taken_out_in_one_piece_and_the_connection_is_used_again() -> None:
    words = [f"w{number} ".encode() for number in range(40)]

    async def tell(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for word in words:
            await response.write(word)
        return response

    app = web.Application()

    async def say_nothing(_: web.Request) -> web.Response:
        return web.Response(status=204)

    app.router.add_get("/", tell)
    app.router.add_get("/nothing", say_nothing)
    async with TestServer(app) as server, aiohttp.ClientSession() as http:
        for path in ("/", "/", "/missing"):
            async with http.get(server.make_url(path)) as response:
                pieces = []
                while piece := await read_all(response.content):
                    pieces.append(piece)
                if path == "/":
                    assert b"".join(pieces) == b"".join(words)
                    assert len(pieces) < len(words)
                else:
                    assert b"Not Found" in b"".join(pieces)
        async with http.get(server.make_url("/nothing")) as response:
            assert await read_all(response.content) == b""


def inside(content: aiohttp.StreamReader) -> tuple[object, object]:
    return getattr(content, "_buffer", None), getattr(content, "_wait", None)


async def test_aiohttp_is_inside_as_reading_in_one_piece_needs_it() -> None:
    """Where this fails, answers are still read whole, but each token costs more: see ``read_all``."""
    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 2**16, loop=loop)
    for piece in (b"a", b"b", b"c"):
        content.feed_data(piece)
    pieces, wait = inside(content)
    assert pieces == deque([b"a", b"b", b"c"])
    assert inspect.iscoroutinefunction(wait)
    assert await read_all(content) == b"abc"
    assert not pieces


class ReaderOfAnotherAiohttp:
    """What a later one may keep inside, with the same public face."""

    def __init__(self, pieces: object) -> None:
        self._buffer = pieces

    async def readany(self) -> bytes:
        return b"all of it"


@pytest.mark.parametrize("pieces", [deque([b"a", b"b"]), bytearray(b"ab"), None])
async def test_an_aiohttp_that_is_otherwise_inside_is_read_in_its_own_way(pieces: object) -> None:
    content = ReaderOfAnotherAiohttp(pieces)
    assert await read_all(content) == b"all of it"  # type: ignore[arg-type]


async def read_to_end(content: aiohttp.StreamReader) -> None:
    while await read_all(content):
        pass


async def test_a_body_that_breaks_off_says_so_however_it_is_read() -> None:
    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    app = web.Application()
    app.router.add_get("/", break_off)
    async with TestServer(app) as server, aiohttp.ClientSession() as http, http.get(server.make_url("/")) as response:
        with pytest.raises(aiohttp.ClientError):
            await read_to_end(response.content)
