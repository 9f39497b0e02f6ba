"""A stop loses nothing: turns that run are told about it, and go on after the next start."""

from __future__ import annotations

from hermes.app.serve import say_goodbye
from hermes.core.i18n.catalogue import ENGLISH
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start


async def test_a_turn_that_runs_is_told_and_goes_on_after_the_restart(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold(silently=True)
    async with start() as gateway:
        telegram.user_says("a long story")
        await model.is_holding()
        await say_goodbye(gateway)
    assert len(telegram.sent) == 1
    assert "Gateway shutting down" in telegram.texts(7)[0]
    model.release()
    async with start():
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: a long story")
    assert len(telegram.sent) == 2


async def test_an_answer_that_is_ready_when_the_stop_comes_is_still_sent(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.hold()
    async with start():
        telegram.user_says("quick one")
        await model.is_holding()
        model.release()
    assert telegram.texts(7) == ["echo: quick one"]


async def test_each_chat_is_told_once_however_much_runs_for_it(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    group = telegram.group()
    model.hold(silently=True)
    async with start(TELEGRAM_ALLOWED_USERS="7,8", TELEGRAM_GROUP_POLICY="open") as gateway:
        for user in (7, 8):
            telegram.user_says("@test_bot a long story", chat=group, user=user)
        telegram.user_says("/background count the stars", chat=8)
        await telegram.wait_for(lambda: len(model.requests) == 3 and len(telegram.sent) == 1)
        await say_goodbye(gateway)
        await telegram.wait_for(lambda: len(telegram.sent) >= 3)
    assert telegram.texts(group) == [ENGLISH.SHUTTING_DOWN]
    assert telegram.texts(8)[1:] == [ENGLISH.SHUTTING_DOWN], "what runs in the background is waited for in a chat too"
    model.release()


async def test_a_goodbye_that_could_not_be_sent_is_not_said_after_the_restart(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    clock = FakeClock()
    model.hold(silently=True)
    async with start(clock=clock) as gateway:
        telegram.user_says("a long story")
        await model.is_holding()
        telegram.limit_next_send(3)
        await say_goodbye(gateway)
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] == 1)
    model.release()
    clock.advance(10)
    async with start(clock=clock):
        await telegram.wait_for(lambda: telegram.texts(7) == ["echo: a long story"])
        assert telegram.texts(7) == ["echo: a long story"]
