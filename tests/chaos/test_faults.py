"""N-04, on fake time: "running" but deaf does not exist. Each fault is seen in `status`, and traffic comes back.

./scripts/chaos plays the same faults on a real process and counts real seconds.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from hermes.hosting import status
from hermes.services.gateway import Gateway
from hermes.services.janitor import Janitor
from tests.chaos.inside import started
from tests.chaos.network import Names, Wire
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

SEEN_SECONDS = 30.0
WAIT_SECONDS = 20.0
HOST = "telegram.test"
DAY = 86400.0
HEARD_NOTHING = re.compile("telegram is (silent|connected, but nothing was heard)")
"""Status itself sees it at once; a moment later the adapter is ended for it, and is told as silent."""


async def troubles(gateway: Gateway) -> list[str]:
    return status.troubles({**await gateway.status(), "now": gateway.clock.now()})


async def is_seen(gateway: Gateway, clock: FakeClock) -> str:
    """The words of `status` once it tells of a trouble, which it does before 30 seconds of the fake clock are over."""
    clock.advance(SEEN_SECONDS - 1.0)
    async with asyncio.timeout(WAIT_SECONDS):
        while not (told := await troubles(gateway)):  # noqa: ASYNC110 - status is asked, as people ask it
            await asyncio.sleep(0.05)
    return "; ".join(told)


async def is_answered(telegram: FakeTelegram, gateway: Gateway, clock: FakeClock, *, chat: int = 7) -> None:
    """A message is answered, and all is well again. Time goes on meanwhile, quicker than the real one."""
    telegram.user_says("there?", chat=chat)
    async with asyncio.timeout(WAIT_SECONDS):
        while "echo: there?" not in telegram.texts(chat):
            clock.advance(2.0)
            await asyncio.sleep(0.1)
    assert await troubles(gateway) == []


async def test_a_hung_poll(tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock) -> None:
    async with started(tmp_path, telegram, model, clock=clock) as gateway:
        await is_answered(telegram, gateway, clock, chat=8)
        telegram.hold("getUpdates")
        assert HEARD_NOTHING.match(await is_seen(gateway, clock))
        telegram.release("getUpdates")
        await is_answered(telegram, gateway, clock)


async def test_a_connection_that_is_open_and_dead(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with (
        Wire(telegram.port) as wire,
        started(tmp_path, telegram, model, clock=clock, TELEGRAM_BASE_URL=wire.url) as gateway,
    ):
        await is_answered(telegram, gateway, clock, chat=8)
        wire.cut()
        assert HEARD_NOTHING.match(await is_seen(gateway, clock))
        wire.mend()
        await is_answered(telegram, gateway, clock)


async def test_a_name_that_cannot_be_found(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    names = Names()
    names.known[HOST] = ""
    with names.asked():
        url = f"http://{HOST}:{telegram.port}"
        async with started(tmp_path, telegram, model, clock=clock, TELEGRAM_BASE_URL=url) as gateway:
            assert "telegram is unreachable" in await is_seen(gateway, clock)
            names.known[HOST] = "127.0.0.1"
            await is_answered(telegram, gateway, clock)


async def test_a_name_that_led_elsewhere_for_a_while(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    """As in a hotel, whose network answers every name with its own address until somebody signs in."""
    names = Names()
    names.known[HOST] = "127.0.0.2"
    with names.asked():
        url = f"http://{HOST}:{telegram.port}"
        async with started(tmp_path, telegram, model, clock=clock, TELEGRAM_BASE_URL=url) as gateway:
            assert "telegram is unreachable" in await is_seen(gateway, clock)
            names.known[HOST] = "127.0.0.1"
            await is_answered(telegram, gateway, clock)


@pytest.mark.parametrize("seconds", [DAY, -DAY], ids=["forward", "back"])
async def test_a_clock_that_is_set(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock, seconds: float
) -> None:
    async with started(tmp_path, telegram, model, clock=clock) as gateway:
        await is_answered(telegram, gateway, clock, chat=8)
        clock.jump(seconds)
        assert await troubles(gateway) == []  # ages are counted on a clock that nobody sets
        await is_answered(telegram, gateway, clock)


async def test_what_waits_for_its_time_does_not_wait_a_day_longer_when_the_clock_is_set_back(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with started(tmp_path, telegram, model, clock=clock) as gateway:
        janitor = Janitor(gateway.db, gateway.clock)
        telegram.limit_next_send(5)
        telegram.user_says("hello", chat=8)
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] == 1, WAIT_SECONDS)
        clock.jump(-DAY)
        await janitor.mind_the_clock()
        await is_answered(telegram, gateway, clock, chat=8)
    assert telegram.texts(8) == ["echo: hello", "echo: there?"]
