"""Five messages during a long turn: each mode accounts for all of them, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.i18n.catalogue import ENGLISH
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import PresenterTiming
from hermes.store.db import Tx
from tests.fakes.model import FakeModel, calls_tools, last_user_text
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start

FIVE = [f"word {number}" for number in range(1, 6)]
WAIT_SECONDS = 30


async def outcomes(gateway: Gateway) -> list[tuple[str, str]]:
    """State and turn of every message of the chat, in the order in which they came."""

    def read(tx: Tx) -> list[tuple[str, str]]:
        return tx.all("SELECT state, turn_id FROM inbox ORDER BY seq", lambda state, turn: (str(state), str(turn)))

    return await gateway.db.read(read)


async def say_five_during_a_turn(telegram: FakeTelegram, model: FakeModel) -> None:
    model.hold()
    telegram.user_says("first")
    await model.is_holding(WAIT_SECONDS)
    for text in FIVE:
        telegram.user_says(text)
    await telegram.wait_for(lambda: telegram.unconfirmed == 0, WAIT_SECONDS)


def positions(text: str) -> list[int]:
    return [text.index(each) for each in FIVE]


async def test_interrupt_stops_the_turn_and_joins_all_five(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="interrupt") as gateway:
        await say_five_during_a_turn(telegram, model)
        await model.is_hung_up_on(WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: bool(telegram.sent), WAIT_SECONDS)
        settled = await outcomes(gateway)
    prompt = last_user_text(model.last_request)
    assert positions(prompt) == sorted(positions(prompt))
    assert "first" not in prompt
    assert telegram.texts(7) == [f"echo: {prompt}"]
    assert [state for state, _ in settled] == ["set_aside", *["answered"] * 5]
    assert len({turn for _, turn in settled}) == 2
    assert len(model.requests) == 2


async def test_messages_that_keep_interrupting_are_all_seen_by_the_model_in_order(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="interrupt") as gateway:
        model.hold()
        telegram.user_says("first")
        for number, text in enumerate(FIVE, start=1):
            await telegram.wait_for(lambda asked=number: len(model.requests) == asked, WAIT_SECONDS)  # type: ignore[misc]
            telegram.user_says(text)
        await telegram.wait_for(lambda: len(model.requests) >= 6, WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: bool(telegram.sent), WAIT_SECONDS)
        settled = await outcomes(gateway)
    asked = [str(each["content"]) for each in model.last_request["messages"] if each["role"] == "user"]
    assert [text for text in ["first", *FIVE] if any(text in one for one in asked)] == ["first", *FIVE]
    assert positions("\n".join(asked)) == sorted(positions("\n".join(asked)))
    assert [state for state, _ in settled] == [*["set_aside"] * 5, "answered"]


async def test_queue_answers_each_in_a_turn_of_its_own(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(HERMES_BUSY_MODE="queue") as gateway:
        await say_five_during_a_turn(telegram, model)
        model.release()
        await telegram.wait_for(lambda: len(telegram.sent) >= 6, WAIT_SECONDS)
        settled = await outcomes(gateway)
    assert telegram.texts(7) == [f"echo: {text}" for text in ["first", *FIVE]]
    assert [state for state, _ in settled] == ["answered"] * 6
    assert len({turn for _, turn in settled}) == 6


@pytest.mark.parametrize("where", ["general", "platform"])
async def test_steer_hands_all_five_over_after_the_tool_call(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, where: str
) -> None:
    if where == "platform":
        (tmp_path / "home").mkdir(mode=0o700, exist_ok=True)
        config = "platforms:\n  telegram:\n    busy_mode: steer\n"
        (tmp_path / "home" / "config.yaml").write_text(config, encoding="utf-8")
    environ = {"HERMES_BUSY_MODE": "steer"} if where == "general" else {}
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "notes.txt").write_text("Bread.", encoding="utf-8")
    model.script([calls_tools(("read_file", {"path": "notes.txt"}))])
    async with start(**environ) as gateway:
        await say_five_during_a_turn(telegram, model)
        model.release()
        await telegram.wait_for(lambda: bool(telegram.sent), WAIT_SECONDS)
        settled = await outcomes(gateway)
    roles = [message["role"] for message in model.last_request["messages"] if message["role"] != "system"]
    assert roles == ["user", "assistant", "tool", "user"]
    prompt = last_user_text(model.last_request)
    assert positions(prompt) == sorted(positions(prompt))
    assert telegram.texts(7) == [f"echo: {prompt}"]
    assert [state for state, _ in settled] == ["answered"] * 6
    assert len({turn for _, turn in settled}) == 1


# One message, whatever the mode


TOLD_AT_ONCE = PresenterTiming(told_it_waits_seconds=0.01)


async def test_what_waits_is_told_once_for_each_turn_and_comes_next(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="queue", pace=TOLD_AT_ONCE):
        await say_five_during_a_turn(telegram, model)
        await telegram.wait_for(lambda: telegram.texts(7) == [ENGLISH.WAITS_IN_LINE], WAIT_SECONDS)
        telegram.user_says("/status")  # stored after all of them: none of them says anything more
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: len(telegram.sent) >= 8, WAIT_SECONDS)
    assert telegram.texts(7)[2:] == [f"echo: {text}" for text in ["first", *FIVE]]


async def test_an_interrupted_turn_needs_no_words(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(HERMES_BUSY_MODE="interrupt", pace=TOLD_AT_ONCE):
        await say_five_during_a_turn(telegram, model)
        await model.is_hung_up_on(WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: bool(telegram.sent), WAIT_SECONDS)
    assert len(telegram.sent) == 1


async def test_a_message_that_was_begun_meanwhile_is_not_told_that_it_waits(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="queue", pace=PresenterTiming(told_it_waits_seconds=0.2)):
        await say_five_during_a_turn(telegram, model)
        model.release()
        await telegram.wait_for(lambda: len(telegram.sent) >= 6, WAIT_SECONDS)
        telegram.user_says("last")
        await telegram.wait_for(lambda: telegram.texts(7)[-1] == "echo: last", WAIT_SECONDS)
    assert ENGLISH.WAITS_IN_LINE not in telegram.texts(7)


async def test_one_message_can_be_queued_in_a_chat_that_interrupts(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="interrupt", pace=TOLD_AT_ONCE) as gateway:
        model.hold()
        telegram.user_says("first")
        await model.is_holding(WAIT_SECONDS)
        telegram.user_says("/queue and then this")
        await telegram.wait_for(lambda: telegram.texts(7) == [ENGLISH.WAITS_IN_LINE], WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, WAIT_SECONDS)
        settled = await outcomes(gateway)
    assert telegram.texts(7)[1:] == ["echo: first", "echo: and then this"]
    assert len({turn for _, turn in settled}) == 2


async def test_one_message_can_steer_in_a_chat_that_queues(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "notes.txt").write_text("Bread.", encoding="utf-8")
    model.script([calls_tools(("read_file", {"path": "notes.txt"}))])
    async with start(HERMES_BUSY_MODE="queue", pace=TOLD_AT_ONCE) as gateway:
        model.hold()
        telegram.user_says("first")
        await model.is_holding(WAIT_SECONDS)
        telegram.user_says("later")
        telegram.user_says("/steer in Swedish")
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, WAIT_SECONDS)
        model.release()
        await telegram.wait_for(lambda: len(telegram.sent) >= 4, WAIT_SECONDS)
        settled = await outcomes(gateway)
    assert sorted(telegram.texts(7)[:2]) == sorted([ENGLISH.WAITS_IN_LINE, ENGLISH.TAKEN_INTO_ACCOUNT])
    assert telegram.texts(7)[2:] == ["echo: in Swedish", "echo: later"]
    turns = [turn for _, turn in settled]
    assert turns[0] == turns[2] != turns[1]


async def test_without_a_text_they_say_what_they_do(start: Start, telegram: FakeTelegram) -> None:
    async with start():
        telegram.user_says("/queue")
        telegram.user_says("/steer")
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, WAIT_SECONDS)
    assert telegram.texts(7) == [ENGLISH.QUEUE_USAGE, ENGLISH.STEER_USAGE]
