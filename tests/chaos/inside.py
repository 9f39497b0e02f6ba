"""The gateway in this process, as often as you like on one home: for accidents that need no kill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.app.lifespan import GatewayOptions, open_gateway
from hermes.core.ports import Clock
from hermes.services.clock import SystemClock
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import DEFAULT_PACE, PresenterTiming
from tests.fakes.model import FakeModel
from tests.fakes.telegram import UNPACED, FakeTelegram


@asynccontextmanager
async def started(
    folder: Path,
    telegram: FakeTelegram,
    model: FakeModel,
    *,
    clock: Clock | None = None,
    pace: PresenterTiming = DEFAULT_PACE,
    **environ: str,
) -> AsyncIterator[Gateway]:
    """Everybody is let in, and in a busy chat each message is a turn of its own."""
    workspace = folder / "work"
    workspace.mkdir(parents=True, exist_ok=True)
    setting = GatewayOptions(
        home=folder / "home",
        environ={
            "TELEGRAM_BOT_TOKEN": telegram.token,
            "TELEGRAM_BASE_URL": telegram.url,
            **UNPACED,
            "TELEGRAM_ALLOW_ALL_USERS": "true",
            "OPENAI_API_KEY": "sk-test-0123456789",
            "OPENAI_BASE_URL": model.url,
            "MESSAGING_CWD": str(workspace),
            "HERMES_BUSY_MODE": "queue",
            **environ,
        },
        cwd=folder,
        clock=clock or SystemClock(),
        pace=pace,
    )
    async with open_gateway(setting) as gateway:
        yield gateway
