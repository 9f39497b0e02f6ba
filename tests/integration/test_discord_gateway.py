"""Discord through the whole gateway: answered once and where it was asked, across outages, restarts and presses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hermes.platforms.discord import adapter as adapters
from hermes.services.gateway import Gateway
from tests.fakes.discord import GROUP, FakeDiscord
from tests.fakes.model import FakeModel, Reply, calls_tools
from tests.integration.conftest import Start
from tests.integration.watching import SECONDS


@pytest.fixture
async def discord(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeDiscord]:
    monkeypatch.setattr(adapters, "PAUSE_SECONDS", (0.0, 0.01))
    async with FakeDiscord(is_known=False) as fake:
        yield fake


def environ(discord: FakeDiscord) -> dict[str, str]:
    return {**discord.environ, "DISCORD_ALLOWED_USERS": "7,42", "DISCORD_GROUP_POLICY": "open"}


def link(gateway: Gateway) -> dict[str, object]:
    return next(each for each in gateway.supervisor.status() if each["account"] == "discord")


async def listens(discord: FakeDiscord) -> None:
    await discord.wait_for(lambda: discord.sockets == 1, SECONDS)


async def test_a_direct_message_is_answered_and_its_repetition_is_not(start: Start, discord: FakeDiscord) -> None:
    async with start(**environ(discord)):
        await listens(discord)
        said = discord.user_says("hello")
        await discord.wait_for(lambda: discord.texts(7) == ["echo: hello"], SECONDS)
        discord.redeliver(said)
        discord.user_says("more")
        await discord.wait_for(lambda: len(discord.sent) >= 2, SECONDS)
    assert discord.texts(7) == ["echo: hello", "echo: more"]


async def test_a_mention_is_answered_in_its_thread_and_the_talk_goes_on_there(
    start: Start, discord: FakeDiscord
) -> None:
    async with start(**environ(discord)):
        await listens(discord)
        discord.user_says("lunch?", chat=GROUP)
        asked = discord.user_says_in_group("hello", to_us=True)
        await discord.wait_for(lambda: len(discord.sent) >= 1, SECONDS)
        discord.user_says("and more", chat=asked.message_id)
        await discord.wait_for(lambda: len(discord.sent) >= 2, SECONDS)
    assert [sent.text.endswith(words) for sent, words in zip(discord.sent, ("hello", "and more"), strict=True)] == [
        True
    ] * 2
    assert {(sent.chat, sent.thread) for sent in discord.sent} == {(GROUP, asked.message_id)}
    assert discord.counts["POST threads"] == 1


@pytest.mark.parametrize("is_late", [False, True], ids=["in time", "too late for its nonce"])
async def test_an_answer_that_may_have_arrived_is_repeated_under_its_nonce_and_marked_where_that_is_forgotten(
    start: Start, discord: FakeDiscord, is_late: bool
) -> None:
    async with start(**environ(discord)):
        await listens(discord)
        hold = discord.hold_sends()
        discord.user_says("hello")
        await hold.reached(SECONDS)
        if is_late:
            discord._nonces.clear()
        discord.drop_connection()
        discord.release_all()
        await discord.wait_for(lambda: discord.counts["POST messages"] == 2, SECONDS)
        discord.user_says("and?")
        await discord.wait_for(lambda: bool(discord.sent) and discord.texts(7)[-1] == "echo: and?", SECONDS)
    assert discord.texts(7) == ["echo: hello", *(["↻ echo: hello"] if is_late else []), "echo: and?"]


@pytest.mark.parametrize("is_forgotten", [False, True], ids=["resumed", "from the history"])
async def test_what_was_written_while_it_was_down_is_answered_in_order(
    start: Start, discord: FakeDiscord, is_forgotten: bool
) -> None:
    async with start(**environ(discord)):
        await listens(discord)
        discord.user_says("first")
        await discord.wait_for(lambda: len(discord.sent) >= 1, SECONDS)
    await discord.wait_for(lambda: discord.sockets == 0, SECONDS)
    if is_forgotten:
        discord.forget_sessions()
    discord.user_says("second")
    discord.user_says("third")
    discord.user_says_in_group("in a channel", to_us=True)
    async with start(**environ(discord)):
        await discord.wait_for(lambda: discord.texts(GROUP) != [] and "third" in "".join(discord.texts(7)), SECONDS)
    assert (len(discord.resumed), len(discord.identified)) == (1, 2 if is_forgotten else 1)
    answers = "".join(discord.texts(7))
    assert answers.index("first") < answers.index("second") < answers.index("third")


async def test_an_approval_is_answered_by_its_button_across_a_restart(
    start: Start, discord: FakeDiscord, model: FakeModel
) -> None:
    model.script([calls_tools(("note", {"text": "milk"})), Reply(text="Noted.")])
    async with start(**environ(discord)):
        await listens(discord)
        discord.user_says("note milk")
        await discord.wait_for(lambda: any(sent.buttons for sent in discord.sent), SECONDS)
    asked = next(sent for sent in discord.sent if sent.buttons)
    async with start(**environ(discord)):
        await listens(discord)
        discord.user_presses(asked, asked.buttons[0][0].data)
        await discord.wait_for(lambda: "Noted." in discord.texts(7), SECONDS)
        await discord.wait_for(lambda: asked.buttons == (), SECONDS)
    assert (discord.unacked, discord.late_acks) == (0, [])


async def test_the_menu_is_the_commands_of_the_gateway_and_a_slash_command_runs(
    start: Start, discord: FakeDiscord
) -> None:
    async with start(**environ(discord)):
        await discord.wait_for(lambda: "status" in discord.menus.get("", {}), SECONDS)
        discord.user_types("whoami")
        await discord.wait_for(lambda: len(discord.sent) >= 1, SECONDS)
        await discord.wait_for(lambda: discord.unacked == 0, SECONDS)
    assert {"new", "stop", "help"} <= set(discord.menus[""])
    assert [echo["content"] for echo in discord.echoes] == ["`/whoami`"]


async def test_an_intent_that_is_off_ends_it_instead_of_being_tried_for_ever(
    start: Start, discord: FakeDiscord
) -> None:
    discord.flags = 0
    async with start(**environ(discord)) as gateway:
        await discord.wait_for(lambda: link(gateway)["state"] == "signed out", SECONDS)
        await asyncio.sleep(0.7)  # longer than the first pause between two attempts
        note, cure = str(link(gateway)["note"]), str(link(gateway)["cure"])
    assert len(discord.identified) == 1
    assert "Message Content Intent is off" in note
    assert cure.startswith("switch on Message Content Intent (discord.com/developers/applications")
    assert cure.endswith("then hermes gateway restart")
    assert "DISCORD_BOT_TOKEN" not in cure
