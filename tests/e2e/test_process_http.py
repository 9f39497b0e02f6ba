"""GET /health, and what a port that is taken does to the rest: nothing."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from hermes.servers.app import HttpServer, make_app


@contextlib.asynccontextmanager
async def get(url: str) -> AsyncIterator[aiohttp.ClientResponse]:
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        yield answer


async def test_health_says_ok() -> None:
    server = HttpServer(make_app(health=lambda: {"version": "1"}), "127.0.0.1", 0)
    async with asyncio.timeout(20), server.listening(), get(f"{server.url}/health") as answer:
        assert answer.status == 200
        assert await answer.json() == {"status": "ok", "version": "1"}


async def test_refusals_and_bugs_are_json_and_end_one_request_only() -> None:
    async def broken(_request: web.Request) -> web.Response:
        raise RuntimeError("a bug")

    def add(app: web.Application) -> None:
        app.router.add_get("/broken", broken)

    server = HttpServer(make_app([add]), "127.0.0.1", 0)
    async with asyncio.timeout(20), server.listening():
        for path, status in (("/broken", 500), ("/nowhere", 404), ("/health", 200)):
            async with get(server.url + path) as answer:
                assert answer.status == status
                assert isinstance(await answer.json(), dict)


async def test_a_taken_port_is_told_and_used_once_it_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.servers.app.TRY_AGAIN_SECONDS", 0.02)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        server = HttpServer(make_app(), "127.0.0.1", other.getsockname()[1])
        async with asyncio.timeout(20), server.listening():
            assert "cannot be used" in server.trouble
            other.close()
            await server.bound.wait()
            assert server.trouble == ""
            async with get(f"{server.url}/health") as answer:
                assert answer.status == 200
