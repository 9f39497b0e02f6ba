"""Connections to Weixin that fail, of every kind: no descriptor, task or thread is left behind by any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from hermes.config import Config, load
from hermes.platforms.weixin import MANIFEST
from tests.chaos import reconnects
from tests.chaos.reconnects import Account, Grown, TroubledSite, supervised
from tests.fakes.clock import FakeClock
from tests.fakes.weixin import STALE, FakeWeixin


class TroubledWeixin(TroubledSite, FakeWeixin):
    beginning = b'{"ret": 0, "msgs"'
    patience_seconds = 120.0

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.hold_seconds = 0.2  # a poll that began between two troubles is soon a good frame

    def _signed_out(self) -> web.Response:
        return web.json_response(STALE)


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
