"""What the window of `gateway run` is told after its greeting, with the whole gateway behind it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.core.ports import Clock
from hermes.hosting import window as window_module
from hermes.hosting.window import ForegroundWindow
from hermes.services.gateway import Gateway
from hermes.services.news import ModelFetched
from tests.fakes.clock import FakeClock
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS

ANA = 5550142


@asynccontextmanager
async def opened(
    start: Start, telegram: FakeTelegram, clock: Clock | None = None
) -> AsyncIterator[tuple[Gateway, list[str]]]:
    """A gateway, and the lines of its window, which stands before Telegram is reached."""
    shown: list[str] = []
    telegram.hold("getMe")
    async with start(clock=clock) as gateway:
        window = ForegroundWindow(gateway, "hermes", shown.append)
        with gateway.news.watch(window.notice):
            showing = asyncio.create_task(window.run())
            telegram.release("getMe")
            await shows(shown, r"(?m)^\d\d:\d\d  Chats     telegram @\w+, connected$")
            try:
                yield gateway, shown
            finally:
                showing.cancel()
                await asyncio.wait({showing}, timeout=SECONDS)


async def shows(shown: list[str], pattern: str) -> str:
    async with asyncio.timeout(SECONDS):
        while not (found := re.search(pattern, "\n".join(shown))):  # noqa: ASYNC110 - a list tells nobody
            await asyncio.sleep(0.01)
    return found[0]


async def test_a_chat_that_connects_later_is_told_by_its_name(start: Start, telegram: FakeTelegram) -> None:
    async with opened(start, telegram) as (_, shown):
        assert len(shown) == 1, "and the terminal itself is no chat"


async def test_a_stranger_is_told_once_with_the_command_that_lets_them_in(start: Start, telegram: FakeTelegram) -> None:
    clock = FakeClock()
    async with opened(start, telegram, clock) as (gateway, shown):
        telegram.user_says("hi", chat=ANA, name="Ana\x1b[2J")
        asked = await shows(shown, r"(?m)^\d\d:\d\d  Pairing   .* asks for access\. To approve:\n.*$")
        assert "Ana‹U+001B›[2J (telegram 5550142)" in asked
        (waiting,) = await gateway.pairings.waiting()
        assert asked.splitlines()[1].strip() == f"hermes pairing approve telegram {waiting.code}"
        await telegram.wait_for(lambda: len(telegram.texts(ANA)) == 1, SECONDS)
        clock.advance(30)  # sooner, the code is not shown again
        telegram.user_says("hello?", chat=ANA, name="Ana")
        await telegram.wait_for(lambda: len(telegram.texts(ANA)) == 2, SECONDS)
        assert len([line for line in shown if "asks for access" in line]) == 1


async def test_a_token_that_is_refused_is_told_with_its_cure(start: Start, telegram: FakeTelegram) -> None:
    async with opened(start, telegram) as (_, shown):
        telegram.refuse_credentials()
        assert " → " in await shows(shown, r"Chats     telegram, signed out .*")


async def test_a_connection_that_is_soon_back_is_not_worth_a_line(start: Start, telegram: FakeTelegram) -> None:
    async with opened(start, telegram) as (_, shown):
        telegram.drop_connection()
        telegram.user_says("hi", chat=7)
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: hi"], SECONDS)
        assert len(shown) == 1


async def test_a_connection_that_stays_away_is_told_and_its_return_too(
    start: Start, telegram: FakeTelegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_module, "PATIENCE_SECONDS", 0.05)
    async with opened(start, telegram) as (_, shown):
        telegram.refuse_next("getUpdates", 502, "Bad Gateway")
        telegram.drop_connection()  # the poll that is open
        assert await shows(shown, r"Chats     telegram, unreachable \(.*\)")
        assert await shows(shown, r"(?s)unreachable.*telegram @\w+, connected")


async def test_the_model_is_told_when_it_came_and_a_failure_once_for_each_reason(
    start: Start, telegram: FakeTelegram
) -> None:
    async with opened(start, telegram) as (gateway, shown):
        for reason in ("No network.", "No network.", "The disk is full.", ""):
            gateway.news.publish(ModelFetched(reason))
        await shows(shown, "is here")
        assert [line.split("  ", 1)[1] for line in shown if "Model" in line] == [
            "Model     built-in, not here yet. No network.",
            "Model     built-in, not here yet. The disk is full.",
            "Model     built-in is here. Say hello: hermes",
        ]
