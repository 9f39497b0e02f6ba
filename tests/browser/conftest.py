"""A gateway in this process, a real Chromium beside it, and somebody signed in.

The short form runs in the suite; everything runs with HERMES_TEST_BROWSER=all.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from hermes.hosting.control.handlers.dashboard import DashboardVerbs
from tests.browser.chromium import Chromium, Page, find_chromium
from tests.integration.api.serving import Quiet, Served, served
from tests.integration.conftest import Start, start

__all__ = ["start"]

IS_WHOLE = os.environ.get("HERMES_TEST_BROWSER") == "all"
whole = pytest.mark.skipif(not IS_WHOLE, reason="part of the long form: HERMES_TEST_BROWSER=all")


@dataclass(frozen=True, slots=True)
class Desk:
    """Where somebody sits: the gateway behind ``api``, and the browser."""

    api: Served
    browser: Chromium

    async def link(self) -> str:
        """What `hermes dashboard` prints."""
        gateway = self.api.gateway
        verbs = DashboardVerbs(gateway.db, gateway.clock, lambda: gateway.config, lambda: self.api.url)
        return str((await verbs.mapping()["dashboard.link"]({}, Quiet()))["url"])

    def url(self, page: str) -> str:
        return f"{self.api.url}/dashboard/{page}"

    async def signed_in(self, page: str = "chat", **window: object) -> Page:
        """Open a window of the owner, with a page in it."""
        opened = await self.browser.page(**window)  # type: ignore[arg-type]
        await opened.goto(await self.link())
        await opened.wait("document.querySelector('.frame')")
        if page != "chat":
            await opened.goto(self.url(page))
            await opened.wait("document.querySelector('main h1')")
        return opened

    async def beside(self, other: Page, page: str, **window: object) -> Page:
        """Open a second window of the same person."""
        opened = await self.browser.page(beside=other, **window)  # type: ignore[arg-type]
        await opened.goto(self.url(page))
        await opened.wait("document.querySelector('main h1')")
        return opened


@pytest.fixture
async def browser() -> AsyncIterator[Chromium]:
    if find_chromium() is None:
        pytest.skip("there is no chromium here (Debian: apt install chromium)")
    async with Chromium() as running:
        yield running


@pytest.fixture
async def desk(start: Start, browser: Chromium) -> AsyncIterator[Desk]:
    async with served(start) as api:
        yield Desk(api, browser)
