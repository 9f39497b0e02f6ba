"""Hostile pages, hostile names, hostile clients."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from hermes.servers.api import security
from hermes.servers.app import HttpServer, make_app
from tests.integration.api.serving import served
from tests.integration.conftest import Start

CHAT = {"model": "hermes", "messages": [{"role": "user", "content": "hello"}]}


async def test_a_name_that_is_not_ours_is_refused_before_the_key_is_looked_at(start: Start) -> None:
    async with served(start, API_SERVER_ALLOWED_HOSTS="hermes.example.org,*.ts.net") as api, asyncio.timeout(10):
        for host, status in (
            ("evil.example.com", 403),
            ("127.0.0.1.evil.example.com:8642", 403),
            ("box.tail1.ts.net", 200),
            ("hermes.example.org:443", 200),
            ("localhost:8642", 200),
            ("[::1]:8642", 200),
            ("", 403),
        ):
            answer = await api.get("/v1/models", Host=host)
            assert answer.status == status, host
            if status == 403:
                assert answer.error["code"] == "host_not_allowed"
        assert (await api.get("/health", Host="evil.example.com")).status == 403


async def test_a_page_that_is_not_listed_gets_nothing(start: Start) -> None:
    async with served(start, API_SERVER_CORS_ORIGINS="https://chat.example.org") as api, asyncio.timeout(10):
        for origin in ("https://evil.example.com", "null", "https://chat.example.org.evil.com", "file://"):
            answer = await api.post("/v1/chat/completions", CHAT, Origin=origin)
            assert (answer.status, answer.error["code"]) == (403, "origin_not_allowed")
            assert "Access-Control-Allow-Origin" not in answer.headers
        friend = await api.get("/v1/models", Origin="https://chat.example.org")
        assert friend.status == 200
        assert friend.headers["Access-Control-Allow-Origin"] == "https://chat.example.org"
        assert "X-Hermes-Session-Id" in friend.headers["Access-Control-Expose-Headers"]
        assert "Origin" in friend.headers["Vary"]
        assert "Access-Control-Allow-Credentials" not in friend.headers
        assert (await api.get("/v1/models", Origin=api.url)).status == 200  # a page of our own


async def test_a_browser_may_ask_first(start: Start) -> None:
    async with served(start, API_SERVER_CORS_ORIGINS="https://chat.example.org") as api, asyncio.timeout(10):
        asks = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, x-stainless-os",
        }
        for origin, status in (("https://chat.example.org", 204), ("https://evil.example.com", 403)):
            async with api.stranger.options("/v1/chat/completions", headers={"Origin": origin, **asks}) as answer:
                assert answer.status == status
                if status == 204:
                    assert answer.headers["Access-Control-Allow-Origin"] == origin
                    assert "POST" in answer.headers["Access-Control-Allow-Methods"]
                    assert answer.headers["Access-Control-Allow-Headers"] == "authorization, x-stainless-os"


async def test_every_answer_carries_the_security_headers(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        answers = [
            await api.get("/v1/models"),
            await api.get("/nowhere"),
            await api.get("/v1/models", Authorization="Bearer no"),
            await api.post("/v1/chat/completions", {**CHAT, "stream": True}),
        ]
    for answer in answers:
        for name in security.SECURITY_HEADERS:
            assert name in answer.headers
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] == "hermes"
    assert answers[-1].headers["Content-Type"].startswith("text/event-stream")


async def test_unknown_paths_and_methods_are_refused_in_the_envelope(start: Start) -> None:
    async with served(start) as api, asyncio.timeout(10):
        nowhere = await api.get("/v1/nowhere")
        assert (nowhere.status, nowhere.error["code"], nowhere.error["type"]) == (
            404,
            "unknown_url",
            "invalid_request_error",
        )
        wrong = await api.get("/v1/chat/completions")
        assert (wrong.status, wrong.error["code"], wrong.headers["Allow"]) == (405, "method_not_allowed", "POST")


async def test_a_body_that_is_too_large_is_refused(start: Start) -> None:
    async with served(start, API_SERVER_MAX_REQUEST_BYTES="2048") as api, asyncio.timeout(10):
        told = await api.post("/v1/chat/completions", b"x" * 2049)
        assert (told.status, told.error["code"]) == (413, "request_too_large")

        async def endless() -> object:
            for _ in range(100):
                yield b"x" * 1024

        async with api.http.post("/v1/chat/completions", data=endless()) as answer:
            assert answer.status == 413
        assert (await api.post("/v1/chat/completions", CHAT)).status == 200


async def test_a_body_that_never_ends_is_given_up(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "BODY_SECONDS", 0.1)
    async with served(start, idle_seconds=0.2) as api, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        key = api.http.headers["Authorization"]
        writer.write(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: {key}\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        head = (await reader.read()).decode()  # to the end: the connection is closed
        assert head.startswith("HTTP/1.1 408 ")
        assert '"request_timeout"' in head
        writer.close()
        await writer.wait_closed()


async def test_a_head_that_never_ends_is_given_up(start: Start) -> None:
    async with served(start, idle_seconds=0.1) as api, asyncio.timeout(10):
        for said in (b"", b"GET /health HTTP/1.1\r\nHost: loc"):
            reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
            writer.write(said)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
        assert (await api.get("/health")).status == 200


async def test_a_port_that_must_not_open_says_why_and_opens_once_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.servers.app.TRY_AGAIN_SECONDS", 0.01)
    reasons = ["there is no key"]

    async def why() -> str:
        return reasons[0]

    def add(app: web.Application) -> None:
        """No routes of its own."""

    server = HttpServer(make_app([add]), "127.0.0.1", 0, why)
    async with asyncio.timeout(20), server.listening():
        assert server.trouble == "there is no key"
        assert not server.bound.is_set()
        reasons[0] = ""
        await server.bound.wait()
        assert server.trouble == ""
