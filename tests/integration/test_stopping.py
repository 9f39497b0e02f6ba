"""A stop loses nothing: turns that run are told about it, and go on after the next start."""

from __future__ import annotations

from hermes.serving import say_goodbye
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
