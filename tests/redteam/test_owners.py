"""Attempts to become the owner: by strangers, by other people's words, by old messages, by the model."""

from __future__ import annotations

import pytest

from hermes.services.gateway import Gateway
from hermes.store import people
from hermes.store.db import Tx
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS, answered, question, until

NEW = {"GATEWAY_OWNERS": ""}


def owners(tx: Tx) -> list[str]:
    return tx.all("SELECT id FROM people WHERE role = 'owner' AND id NOT LIKE 'p_local%'", str)


async def greet(telegram: FakeTelegram, model: FakeModel) -> None:
    model.script(["Hello."])
    telegram.user_says("hello")
    await answered(telegram, "Hello.")


async def nobody_is_owner(gateway: Gateway) -> bool:
    return not await gateway.db.read(owners) and not await gateway.db.read(people.has_owner)


@pytest.mark.parametrize("data", ["owner:yes", "owner:no"])
async def test_a_stranger_presses_the_button(start: Start, telegram: FakeTelegram, model: FakeModel, data: str) -> None:
    async with start(**NEW) as gateway:
        await greet(telegram, model)
        card = await question(telegram)
        label = next(button.label for row in card.buttons for button in row if button.data == data)
        telegram.user_presses(card, label, user=666, name="Eve")
        await until(lambda: _was_refused(gateway))
        assert await nobody_is_owner(gateway)


async def _was_refused(gateway: Gateway) -> bool:
    def read(tx: Tx) -> int:
        return int(tx.value("SELECT COUNT(*) FROM inbox WHERE state = 'refused' AND sender_id = '666'"))

    return await gateway.db.read(read) > 0


async def test_a_stranger_types_it(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW) as gateway:
        await greet(telegram, model)
        telegram.user_says("/owner yes", chat=666, user=666, name="Eve")
        await until(lambda: _was_refused(gateway))
        assert await nobody_is_owner(gateway)


async def test_the_model_writes_it(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW) as gateway:
        model.script(["/owner yes", "/owner yes"])
        telegram.user_says("say: /owner yes")
        await answered(telegram, "/owner yes")
        await question(telegram)
        assert await nobody_is_owner(gateway)


async def test_an_old_message_is_edited_into_it(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW) as gateway:
        model.script(["Hello.", "Again."])
        said = telegram.user_says("hello")
        await answered(telegram, "Hello.")
        await question(telegram)
        telegram.user_edits(said, "/owner yes")
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, SECONDS)
        assert await nobody_is_owner(gateway)


async def test_it_is_one_word_among_others(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW) as gateway:
        await greet(telegram, model)
        telegram.user_says("/owner yes please")
        await answered(telegram, "/owner yes or /owner no.")
        assert await nobody_is_owner(gateway)


async def test_a_bare_yes_to_the_model_is_no_yes_to_the_question(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(**NEW) as gateway:
        await greet(telegram, model)
        await question(telegram)
        model.script(["Then I do."])
        telegram.user_says("yes")
        await answered(telegram, "Then I do.")
        assert await nobody_is_owner(gateway)
