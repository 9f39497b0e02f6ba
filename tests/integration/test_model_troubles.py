"""A model that fails is told in the chat; one that finds the talk too long is asked with less of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.i18n.catalogue import ENGLISH
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.test_configuration_is_live import until


async def test_a_talk_too_long_for_the_model_is_asked_again_with_its_newest_half(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        for number in range(4):
            telegram.user_says(f"message {number}")
            await telegram.wait_for(lambda number=number: len(telegram.sent) == number + 1)  # type: ignore[misc]
        model.fails_next(400, {"error": {"code": "context_length_exceeded", "message": "too long"}})
        telegram.user_says("the last one")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: the last one")
    assert len(model.requests[-1]["messages"]) < len(model.requests[-2]["messages"])


@pytest.mark.parametrize("said_before", [0, 1])
async def test_results_too_long_for_the_model_are_shown_in_part(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, said_before: int
) -> None:
    too_long = {"error": {"code": "context_length_exceeded", "message": "too long"}}
    async with start():
        for number in range(said_before):
            telegram.user_says(f"message {number}")
            await telegram.wait_for(lambda: len(telegram.sent) == 1)
        (tmp_path / "work" / "long.txt").write_text("first\n" + "word\n" * 3000 + "last\n")
        model.script([calls_tools(("read_file", {"path": "long.txt", "count": 2000}))])
        for _ in range(1 + said_before):
            model.fails_next(400, too_long)
        model.says("I have seen it.")
        telegram.user_says("what is in it?")
        await telegram.wait_for(lambda: "I have seen it." in telegram.texts(7))
    newest = [request["messages"][-1] for request in model.requests]
    told = [message["content"] for message in newest if message["role"] == "tool"]  # beside the request for a summary
    whole, part = told[0], told[-1]
    assert len(told) == 2 + said_before
    assert len(part) < 3000 < len(whole)
    assert part.startswith(whole[:500])
    assert part.endswith(whole[-500:])
    assert "Ask for less at a time" in part


async def test_an_account_out_of_credit_is_told_in_words(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        model.fails_next(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}})
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
    assert "out of credit" in telegram.texts(7)[0]
    assert "no fallback" in telegram.texts(7)[0]


async def test_a_model_that_fails_is_told_in_status_until_it_answers_again(
    start: Start,
) -> None:
    async with start() as gateway:
        gateway.models.failed("quota")
        assert "the newest call failed (quota)" in (await gateway.status())["model"]["note"]
        gateway.models.answered()
        assert (await gateway.status())["model"]["note"] == ""


async def test_the_failure_of_a_model_is_not_told_of_the_one_chosen_after_it(start: Start) -> None:
    async with start() as gateway:
        gateway.models.failed("quota")
        (gateway.home / "config.yaml").write_text("model: {default: another}\n")
        await until(lambda: gateway.config.model.default == "another")
        assert (await gateway.status())["model"]["note"] == ""


async def test_an_answer_that_breaks_off_keeps_what_was_read_and_says_why(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    piece = b'data: {"choices":[{"index":0,"delta":{"content":"Once upon a time"}}]}\n\n'
    for _ in range(5):
        model.sends_next(piece, cut=True)
    async with start():
        telegram.user_says("tell me")
        await telegram.wait_for(lambda: any("My model" in text for text in telegram.texts(7)), 15)
    told = telegram.texts(7)[-1]
    assert told.startswith("Once upon a time …")
    assert "broke off" in told
    assert "no fallback" in told


@pytest.mark.parametrize(
    "reason, told", [("length", ENGLISH.CUT_OFF_LENGTH), ("content_filter", ENGLISH.CUT_OFF_FILTER)]
)
async def test_an_answer_that_was_cut_short_is_told_as_such(
    start: Start, telegram: FakeTelegram, model: FakeModel, reason: str, told: str
) -> None:
    model.says("Half of", finish=reason)
    async with start():
        telegram.user_says("tell me all")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1)
        telegram.user_says("go on")
        await telegram.wait_for(lambda: len(telegram.sent) >= 2)
    assert telegram.texts(7)[0] == f"Half of\n\n{told}"
    said = [each["content"] for each in model.last_request["messages"] if each["role"] == "assistant"]
    assert said == ["Half of"], "the model itself reads only what it said"


async def test_a_model_that_says_nothing_is_told_in_words(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    for _ in range(5):
        model.says("")
    async with start():
        telegram.user_says("hello")
        await telegram.wait_for(lambda: len(telegram.sent) >= 1, 15)
    assert "answered with nothing" in telegram.texts(7)[0]
