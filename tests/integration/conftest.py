"""The whole gateway in this process: real store, real sockets, a fake Telegram and a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.app.tools import TOOLS
from hermes.core.ports import Clock
from hermes.services.clock import SystemClock
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import DEFAULT_PACE, PresenterTiming
from hermes.store.db import StoreLimits
from tests.fakes import tools
from tests.fakes.model import FakeModel
from tests.fakes.started_home import copy_home
from tests.fakes.telegram import UNPACED, FakeTelegram

USER = 7


Start = Callable[..., AbstractAsyncContextManager[Gateway]]


@pytest.fixture
def start(telegram: FakeTelegram, model: FakeModel, tmp_path: Path) -> Start:
    return start_on(telegram, model, tmp_path)


def start_on(telegram: FakeTelegram, model: FakeModel, tmp_path: Path) -> Start:
    """``async with start() as gateway:`` starts it on one and the same home, as often as you like.

    Another ``folder`` is another home: in a cluster, another node. A home has been started once before, unless
    it ``is_first`` or the store is a database on a server.
    """

    @asynccontextmanager
    async def starter(
        *,
        clock: Clock | None = None,
        pace: PresenterTiming = DEFAULT_PACE,
        limits: StoreLimits | None = None,
        folder: str = "home",
        is_first: bool = False,
        on_gone: Callable[[str], None] = lambda _: None,
        **environ: str,
    ) -> AsyncIterator[Gateway]:
        home = tmp_path / folder
        extra: tuple[ModuleType, ...] = (tools,)
        setting = GatewayOptions(
            home=home,
            environ={
                "TELEGRAM_BOT_TOKEN": telegram.token,
                "TELEGRAM_BASE_URL": telegram.url,
                **UNPACED,
                "TELEGRAM_ALLOWED_USERS": str(USER),
                "GATEWAY_OWNERS": "local",  # else the only listed person is asked after the first turn
                "OPENAI_API_KEY": "sk-test-0123456789",
                "OPENAI_BASE_URL": f"{model.url}",
                "MESSAGING_CWD": str(tmp_path / "work"),
                **environ,
            },
            cwd=tmp_path,
            tools=(*TOOLS, *extra),
            clock=clock or SystemClock(),
            store_limits=limits or StoreLimits(),
            pace=pace,
            on_gone=on_gone,
        )
        (tmp_path / "work").mkdir(exist_ok=True)
        if not is_first and "HERMES_DATABASE_URL" not in environ:
            copy_home(home)
        async with open_gateway(setting) as gateway:
            yield gateway

    return starter


async def crash(gateway: Gateway) -> None:
    """Die as far as a process can that goes on: from now on nothing is stored, and nothing is left in hand cleanly."""
    await gateway.db.close()
    await gateway.lanes.drain(0)
    await gateway.delivery.drain(0)
