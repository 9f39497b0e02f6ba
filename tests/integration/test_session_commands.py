"""/sessions, /resume, /branch, /title, /history: one's own conversations, and nobody else's."""

from __future__ import annotations

from hermes.core.roles import PersonRole
from hermes.services.gateway import Gateway
from hermes.store.sessions import sessions
from hermes.store.sessions.sessions import Session
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, answered, make, until

BOB = 8
PEOPLE = {"TELEGRAM_ALLOWED_USERS": f"{USER},{BOB}"}


async def ask(telegram: FakeTelegram, text: str, *, user: int = USER) -> str:
    """Write, and return the next thing that is said to them."""
    before = len(_said(telegram, user))
    telegram.user_says(text, chat=user)
    await telegram.wait_for(lambda: len(_said(telegram, user)) > before, SECONDS)
    return _said(telegram, user)[before]


def _said(telegram: FakeTelegram, user: int) -> list[str]:
    return [sent.text for sent in telegram.sent if sent.chat == str(user)]


async def newest(gateway: Gateway) -> list[Session]:
    return await gateway.db.read(sessions.newest)


def heard(model: FakeModel) -> list[str]:
    return [message["content"] for message in model.last_request["messages"] if message["role"] == "user"]


async def test_an_earlier_conversation_is_taken_up_where_it_was(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        await ask(telegram, "the first one")
        assert await ask(telegram, "/title Boiler") == "This conversation is “Boiler” now."
        await ask(telegram, "/new")
        await ask(telegram, "another one")
        listed = await ask(telegram, "/sessions")
        assert "1. s_" in listed
        assert "← here\n2. “Boiler”, 2 lines" in listed
        assert (await ask(telegram, "/resume boiler?")).startswith("You have no conversation 'boiler?'.")
        assert (await ask(telegram, "/resume Boiler")).startswith("Continued here: “Boiler”, 2 lines.")
        assert await ask(telegram, "/history") == "You: the first one\nMe: echo: the first one"
        await ask(telegram, "going on")
        assert heard(model) == ["the first one", "going on"]
        assert await ask(telegram, "/resume 1") == "That one is going on here already."


async def test_a_branch_is_a_copy_and_the_original_stays_as_it_was(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        assert (await ask(telegram, "/branch")).startswith("There is nothing to branch off yet.")
        await ask(telegram, "the trunk")
        [trunk] = await newest(gateway)
        assert (await ask(telegram, "/branch Another way")).startswith("This is a copy now, 2 lines.")
        both = await ask(telegram, "/sessions")
        assert "1. “Another way”" in both
        assert f"2. {trunk.id}" in both
        await ask(telegram, "the twig")
        assert heard(model) == ["the trunk", "the twig"]
        copy = next(one for one in await newest(gateway) if one.id != trunk.id)
        assert (copy.title, copy.seq) == ("Another way", 4)
        kept = await gateway.db.read(sessions.get, trunk.id)
        assert kept is not None
        assert kept.seq == 2
        await ask(telegram, f"/resume {trunk.id}")
        await ask(telegram, "back on the trunk")
        assert heard(model) == ["the trunk", "back on the trunk"]


async def test_nobody_sees_or_takes_up_the_conversation_of_another(start: Start, telegram: FakeTelegram) -> None:
    async with start(**PEOPLE) as gateway:
        await ask(telegram, "mine alone")
        await ask(telegram, "/title Secret")
        [mine] = await newest(gateway)
        assert (await ask(telegram, "/sessions", user=BOB)).startswith("There is no conversation of yours yet.")
        await ask(telegram, "hello", user=BOB)
        for name in ("Secret", mine.id, mine.id[:-2], "2"):
            assert (await ask(telegram, f"/resume {name}", user=BOB)).startswith("You have no conversation")
        assert "mine alone" not in await ask(telegram, "/history", user=BOB)
        assert "Secret" not in await ask(telegram, "/sessions", user=BOB)


async def test_home_is_set_from_the_chat_itself(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        assert "needs the role admin" in await ask(telegram, "/sethome")
        await make(gateway, USER, PersonRole.OWNER)
        told = await ask(telegram, "/sethome")
        assert told == (
            f"This chat is home now: reminders and alerts come here. Chat id {USER}, as a target telegram:{USER}."
        )

        async def is_known() -> bool:
            account = gateway.config.account("telegram")
            return account is not None and account.home_channel == str(USER)

        await until(is_known)


async def test_platforms_are_listed_and_one_does_not_switch_itself_off(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        await answered_hello(telegram)
        assert await ask(telegram, "/platforms") == "telegram: connected"
        await make(gateway, USER, PersonRole.OWNER)
        assert "would not hear from me here again" in await ask(telegram, "/platform pause telegram")
        assert "Names: telegram." in await ask(telegram, "/platform pause nonsense")


async def answered_hello(telegram: FakeTelegram) -> None:
    telegram.user_says("hello")
    await answered(telegram, "echo: hello")
