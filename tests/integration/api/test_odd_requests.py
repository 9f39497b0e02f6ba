"""Requests as no client of ours would send them: each gets an answer that says what to do, and none of them a 500."""

from __future__ import annotations

import asyncio
import gzip
import threading
from io import BytesIO
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from hermes.servers.api import parse
from hermes.servers.app import HttpServer
from tests.fakes.model import FakeModel
from tests.integration.api.serving import Served, default_key, served
from tests.integration.conftest import Start

CHAT = {"messages": [{"role": "user", "content": "hello"}]}
TOOL = {"type": "function", "name": "look"}
DEEP = b"[" * 900 + b"]" * 900


async def raw(api: Served, method: str, path: str, *lines: bytes, body: bytes = b"") -> tuple[int, Any]:
    """A request written by hand, with its headers as bytes; the status and the JSON of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
    head = [f"{method} {path} HTTP/1.1".encode(), b"Host: 127.0.0.1", b"Connection: close", *lines]
    if body:
        head.append(b"Content-Length: %d" % len(body))
    try:
        writer.write(b"\r\n".join([*head, b"", body]))
        status, _, rest = (await reader.read()).partition(b"\r\n")
        return int(status.split()[1]), orjson.loads(rest.partition(b"\r\n\r\n")[2] or b"null")
    finally:
        writer.close()


def key_line(api: Served) -> bytes:
    return f"Authorization: Bearer {default_key(api.gateway).reveal()}".encode()


async def test_bytes_that_are_no_text_are_no_key(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        status, told = await raw(api, "GET", "/v1/models", b"Authorization: Bearer \xff\xfe")
        assert (status, told["error"]["code"]) == (401, "invalid_api_key")


@pytest.mark.parametrize("listed", ["", "*"])
async def test_an_origin_that_is_none_is_answered_too(start: Start, listed: str) -> None:
    async with served(start, API_SERVER_CORS_ORIGINS=listed) as api, asyncio.timeout(20):
        for origin in (b"http://[", b"http://\xff", b"//", b"http://[::1"):
            status, _ = await raw(api, "GET", "/health", b"Origin: " + origin)
            assert status == (200 if listed and origin.isascii() else 403), origin


async def test_a_page_that_asks_for_headers_that_are_none_is_told_the_usual_ones(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        own = f"Origin: http://127.0.0.1:{api.server.port}".encode()
        host = f"Host: 127.0.0.1:{api.server.port}".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        lines = [b"OPTIONS /v1/models HTTP/1.1", host, own, b"Connection: close", b"Access-Control-Request-Method: GET"]
        writer.write(b"\r\n".join([*lines, b"Access-Control-Request-Headers: \xff", b"", b""]))
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 204")
        assert b"Access-Control-Allow-Headers: authorization, content-type" in answer


async def test_a_packed_body_is_read_and_one_that_cannot_be_unpacked_is_refused(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        packed, lines = gzip.compress(orjson.dumps(CHAT)), (key_line(api), b"Content-Encoding: gzip")
        status, _ = await raw(api, "POST", "/v1/chat/completions", *lines, body=packed)
        assert status == 200
        status, told = await raw(api, "POST", "/v1/chat/completions", *lines, body=b"not packed at all")
        assert (status, told["error"]["code"]) == (400, "invalid_body")
        assert "plain JSON" in told["error"]["message"]


async def test_a_client_that_leaves_within_its_body_is_no_failure_of_ours(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(start) as api, asyncio.timeout(20):
        _, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n%s\r\n\r\n{"
        writer.write(head % key_line(api))
        await writer.drain()
        while b"hermes_http_requests_open 2" not in (await api.get("/metrics")).body:
            continue  # it is with the server, beside the one that looks
        writer.transport.abort()
        while b"hermes_http_requests_open 1" not in (await api.get("/metrics")).body:
            continue
    assert "Request failed" not in caplog.text


async def test_a_value_of_another_kind_is_refused(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        for path, body, code in (
            ("/v1/responses", b'{"input":[{"type":%s}]}' % DEEP, "unsupported_item_type"),
            ("/api/approvals/ap_1", b'{"approve":[]}', "invalid_decision"),
            ("/api/approvals/ap_1", b'{"approve":{},"decision":"deny"}', "invalid_decision"),
            ("/api/approvals/ap_1", b'{"approve":true,"decision":"deny"}', "invalid_decision"),
        ):
            answer = await api.post(path, body)
            assert (answer.status, answer.error["code"]) == (400, code), body[:60]


async def test_a_choice_of_a_tool_is_repeated_in_its_own_shape(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        body = orjson.dumps({"input": "hello", "tools": [TOOL], "tool_choice": {**TOOL, "more": "DEEP"}})
        answer = await api.post("/v1/responses", body.replace(b'"DEEP"', DEEP))
        assert (answer.status, answer.json["tool_choice"]) == (200, TOOL)


async def test_numbers_of_thousands_of_digits_are_no_places(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        made = (await api.post("/v1/responses", {"input": "hello"})).json["id"]
        answer = await api.get(f"/v1/responses/{made}/input_items?limit=000000001{'0' * 5000}")
        assert (answer.status, answer.error["code"]) == (400, "invalid_value")

        run = (await api.post("/v1/runs", {"input": "hello"})).json["run_id"]
        events = (await api.get(f"/v1/runs/{run}/events")).body
        feed = events.split(b"\n", 1)[0].decode().removeprefix("id: ").rpartition("-")[0]
        again = await api.get(f"/v1/runs/{run}/events", Last_Event_ID=f"{feed}-{'9' * 5000}")
        assert (again.status, again.body) == (200, events)  # no place of ours: from the beginning


async def test_what_would_change_the_answer_and_is_not_done_is_never_left_out_in_silence(
    start: Start, model: FakeModel
) -> None:
    changes: tuple[tuple[str, Any], ...] = (
        ("n", 2),
        ("modalities", ["text", "audio"]),
        ("functions", [{"name": "look", "parameters": {}}]),
    )
    async with served(start) as api, asyncio.timeout(20):
        for field, value in changes:
            answer = await api.post("/v1/chat/completions", {**CHAT, field: value})
            assert (answer.status, answer.error["code"], answer.error["param"]) == (400, "unsupported_parameter", field)
            assert "send" in answer.error["message"]
    assert model.requests == []


async def test_every_field_of_today_that_changes_nothing_here_is_taken(start: Start) -> None:
    hints: dict[str, Any] = {
        "response_format": {"type": "text"},
        "modalities": ["text"],
        "functions": None,
        "frequency_penalty": 0.5,
        "logit_bias": {"50256": -100},
        "logprobs": False,
        "max_completion_tokens": 100,
        "metadata": {"a": "b"},
        "parallel_tool_calls": False,
        "prediction": {"type": "content", "content": "hello"},
        "presence_penalty": 0.5,
        "prompt_cache_key": "one",
        "reasoning_effort": "low",
        "safety_identifier": "one",
        "seed": 1,
        "service_tier": "auto",
        "stop": ["END"],
        "store": True,
        "stream_options": None,
        "temperature": 1,
        "top_p": 1,
        "user": "ana",
        "verbosity": "low",
    }
    async with served(start) as api, asyncio.timeout(20):
        answer = await api.post("/v1/chat/completions", {**CHAT, **hints})
        assert (answer.status, answer.json["choices"][0]["message"]["content"]) == (200, "echo: hello")


async def test_an_address_that_is_not_there_says_where_they_all_are(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(20):
        without = await api.post("/chat/completions", CHAT)
        assert (without.status, without.error["code"]) == (404, "unknown_url")
        assert "begin with /v1" in without.error["message"]
        assert "/openapi.json" in (await api.post("/v1/audio/speech", {})).error["message"]


async def test_a_large_body_is_read_beside_the_loop_and_a_small_one_at_once() -> None:
    seen: list[bool] = []

    async def look(request: web.Request) -> web.Response:
        here = threading.get_ident()
        body = await parse.read_body(request)
        seen.append(await parse.apart(request, lambda: threading.get_ident() == here))
        return web.json_response({"letters": len(body["text"])})

    app = web.Application(client_max_size=2**20)
    app.router.add_post("/", look)
    server = HttpServer(app, "127.0.0.1", 0)
    async with server.listening(), aiohttp.ClientSession(server.url) as http, asyncio.timeout(20):
        for letters in (10, parse.LARGE_BODY):
            async with http.post("/", data=BytesIO(orjson.dumps({"text": "x" * letters}))) as answer:
                assert await answer.json() == {"letters": letters}
    assert seen == [True, False]


async def test_a_fork_behind_the_gate_takes_its_title_and_its_end(start: Start) -> None:
    """The gate has read the body by then: whoever asks whether there is one left is told that there is none."""
    async with served(start) as api, asyncio.timeout(20):
        await api.post("/v1/chat/completions", CHAT, X_Hermes_Session_Id="ours")
        fork = await api.post("/api/sessions/ours/fork", {"title": "Another way", "up_to": 1})
        assert (fork.status, fork.json["title"], fork.json["message_count"]) == (201, "Another way", 1)
        assert (await api.call("POST", "/api/sessions/ours/fork")).json["message_count"] == 2
        refused = await api.post("/api/sessions/ours/fork", {"up_to": 99})
        assert (refused.status, refused.error["param"]) == (400, "up_to")
