"""/restart: the worker is replaced once, and whoever asked is told before or after it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.hosting.control import client as control
from tests.chaos.world import opened, until

SECONDS = 20.0


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_an_admin_restarts_the_gateway_from_a_chat_and_nobody_else_does(tmp_path: Path) -> None:
    async with opened(tmp_path / "world", seed=6) as world:
        telegram, gateway = world.telegram, world.gateway
        telegram.user_says("hello")
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: hello"), SECONDS)
        first = gateway.worker()
        telegram.user_says("/restart")
        await telegram.wait_for(lambda: any("needs the role admin" in text for text in telegram.texts()), SECONDS)
        assert gateway.worker() == first
        await asyncio.to_thread(control.call, gateway.home, "people.role", {"person": "telegram:7", "role": "admin"})
        telegram.user_says("/restart")
        await until(lambda: gateway.worker() not in (0, first), SECONDS)
        second = await gateway.ready()
        await telegram.wait_for(lambda: any("Restarting." in text for text in telegram.texts()), SECONDS)
        telegram.user_says("are you there?")
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: are you there?"), SECONDS)
        assert gateway.worker() == second, "once"
