"""What every adapter promises. A new platform joins by adding its fake to FAKES.

A platform of another package is asked the same, in place of ours, by ``--fake module:Class`` (docs/platforms.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pkgutil import resolve_name

import pytest
import pytest_asyncio

from hermes.core.errors import StoreIsDownError
from hermes.core.messages import Cursor, Ignored, InboundEvent, InboundMessage, OutboundMessage, Press
from hermes.core.ports import Adapter
from tests.fakes.discord import FakeDiscord
from tests.fakes.local import FakeLocal
from tests.fakes.qq import FakeQQ
from tests.fakes.server import FakeServer
from tests.fakes.slack import FakeSlack
from tests.fakes.telegram import FakeTelegram
from tests.fakes.weixin import FakeWeixin
from tests.fakes.whatsapp_account import FakeWhatsAppAccount

FAKES: tuple[Callable[[], FakeServer], ...] = (
    FakeTelegram,
    FakeDiscord,
    FakeQQ,
    FakeSlack,
    FakeLocal,
    FakeWeixin,
    FakeWhatsAppAccount,
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fake",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="ask the promises of an adapter of this fake of yours, in place of ours (may be given again)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "plays(*what): what the fake must be able to act out for this test")


def fakes(config: pytest.Config) -> Sequence[Callable[[], FakeServer]]:
    return [resolve_name(name) for name in config.getoption("--fake", [])] or FAKES


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        metafunc.parametrize("server", fakes(metafunc.config), indirect=True, ids=lambda fake: fake.platform)


@pytest_asyncio.fixture
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeServer]:
    """A fake that is up. Tests that need it to play something it cannot are skipped, with the reason."""
    fake: FakeServer = request.param()
    needed = request.node.get_closest_marker("plays")
    missing = set(needed.args) - fake.plays if needed else ()
    if missing:
        pytest.skip(f"{fake.platform} has no {', '.join(sorted(missing))}")
    async with fake:
        yield fake


class Inbox:
    """An inbox in memory, which can be down."""

    def __init__(self) -> None:
        self.events: list[InboundEvent] = []
        self.batches = 0
        self.is_down = False
        self.cursor: dict[str, str] = {}
        self._arrived = asyncio.Event()
        self._ended: BaseException | None = None

    async def __call__(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        self.batches += 1
        if self.is_down:
            raise StoreIsDownError("the disk is full")
        self.events.extend(event for event in events if not isinstance(event, Ignored))
        self.cursor.update(cursor or {})
        self._arrived.set()

    @property
    def keys(self) -> list[str]:
        return [event.keys[0] for event in self.events]

    async def until(self, count: int) -> None:
        """Return when so many events have arrived; the test's own timeout bounds it."""
        while len(self.events) < count:
            if self._ended is not None:
                raise self._ended
            self._arrived.clear()
            await self._arrived.wait()

    def begins(self) -> None:
        self._ended = None

    def has_ended(self, running: asyncio.Task[None]) -> None:
        """Nothing more will arrive; whoever waits is told why."""
        self._ended = None if running.cancelled() else running.exception()
        self._arrived.set()

    async def message(self) -> InboundMessage:
        await self.until(1)
        event = self.events.pop(0)
        assert isinstance(event, InboundMessage), event
        return event

    async def press(self) -> Press:
        await self.until(1)
        event = self.events.pop(0)
        assert isinstance(event, Press), event
        return event


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


@asynccontextmanager
async def receiving(adapter: Adapter, inbox: Inbox) -> AsyncIterator[asyncio.Task[None]]:
    inbox.begins()
    running = asyncio.create_task(adapter.run(inbox))
    running.add_done_callback(inbox.has_ended)
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.wait({running})


def saying(server: FakeServer, text: str) -> OutboundMessage:
    return OutboundMessage(server.target(), text)
