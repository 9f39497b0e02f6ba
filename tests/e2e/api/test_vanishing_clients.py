"""A client that vanishes after any event of a stream: the turn ends in a final state each time."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from hermes.services.requests.requests import RequestState
from hermes.store.db import Tx
from tests.fakes.model import FakeModel, calls_tools
from tests.integration.api.serving import Served, default_key, served
from tests.integration.conftest import Start

ABRUPTLY = struct.pack("ii", 1, 0)  # closing sends a reset, as a machine does that lost its power
STREAMS: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "stream": True},
    "/v1/responses": {"input": "hi", "stream": True},
    "/api/sessions/one/chat/stream": {"message": "hi"},
}


def newest_event(tx: Tx) -> str:
    return str(tx.value("SELECT id FROM inbox WHERE platform = 'api' ORDER BY received_at DESC, id DESC LIMIT 1"))


async def ended(api: Served) -> RequestState:
    """The newest request, once it is in a final state."""
    async with asyncio.timeout(10):
        while True:
            state = await api.gateway.requests.state_of(await api.gateway.db.read(newest_event))
            if state is not None and state.status in ("completed", "failed", "cancelled"):
                return state
            await asyncio.sleep(0.005)


async def settled(api: Served, response_id: str) -> str:
    """The final status of a stored response: whoever was writing to its client stores it a moment after the turn."""
    async with asyncio.timeout(10):
        path = f"/v1/responses/{response_id}"
        while (status := str((await api.get(path)).json["status"])) == "in_progress":  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.005)
    return status


async def read_events(api: Served, head: str, body: bytes, most: int) -> int:
    """Read so many events over a connection of its own, then vanish; how many there were."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    key = default_key(api.gateway).reveal()
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    writer.write(f"{head} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n{length}\r\n".encode() + body)
    events = 0
    try:
        async with asyncio.timeout(10):
            answered = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in answered, answered
            while events < most:
                line = await reader.readline()
                events += line.startswith(b"data: ")
                if line in (b"", b"0\r\n"):
                    break
    finally:
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABRUPTLY)
        writer.transport.abort()
    return events


def does_some_work(model: FakeModel) -> None:
    """Words, a tool, words again: every kind of event is in the stream."""
    model.script([calls_tools(("search_files", {"text": "x"}), text="Let me look."), "Found it."])


@pytest.mark.parametrize("path", STREAMS)
async def test_a_client_that_vanishes_after_any_event_leaves_a_final_state(
    start: Start, model: FakeModel, path: str
) -> None:
    body = orjson.dumps(STREAMS[path])
    async with served(start) as api:
        await api.post(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}, X_Hermes_Session_Id="one"
        )
        does_some_work(model)
        count = await read_events(api, f"POST {path}", body, 1000)
        assert count > 5
        for most in range(count + 1):
            does_some_work(model)
            # The same words again would be the same request, which is joined instead of being answered anew.
            await read_events(api, f"POST {path}", body.replace(b'"hi"', b'"hi %d"' % most), most)
            state = await ended(api)
            stops = ("cancelled",) if path == "/v1/chat/completions" else ()  # leaving that stream stops its turn
            assert state.status in ("completed", *stops), most
            if path == "/v1/responses":
                assert await settled(api, state.row.id.removeprefix("ev_")) == "completed", most


async def test_a_client_that_vanishes_from_the_events_of_a_run_does_not_disturb_it(
    start: Start, model: FakeModel
) -> None:
    async with served(start) as api:

        async def follow(most: int) -> int:
            does_some_work(model)
            run = (await api.post("/v1/runs", {"input": "hi"})).json["run_id"]
            count = await read_events(api, f"GET /v1/runs/{run}/events", b"", most)
            assert (await ended(api)).status == "completed", most
            assert (await api.get(f"/v1/runs/{run}")).json["output"] == "Found it."
            return count

        for most in range(await follow(1000) + 1):
            await follow(most)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
async def test_a_client_that_vanishes_before_a_whole_answer_leaves_a_final_state(
    start: Start, model: FakeModel, path: str
) -> None:
    body = orjson.dumps({**STREAMS[path], "stream": False})
    async with served(start) as api:
        model.hold()
        _, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        key = default_key(api.gateway).reveal()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\n\r\n".encode() + body)
        await until(lambda: model.open_now > 0)
        writer.transport.abort()
        model.release()
        assert (await ended(api)).status == "completed"


async def until(ask: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not ask():  # noqa: ASYNC110 - the fake counts, and tells nobody
            await asyncio.sleep(0.005)
