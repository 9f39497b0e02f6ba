"""/status, /help, /commands, /usage, /personality: what people read, for their role and no further."""

from __future__ import annotations

from pathlib import Path

from hermes.core.roles import PersonRole
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, Reply
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_session_commands import PEOPLE, ask
from tests.integration.watching import make

PERSONALITIES = "personalities: {pirate: You are a pirate., clerk: You are a clerk.}\n"


def configure(folder: Path, yaml: str) -> None:
    (folder / "home").mkdir(mode=0o700, exist_ok=True)
    (folder / "home" / "config.yaml").write_text(yaml)


def system(model: FakeModel) -> str:
    return str(model.last_request["messages"][0]["content"])


async def test_status_says_in_words_nobody_misreads_how_things_are(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start():
        told = (await ask(telegram, "/status")).splitlines()
        assert told[0] == "I'm here, nothing running. Chats: telegram."
        assert told[1:] == [
            "Model: openai / gpt-4o-mini.",
            "Session: none yet; your next message begins one.",
            "While I work, a new message stops what I do and comes next (/busy).",
        ]
        await ask(telegram, "hello")
        await ask(telegram, "/title Boiler")
        await ask(telegram, "/busy queue")
        model.hold()
        telegram.user_says("a long one")
        await model.is_holding()
        telegram.user_says("and another")
        told = (await ask(telegram, "/status")).splitlines()
        assert told[0].startswith("I'm here, working on your message for ")
        assert told[0].endswith(" Chats: telegram.")
        assert told[1] == "In line behind that: 1."
        assert "Session: “Boiler”, 3 lines." in told
        assert told[-1] == "While I work, each message waits its turn (/busy)."
        model.release()


async def test_help_is_short_and_commands_explain_and_both_keep_to_the_role(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start() as gateway:
        told = await ask(telegram, "/help")
        assert told.startswith("Just write to me. Besides:\nThis conversation: /new, /stop, /retry, /undo")
        assert "/restart" not in told
        assert len(told) < 900
        every = await ask(telegram, "/commands")
        assert "/resume [NUMBER|last|TITLE|ID] — Continue an earlier conversation here" in every
        assert "/sethome" not in every
        assert await ask(telegram, "/help /new") == "/new — Start a fresh session in this chat\nAlso: /reset."
        assert (await ask(telegram, "/help restart")).startswith("Just write to me.")
        await make(gateway, USER, PersonRole.OWNER)
        assert "For admins and the owner: /sethome, /platforms, /platform, /restart" in await ask(telegram, "/help")
        assert (await ask(telegram, "/help restart")).endswith("For the role admin and above.")


async def test_the_nearest_command_is_one_that_this_person_may_use(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        assert "/restart" not in await ask(telegram, "/restrat")
        await make(gateway, USER, PersonRole.OWNER)
        assert "Did you mean /restart?" in await ask(telegram, "/restrat")


async def test_usage_counts_this_session_this_day_and_for_admins_everybody(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    clock = FakeClock()
    async with start(clock=clock, **PEOPLE) as gateway:
        assert "This session: 0 tokens in, 0 out (turns: 0)" in await ask(telegram, "/usage")
        model.script([Reply("one", usage=(1000, 20)), Reply("two", usage=(2000, 30)), Reply("three", usage=(7, 1))])
        await ask(telegram, "yesterday's")
        clock.advance(13 * 3600)  # over midnight, and a fresh session
        await ask(telegram, "today's")
        await ask(telegram, "hello", user=8)
        told = await ask(telegram, "/usage")
        assert told.splitlines() == [
            "This session: 2,000 tokens in, 30 out (turns: 1)",
            "You, today: 2,000 tokens in, 30 out (turns: 1)",
        ]
        await make(gateway, USER, PersonRole.OWNER)
        told = await ask(telegram, "/usage")
        assert "Everybody, today: 2,007 tokens in, 31 out (turns: 2)" in told


async def test_a_personality_is_chosen_for_one_chat_and_given_back(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    configure(tmp_path, PERSONALITIES)
    async with start(**PEOPLE):
        assert (await ask(telegram, "/personality")).startswith("Here I am myself. I can be: pirate, clerk.")
        assert "Did you mean pirate?" in await ask(telegram, "/personality pirat")
        assert "“pirate”" in await ask(telegram, "/personality Pirate")
        await ask(telegram, "hello")
        assert system(model).startswith("You are a pirate.")
        assert "Personality: pirate." in await ask(telegram, "/status")
        await ask(telegram, "hello", user=8)
        assert "pirate" not in system(model)
    async with start(**PEOPLE):
        await ask(telegram, "are you still one?")
        assert system(model).startswith("You are a pirate.")
        await ask(telegram, "/personality default")
        await ask(telegram, "and now?")
        assert "pirate" not in system(model)
