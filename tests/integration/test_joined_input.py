"""What a person means as one message makes one turn, however many pieces the platform made of it."""

from __future__ import annotations

import pytest

from tests.fakes.model import FakeModel, last_user_text
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import all_turns

MODES = ["interrupt", "queue", "steer"]
SECONDS = 30


@pytest.mark.parametrize("mode", MODES)
async def test_forwards_are_one_turn(start: Start, telegram: FakeTelegram, model: FakeModel, mode: str) -> None:
    async with start(HERMES_BUSY_MODE=mode) as gateway:
        telegram.user_forwards(["first of three", "second of three", "third of three"])
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        turns = await all_turns(gateway)
    assert len(turns) == len(model.requests) == 1
    assert last_user_text(model.last_request) == "first of three\nsecond of three\nthird of three"


async def test_what_is_said_about_forwards_belongs_to_them(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(HERMES_BUSY_MODE="queue"):
        telegram.user_forwards(["an old letter"])
        telegram.user_says("what does it mean?")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
    assert last_user_text(model.last_request) == "an old letter\nwhat does it mean?"


async def test_an_album_is_one_turn_with_all_its_pictures(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        telegram.user_sends_album([b"\xff\xd8one", b"\xff\xd8two", b"\xff\xd8three"], "our trip")
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        turns = await all_turns(gateway)
    assert len(turns) == 1
    asked = "\n".join(str(message["content"]) for message in model.requests[0]["messages"])
    assert "our trip" in asked
    assert asked.count("[image: hermes-files/") == 3


@pytest.mark.parametrize("mode", MODES)
async def test_a_text_that_the_platform_cut_is_one_turn(
    start: Start, telegram: FakeTelegram, model: FakeModel, mode: str
) -> None:
    parts = ["a" * 4096, "b" * 4096, "and the end"]
    async with start(HERMES_BUSY_MODE=mode) as gateway:
        for part in parts:
            telegram.user_says(part)
        await telegram.wait_for(lambda: bool(telegram.sent), SECONDS)
        turns = await all_turns(gateway)
    assert len(turns) == 1
    assert last_user_text(model.last_request) == "\n".join(parts)
