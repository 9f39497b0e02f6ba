"""Who is the owner: the only listed person who says so in a private chat, or whom the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store import people
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS, answered, make, question, results, until

ASK = "Is this you, the owner?"
NEW = {"GATEWAY_OWNERS": ""}
WHERE = calls_tools(("terminal", {"command": "echo $PPID in $PWD > where.txt && cat where.txt"}))


async def role_of(gateway: Gateway, user: int = 7) -> str:
    person = await gateway.db.read(people.find, "telegram", str(user))
    return person.role if person is not None else ""


def asked(telegram: FakeTelegram) -> list[str]:
    return [sent.text for sent in telegram.sent if ASK in sent.text]


async def says(telegram: FakeTelegram, model: FakeModel, text: str, reply: str = "Hello.", user: int = 7) -> None:
    before = telegram.texts().count(reply)
    model.script([reply])
    telegram.user_says(text, chat=user, user=user, name="Ana")
    await telegram.wait_for(lambda: telegram.texts().count(reply) > before, SECONDS)


@pytest.mark.parametrize("by", ["button", "typed"])
async def test_one_message_one_answer_and_commands_run_on_the_machine(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path, by: str
) -> None:
    async with start(**NEW) as gateway:
        await says(telegram, model, "hello")
        card = await question(telegram)
        assert ASK in card.text
        assert "telegram:7" in card.text
        assert await role_of(gateway) == "user"
        if by == "button":
            telegram.user_presses(card, "Yes, I am the owner")
        else:
            telegram.user_says("/owner yes")
        await telegram.wait_for(lambda: any("You are my owner now" in text for text in telegram.texts()), SECONDS)
        assert await role_of(gateway) == "owner"
        model.script([WHERE, "Ran."])
        telegram.user_says("where are you?")
        await answered(telegram, "Ran.")
    assert "Exit code 0" in results(model)[0]
    assert (tmp_path / "work" / "where.txt").read_text().split()[-1] == str(tmp_path / "work")
    assert "sandbox" not in results(model)[0]
    assert len(asked(telegram)) <= 1


async def test_no_is_remembered_over_a_restart(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW) as gateway:
        await says(telegram, model, "hello")
        telegram.user_presses(await question(telegram), "No")
        await telegram.wait_for(lambda: any("I will not ask again" in text for text in telegram.texts()), SECONDS)
        assert await role_of(gateway) == "user"
    async with start(**NEW):
        await says(telegram, model, "hello again")
        await says(telegram, model, "and again")
    assert len(asked(telegram)) <= 1, "the question was edited or stands, and was not put again"


async def test_it_is_asked_once_however_much_is_written(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW):
        for number in range(3):
            await says(telegram, model, f"hello {number}")
        await question(telegram)
    async with start(**NEW):
        await says(telegram, model, "later")
    assert len(asked(telegram)) == 1


@pytest.mark.parametrize(
    "environ",
    [
        {"TELEGRAM_ALLOWED_USERS": "7,8"},
        {"TELEGRAM_ALLOWED_USERS": "*"},
        {"TELEGRAM_ALLOW_ALL_USERS": "true"},
        {"TELEGRAM_DM_POLICY": "open"},
        {"GATEWAY_OWNERS": "local"},
        {"GATEWAY_OWNERS": "telegram:9"},
        {"GATEWAY_ALLOWED_USERS": "8"},
    ],
    ids=str,
)
async def test_others_on_the_list_or_an_owner_elsewhere_and_nobody_is_asked_or_believed(
    start: Start, telegram: FakeTelegram, model: FakeModel, environ: dict[str, str]
) -> None:
    async with start(**{**NEW, **environ}) as gateway:
        await says(telegram, model, "hello")
        telegram.user_says("/owner yes")
        await telegram.wait_for(
            lambda: any("Only a person at the machine" in text for text in telegram.texts()), SECONDS
        )
        assert await role_of(gateway) == "user"
    assert asked(telegram) == []


async def test_a_second_id_on_the_list_changes_nothing_without_the_owner(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(**NEW) as gateway:
        await says(telegram, model, "hello")
        card = await question(telegram)
    async with start(**{**NEW, "TELEGRAM_ALLOWED_USERS": "7,8"}) as gateway:
        telegram.user_presses(card, "Yes, I am the owner")
        await telegram.wait_for(lambda: bool(telegram.answered_presses), SECONDS)
        assert await role_of(gateway) == "user", "asked while one was listed, answered while two are"
        telegram.user_says("/owner yes", chat=8, user=8, name="Bo")
        await telegram.wait_for(lambda: bool(telegram.texts(8)), SECONDS)
        assert await role_of(gateway, 8) == "user"
    async with start(**NEW) as gateway:
        telegram.user_says("/owner yes")
        await until(lambda: _is(gateway, 7, "owner"))
    async with start(**{**NEW, "TELEGRAM_ALLOWED_USERS": "8"}) as gateway:
        await says(telegram, model, "hi", "Hi Bo.", user=8)
        telegram.user_says("/owner yes", chat=8, user=8, name="Bo")
        await telegram.wait_for(lambda: sum("Only a person" in text for text in telegram.texts(8)) >= 2, SECONDS)
        assert await role_of(gateway, 8) == "user", "there is an owner, though no list names them any more"


async def _is(gateway: Gateway, user: int, role: str) -> bool:
    return await role_of(gateway, user) == role


async def test_a_group_neither_asks_nor_answers(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    async with start(**NEW, TELEGRAM_GROUP_POLICY="open", TELEGRAM_REQUIRE_MENTION="false") as gateway:
        model.script(["Hello all."])
        telegram.user_says_in_group("hello", to_us=True)
        await answered(telegram, "Hello all.")
        telegram.user_says_in_group("/owner yes", to_us=True)
        await telegram.wait_for(lambda: any("private chat" in text for text in telegram.texts()), SECONDS)
        assert await role_of(gateway) == "user"
    assert asked(telegram) == []


async def test_a_role_given_by_hand_is_not_raised_by_a_word(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start(**NEW) as gateway:
        await make(gateway, 7, PersonRole.ADMIN)
        await says(telegram, model, "hello")
        telegram.user_says("/owner yes")
        await telegram.wait_for(
            lambda: any("Only a person at the machine" in text for text in telegram.texts()), SECONDS
        )
        assert await role_of(gateway) == "admin"
    assert asked(telegram) == []


async def test_the_settings_name_the_owner_let_them_in_and_take_it_back(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    named = {"GATEWAY_OWNERS": "telegram:7", "TELEGRAM_ALLOWED_USERS": ""}
    async with start(**named) as gateway:
        await says(telegram, model, "hello")
        assert await role_of(gateway) == "owner"
    async with start(GATEWAY_OWNERS="telegram:9") as gateway:
        await until(lambda: _is(gateway, 7, "user"))
        await says(telegram, model, "hello again")
        assert await role_of(gateway) == "user"
    assert asked(telegram) == []


async def test_an_owner_named_while_it_runs_is_owner_from_the_next_message_on(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start(GATEWAY_OWNERS="", TELEGRAM_ALLOWED_USERS="7,8") as gateway:
        await says(telegram, model, "hello")
        assert await role_of(gateway) == "user"
        (tmp_path / "home" / "config.yaml").write_text("owners: [telegram:7]\n")
        await gateway.watch.read_again()
        await says(telegram, model, "hello again")
        assert await role_of(gateway) == "owner"
        (tmp_path / "home" / "config.yaml").write_text("owners: []\n")
        await gateway.watch.read_again()
        await says(telegram, model, "and again")
        assert await role_of(gateway) == "user"
