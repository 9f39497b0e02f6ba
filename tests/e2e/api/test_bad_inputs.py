"""What goes wrong in such servers, sent to every door that makes the agent work: each has its status and its code."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import orjson
import pytest

from hermes.store.db import Tx
from tests.fakes.model import FakeModel
from tests.integration.api.serving import served
from tests.integration.conftest import Start

CHAT, RESPONSES, RUNS = "/v1/chat/completions", "/v1/responses", "/v1/runs"
FIELD = {CHAT: "messages", RESPONSES: "input", RUNS: "input"}
TEXT = {CHAT: "text", RESPONSES: "input_text", RUNS: "text"}
QUICKLY = 10.0  # what is refused costs nothing worth mentioning; a shared machine is given time
NESTED = b"[" * 100_000 + b"]" * 100_000


def told(path: str, *content: Any) -> bytes:
    """One user message with this content, as this door takes it."""
    parts: Any = content[0] if len(content) == 1 and isinstance(content[0], str) else list(content)
    return orjson.dumps({FIELD[path]: [{"role": "user", "content": parts}]})


def text_parts(path: str, count: int) -> bytes:
    return told(path, *[{"type": TEXT[path], "text": "x"}] * count)


def half_an_emoji(path: str) -> bytes:
    """As JavaScript sends a text that was cut in the middle of one."""
    return told(path, "hm HALF").replace(b"HALF", b"\\ud83d")


BODIES: dict[str, tuple[Any, int, str]] = {
    "nothing": (lambda _: b"", 400, "invalid_json"),
    "half of a body": (lambda path: told(path, "hi")[:-1], 400, "invalid_json"),
    "not an object": (lambda _: b"[]", 400, "invalid_json"),
    "not UTF-8": (lambda _: b'{"input": "\xff\xfe"}', 400, "invalid_json"),
    "100,000 nested brackets": (lambda _: NESTED, 400, "invalid_json"),
    "the same as a value": (lambda path: b'{"%s":%s}' % (FIELD[path].encode(), NESTED), 400, "invalid_json"),
    "the same with half an emoji": (
        lambda path: b'{"%s":["\\ud83d",%s]}' % (FIELD[path].encode(), NESTED),
        400,
        "invalid_json",
    ),
    "a file": (lambda path: told(path, {"type": "file", "file": {"file_id": "f"}}), 400, "unsupported_content_type"),
    "an input file": (lambda path: told(path, {"type": "input_file", "file_id": "f"}), 400, "unsupported_content_type"),
    "a picture by its file": (
        lambda path: told(path, {"type": "input_image", "file_id": "f"}),
        400,
        "unsupported_content_type",
    ),
    "a PDF in the dress of a picture": (
        lambda path: told(path, {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,AA=="}}),
        400,
        "unsupported_content_type",
    ),
    "1,001 parts": (lambda path: text_parts(path, 1001), 400, "too_many_parts"),
    "more than 10 MB of text": (lambda path: told(path, "x" * (10 * 1024 * 1024 + 1)), 400, "content_too_long"),
    "the same in parts": (
        lambda path: told(path, *[{"type": TEXT[path], "text": "x" * 106_000}] * 100),
        400,
        "content_too_long",
    ),
    "more than 50 MB": (lambda _: b" " * (50 * 1024 * 1024 + 1), 413, "request_too_large"),
}


def count_requests(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM inbox WHERE platform = 'api'") or 0)


@pytest.mark.parametrize("path", [CHAT, RESPONSES, RUNS])
async def test_each_bad_input_has_its_status_and_its_code_and_leaves_nothing_behind(start: Start, path: str) -> None:
    async with served(start) as api:
        for name, (body, status, code) in BODIES.items():
            began = time.monotonic()
            answer = await api.post(path, body(path))
            assert (answer.status, answer.error["code"]) == (status, code), (name, answer.body[:300])
            assert answer.error["type"] == "invalid_request_error", name
            assert answer.error["message"], name
            assert time.monotonic() - began < QUICKLY, name
        assert await api.gateway.db.read(count_requests) == 0


@pytest.mark.parametrize("path", [CHAT, RESPONSES])
async def test_at_the_limits_it_is_taken(start: Start, model: FakeModel, path: str) -> None:
    async with served(start) as api:
        for body in (text_parts(path, 1000), told(path, "x" * 1_000_000), half_an_emoji(path)):
            answer = await api.post(path, body)
            assert answer.status == 200, answer.body[:300]
    assert all(isinstance(request["messages"][-1]["content"], str) for request in model.requests)  # not a list


LONG = "x" * 257
HEADERS: dict[str, tuple[dict[str, str], int, str]] = {
    "a long session id": ({"X_Hermes_Session_Id": LONG}, 400, "header_too_long"),
    "a long session key": ({"X_Hermes_Session_Key": LONG}, 400, "header_too_long"),
    "another key": ({"Authorization": "Bearer hk_wrong"}, 401, "invalid_api_key"),
    "a page of somebody else": ({"Origin": "https://evil.example"}, 403, "origin_not_allowed"),
    "a rebound name": ({"Host": "evil.example"}, 403, "host_not_allowed"),
}


@pytest.mark.parametrize("path", [CHAT, RESPONSES, RUNS])
async def test_each_bad_header_has_its_status_and_its_code(start: Start, path: str) -> None:
    async with served(start) as api:
        for name, (headers, status, code) in HEADERS.items():
            answer = await api.post(path, told(path, "hi"), **headers)
            assert (answer.status, answer.error["code"]) == (status, code), name
        assert await api.gateway.db.read(count_requests) == 0


# Clients that are slow on purpose


async def test_clients_that_send_a_byte_now_and_then_keep_nobody_else_waiting(start: Start) -> None:
    """Two hundred connections, each with half a request; the others are answered, and these are closed."""
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(served(start, idle_seconds=1.0))
        slow = [await asyncio.open_connection("127.0.0.1", api.server.port) for _ in range(200)]
        for _, writer in slow:
            stack.callback(writer.close)
        await stack.enter_async_context(dripping([writer for _, writer in slow]))
        began = time.monotonic()
        for _ in range(5):
            assert (await api.post(CHAT, told(CHAT, "hi"))).status == 200
        assert time.monotonic() - began < 5 * QUICKLY
        async with asyncio.timeout(10):
            answers = await asyncio.gather(*(reader.read() for reader, _ in slow), return_exceptions=True)
        assert {status_of(answer) for answer in answers} <= {0, 400, 408}  # closed, with or without a word


@asynccontextmanager
async def dripping(writers: Sequence[asyncio.StreamWriter]) -> AsyncIterator[None]:
    task = asyncio.create_task(drip(writers))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def drip(writers: Sequence[asyncio.StreamWriter]) -> None:
    for byte in b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 1000:
        for writer in writers:
            with suppress(ConnectionError):
                writer.write(bytes([byte]))
        await asyncio.sleep(0.05)


def status_of(answer: bytes | BaseException) -> int:
    found = re.match(rb"HTTP/1.1 (\d+)", answer) if isinstance(answer, bytes) else None
    return int(found[1]) if found else 0
