"""A pager service on loopback: it delivers, remembers and refuses as the real one does.

Run against it what every adapter promises, in a clone of Hermes:

    PYTHONPATH=…/hermes-pager/tests ./scripts/test tests/contract/adapters --fake fake_pager:FakePager
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp
from aiohttp import web

from hermes.core.keys import Target
from hermes.core.manifest import AdapterParts
from hermes.core.messages import Capabilities
from hermes.core.ports import Adapter, Alive
from hermes.core.secret import Secret
from hermes_pager import MANIFEST
from hermes_pager.adapter import PagerAdapter
from hermes_pager.wire import TEXT_LIMIT
from tests.fakes.server import Hold, Said, Sent
from tests.fakes.site import Site, session

Json = dict[str, Any]


class FakePager(Site):
    """One account, and Ana, who carries a pager."""

    platform = "pager"
    capabilities: Capabilities = PagerAdapter.capabilities
    identity = "account-17"
    plays = frozenset({"drop", "outage", "rate", "credentials", "hold", "unknown", "broken"})
    secrets = ("pager-token-0123456789",)

    def __init__(self, *, port: int = 0) -> None:
        super().__init__(port=port)
        self._good_token = self.secrets[0]
        self._inbox: list[Json] = []
        self._numbers = 0
        self._by_key: dict[str, Sent] = {}
        self._retry_after: float | None = None
        self._news = asyncio.Event()

    @asynccontextmanager
    async def adapter(
        self, *, alive: Alive = lambda: None, http: aiohttp.ClientSession | None = None
    ) -> AsyncIterator[Adapter]:
        async with session(http) as own:
            values = {"base_url": self.url, "token": Secret(self.secrets[0])}
            yield MANIFEST.build(AdapterParts("main", values, own, alive, {}))

    # ---- what people do ------------------------------------------------------------------------------------

    def target(self) -> Target:
        return Target("pager", "ana")

    def user_says(self, text: str) -> Said:
        page = self._arrives({"kind": "page", "from": {"id": "ana", "name": "Ana"}, "text": text, "at": time.time()})
        return Said(f"page:{page['id']}", page["id"], page["number"], "ana")

    def redeliver(self, said: Said) -> None:
        self._arrives(
            {"kind": "page", "id": said.message_id, "from": {"id": "ana", "name": "Ana"}, "text": "", "at": 0}
        )

    def something_unknown_happens(self) -> None:
        self._arrives({"kind": "battery", "level": 3})

    def something_broken_arrives(self) -> None:
        self._arrives({"kind": "page", "from": "ana"})

    # ---- troubles ------------------------------------------------------------------------------------------

    def limit_next_send(self, retry_after: float) -> None:
        self._retry_after = retry_after

    def refuse_credentials(self) -> None:
        self._good_token = ""

    def hold_sends(self) -> Hold:
        return self.hold("/pages")

    @property
    def polls(self) -> int:
        return self.counts["/inbox"]

    # ---- the service ---------------------------------------------------------------------------------------

    def _arrives(self, page: Json) -> Json:
        self._numbers += 1
        page = {"id": f"p{self._numbers}", **page, "number": self._numbers}
        self._inbox.append(page)
        self._news.set()
        return page

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.counts[request.path] += 1
        self._changes.tell()
        if request.headers.get("Authorization") != f"Bearer {self._good_token}":
            return _refused(401, "this token is not known")
        match request.method, request.path:
            case "GET", "/me":
                return web.json_response({"id": self.identity, "name": "house"})
            case "POST", "/inbox":
                await self._wait_for_news(**await request.json())
                return web.json_response({"pages": self._inbox[:50]})
            case "POST", "/pages":
                answer = self._take(await request.json())
                self._changes.tell()
                await self._kept_back("/pages")
                return answer
        return _refused(404, "there is no such request")

    async def _wait_for_news(self, after: int, wait: float) -> None:
        self._inbox = [page for page in self._inbox if page["number"] > after]
        self._news.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(0 if self._inbox else wait):
                await self._news.wait()

    def _take(self, body: Json) -> web.Response:
        if self._retry_after is not None:
            wait, self._retry_after = self._retry_after, None
            return _refused(429, "too many pages", {"Retry-After": f"{wait:g}"})
        if len(body["text"]) > TEXT_LIMIT:
            return _refused(413, f"a page has at most {TEXT_LIMIT} characters")
        if body["to"] != "ana":
            return _refused(404, f"nobody here is called {body['to']}")
        sent = self._by_key.get(body["key"]) or Sent(body["to"], body["text"], f"s{len(self.sent) + 1}")
        if sent not in self.sent:
            self.sent.append(sent)
        if body["key"]:
            self._by_key[body["key"]] = sent
        return web.json_response({"id": sent.message_id})


def _refused(status: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers=headers)
