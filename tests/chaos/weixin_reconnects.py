"""Connections to Weixin that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from hermes.config import Config, load
from hermes.platforms.weixin import MANIFEST
from tests.chaos import reconnects
from tests.chaos.reconnects import WAIT_SECONDS, Account, Grown, Trouble, is_over, supervised
from tests.chaos.world import until
from tests.fakes.clock import FakeClock
from tests.fakes.weixin import STALE, FakeWeixin


class TroubledWeixin(FakeWeixin):
    """Takes every connection and then does the wrong thing with it. Whoever waits too long is told by the clock."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.trouble = Trouble.NONE
        self.clock = clock
        self.hold_seconds = 0.2  # a poll that began between two troubles is soon a good frame

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        match self.trouble:
            case Trouble.BROKEN_SERVER:
                return web.Response(status=500, text="<html>Internal Server Error</html>")
            case Trouble.SIGNED_OUT:
                return web.json_response(STALE)
            case Trouble.GARBAGE:
                return web.Response(body=b'{"msgs": [\xff', content_type="application/json")
            case Trouble.DROPPED:
                return await self._drop(request)
            case Trouble.HALF_OPEN:
                return await self._say_nothing(request)
            case _:
                return await super()._answer(request)

    async def _drop(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"ret": 0, "msgs"')
        if request.transport is not None:
            request.transport.abort()
        return response

    async def _say_nothing(self, request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(0.02)
        self.clock.advance(120.0)
        await until(lambda: self.trouble is not Trouble.HALF_OPEN or is_over(request), WAIT_SECONDS)
        return web.Response()


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Account]:
    async with TroubledWeixin(FakeClock()) as weixin:
        account = Account(weixin, [_config(folder, weixin, slash) for slash in ("", "/")], MANIFEST)
        async with supervised(account, folder):
            yield account


def _config(folder: Path, weixin: FakeWeixin, slash: str) -> Config:
    # The same server under two names: a change of the account, as a new token would be.
    environ = {**weixin.environ, "WEIXIN_BASE_URL": weixin.url + slash}
    return load(folder, environ, folder, (MANIFEST,)).config


async def fail_again_and_again(folder: Path, failures: int) -> Grown:
    return await reconnects.fail_again_and_again(folder, failures, connected)
