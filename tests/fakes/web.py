"""The internet on loopback: a name service, a web server behind public addresses, and three search services."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

PUBLIC = "93.184.215.14"
OTHER_PUBLIC = "151.101.1.140"
PRIVATE = "10.0.0.5"


@dataclass(slots=True)
class FakeNet:
    """Answers for names, and the places where the machines behind public addresses really are.

    A name with several answers gives one after another, and the last for good: that is how a name is rebound.
    """

    places: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    connected: list[str] = field(default_factory=list)
    _answers: dict[str, deque[Sequence[str]]] = field(default_factory=dict)

    def name(self, host: str, *answers: str | Sequence[str]) -> None:
        given = [[answer] if isinstance(answer, str) else answer for answer in answers]
        self._answers[host] = deque(given)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self._answers:
            raise OSError(-2, "Name or service not known")
        answers = self._answers[host]
        return answers.popleft() if len(answers) > 1 else answers[0]

    def place(self, ip: str, port: int) -> tuple[str, int]:
        """On loopback, whatever the address; only what was checked gets here."""
        self.connected.append(ip)
        return "127.0.0.1", self.places.get(ip, port)


Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeSite:
    """A web server with pages. ``seen`` holds every request that reached it."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self._pages: dict[str, Answering] = {}
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = TestServer(app, host="127.0.0.1")

    @property
    def port(self) -> int:
        assert self._server.port is not None
        return self._server.port

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    def serves(
        self,
        path: str,
        body: str | bytes,
        content_type: str = "text/html; charset=utf-8",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        raw = body.encode() if isinstance(body, str) else body
        given = {**({"Content-Type": content_type} if content_type else {}), **(headers or {})}

        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=raw, status=status, headers=given)

        self._pages[path] = answer

    def serves_packed(self, path: str, body: bytes, content_type: str = "text/html", encoding: str = "gzip") -> None:
        """The body as it is given, said to be packed."""
        self.serves(path, body, content_type, headers={"Content-Encoding": encoding})

    def redirects(self, path: str, to: str, status: int = 302) -> None:
        self.serves(path, "", status=status, headers={"Location": to})

    def drips(self, path: str, pieces: Callable[[], AsyncIterator[bytes]], **headers: str) -> None:
        """Sends a body piece by piece, as slowly as the iterator gives them."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/plain", **headers})
            await response.prepare(request)
            try:
                async for piece in pieces():
                    await response.write(piece)
            except (ConnectionError, asyncio.CancelledError):
                pass  # the reader has had enough
            return response

        self._pages[path] = answer

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        page = self._pages.get(request.path)
        return await page(request) if page is not None else web.Response(status=404, text="nothing here")


def bomb(megabytes: int) -> bytes:
    """A gzip body that unpacks to so much."""
    return gzip.compress(bytes(megabytes << 20))


class FakeSearch:
    """What the fakes of search services share: a server, results to give out, and a trouble to answer with once."""

    def __init__(self, results: Sequence[Mapping[str, Any]] = ()) -> None:
        self.results = list(results)
        self.asked: list[dict[str, Any]] = []
        self.trouble: web.Response | None = None
        self._app = web.Application()
        self.routes(self._app)
        self._server = TestServer(self._app, host="127.0.0.1")

    def routes(self, app: web.Application) -> None:
        raise NotImplementedError

    @property
    def url(self) -> str:
        return str(self._server.make_url("")).rstrip("/")

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()


def _problem(status: int, body: Any, **headers: str) -> web.Response:
    return web.json_response(body, status=status, headers=headers)


class FakeBrave(FakeSearch):
    """Brave's web search: the key in its own header, 422 for whatever it does not like."""

    key = "BSA-brave-key-0123456789"

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/res/v1/web/search", self._search)

    async def _search(self, request: web.Request) -> web.Response:
        if request.headers.get("X-Subscription-Token") != self.key:
            error = {"code": "SUBSCRIPTION_TOKEN_INVALID", "detail": "The provided subscription token is invalid."}
            return _problem(422, {"type": "ErrorResponse", "error": {**error, "status": 422}})
        if self.trouble is not None:
            return self.trouble
        query, count = request.query.get("q", ""), request.query.get("count", "20")
        if not query or len(query) > 400 or len(query.split()) > 50 or not 1 <= int(count) <= 20:
            return _problem(422, {"type": "ErrorResponse", "error": {"code": "VALIDATION", "status": 422}})
        if "application/json" not in request.headers.get("Accept", ""):
            return _problem(406, {})
        self.asked.append(dict(request.query))
        answer: dict[str, Any] = {"type": "search", "query": {"original": query}}
        if self.results:
            answer["web"] = {"type": "search", "results": self.results[: int(count)]}
        return web.json_response(answer)


class FakeTavily(FakeSearch):
    """Tavily's search: a Bearer key and a JSON body, at most 20 results."""

    key = "tvly-tavily-key-0123456789"

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/search", self._search)

    async def _search(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.key}":
            return _problem(401, {"detail": {"error": "Unauthorized: missing or invalid API key."}})
        if self.trouble is not None:
            return self.trouble
        if request.content_type != "application/json":
            return _problem(422, {"detail": "body must be JSON"})
        body = json.loads(await request.read())
        if not body.get("query") or not 0 <= body.get("max_results", 5) <= 20:
            return _problem(400, {"detail": {"error": "Invalid request."}})
        self.asked.append(body)
        found = self.results[: body.get("max_results", 5)]
        return web.json_response({"query": body["query"], "results": found, "response_time": 0.1})


class FakeSearXng(FakeSearch):
    """SearXNG: JSON only where its settings name it, else 403; a page is as long as it is."""

    def __init__(self, results: Sequence[Mapping[str, Any]] = (), *, formats: Sequence[str] = ("html", "json")) -> None:
        super().__init__(results)
        self.formats = formats

    def routes(self, app: web.Application) -> None:
        app.router.add_get("/search", self._search)

    async def _search(self, request: web.Request) -> web.Response:
        wanted = request.query.get("format", "html")
        if wanted not in self.formats:
            return web.Response(
                status=403, text="<!doctype html><title>403 Forbidden</title>", content_type="text/html"
            )
        if self.trouble is not None:
            return self.trouble
        if not request.query.get("q"):
            return web.Response(status=400, text="No query")
        self.asked.append(dict(request.query))
        return web.json_response({"query": request.query["q"], "number_of_results": 0, "results": self.results})
