"""The API over real HTTP: the gateway in this process, and its routes on a port of 127.0.0.1.

A test module of another family of routes says which it needs by a fixture of its own:

    @pytest.fixture
    def families() -> Families:
        return (responses.routes,)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from hermes.core.roles import PersonRole
from hermes.servers.api import chat
from hermes.servers.api.context import CALLER, ApiParts, Caller
from hermes.servers.api.errors import ApiError
from hermes.servers.app import HttpServer, RouteAdder, make_app
from hermes.services.gateway import Gateway
from tests.integration.conftest import Start

Families = tuple[Callable[[ApiParts], RouteAdder], ...]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
OWNER = Caller("desk", PersonRole.OWNER)
"""A named key: the default one stands in a file, and cannot approve what touches the machine."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json["error"]
        return error


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event; ``data`` is its JSON, or its text where that is none (``[DONE]``)."""

    name: str
    data: Any


@dataclass(frozen=True, slots=True)
class Api:
    """A client of the running server. ``http`` has its address as base, so paths are enough."""

    gateway: Gateway
    http: aiohttp.ClientSession
    url: str

    async def post(self, path: str, body: Any, **headers: str) -> Answer:
        return await self.call("POST", path, body, **headers)

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.call("GET", path, **headers)

    async def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """``X_Hermes_Session_Id="one"`` sets the header with dashes. Bytes are sent as they are."""
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        payload = BytesIO(data) if data is not None and len(data) > 500_000 else data  # aiohttp warns of large bytes
        async with self.http.request(method, path, data=payload, headers=dashed(headers)) as answer:
            return Answer(answer.status, dict(answer.headers), await answer.read())

    @asynccontextmanager
    async def streaming(
        self, path: str, body: Any, **headers: str
    ) -> AsyncIterator[tuple[aiohttp.ClientResponse, AsyncIterator[Event]]]:
        """The answer as it comes: its head, and its events. Leaving the block early closes the connection."""
        async with self.http.post(path, data=orjson.dumps(body), headers=dashed(headers)) as answer:
            yield answer, events_of(answer.content)
            if not answer.content.at_eof():
                answer.close()


def dashed(headers: dict[str, str]) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return {"Content-Type": "application/json", **named}


async def events_of(content: aiohttp.StreamReader) -> AsyncIterator[Event]:
    """Every event until the end of the stream; comments (signs of life) come with the name ``:``."""
    name = ""
    async for raw in content:
        line = raw.decode().rstrip("\n")
        if line.startswith(":"):
            yield Event(":", line[1:].strip())
        elif line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield Event(name, orjson.loads(data) if data.startswith("{") else data)
        elif not line:
            name = ""


def stand_in_for_auth(caller: Caller) -> Any:
    """Everybody is ``caller``, and refusals become answers: what the real middleware does after it knew a key."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        request[CALLER] = caller
        try:
            return await handler(request)
        except ApiError as refusal:
            return refusal.response()

    return middleware


@pytest.fixture
def families() -> Families:
    """The families of routes that are served. Override it in a test module."""
    return (chat.routes,)


StartApi = Callable[..., AbstractAsyncContextManager[Api]]


@pytest.fixture
def start_api(start: Start, families: Families) -> StartApi:
    """``async with start_api() as api:`` starts gateway and server on one and the same home, as often as you like."""

    @asynccontextmanager
    async def starter(*, caller: Caller = OWNER, **setting: Any) -> AsyncIterator[Api]:
        async with start(**setting) as gateway:
            app = make_app([family(ApiParts(gateway)) for family in families])
            app.middlewares.append(stand_in_for_auth(caller))
            server = HttpServer(app, "127.0.0.1", 0)
            async with server.listening(), aiohttp.ClientSession(server.url) as http:
                yield Api(gateway, http, server.url)

    return starter


@pytest.fixture
async def api(start_api: StartApi) -> AsyncIterator[Api]:
    async with start_api() as running:
        yield running
