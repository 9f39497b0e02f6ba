"""What a chat chose is kept with its lane, and goes with every turn that begins there."""

from __future__ import annotations

from hermes.store import chat_settings
from hermes.store.chat_settings import NO_CHOICES, ChatSettings
from hermes.store.db import Database
from tests.contract.store.rows import LANE, begin_next, begun_turn


async def test_a_chat_that_chose_nothing_has_no_choices(database: Database) -> None:
    assert await database.read(chat_settings.of_lane, LANE) == NO_CHOICES


async def test_choices_are_kept_apart_and_taken_back(database: Database) -> None:
    await database.write(chat_settings.choose, LANE, "model", "relay/m-1")
    await database.write(chat_settings.choose, LANE, "reasoning", "high")
    assert await database.read(chat_settings.of_lane, LANE) == ChatSettings("relay/m-1", "high")
    await database.write(chat_settings.choose, LANE, "model", "")
    assert await database.read(chat_settings.of_lane, LANE) == ChatSettings("", "high")
    assert await database.read(chat_settings.of_lane, "agent:main:telegram:dm:8") == NO_CHOICES


async def test_a_turn_begins_and_is_taken_up_again_with_the_choices_of_its_chat(database: Database) -> None:
    await database.write(chat_settings.choose, LANE, "model", "relay/m-1")
    begun = await begun_turn(database)
    assert begun.choices == ChatSettings("relay/m-1")
    await database.write(chat_settings.choose, LANE, "reasoning", "low")
    again = await database.write(begin_next, begun)
    assert again is not None
    assert (again.is_resumed, again.choices) == (True, ChatSettings("relay/m-1", "low"))
