"""One gateway, two bots: each with its own personality, model and tools, and nothing goes from one to the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_about_commands import configure
from tests.integration.test_session_commands import ask, newest
from tests.integration.watching import SECONDS

ROUNDS = 10


@pytest.fixture
async def work() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram(token="43:WORK-token", username="work_bot") as fake:
        yield fake


def settled(work: FakeTelegram) -> str:
    return f"""
personalities: {{clerk: You are a clerk., pirate: You are a pirate.}}
platforms:
  telegram:
    accounts:
      work: {{token: "{work.token}", base_url: "{work.url}"}}
chats:
  telegram: {{personality: pirate}}
  telegram@work:*:
    personality: clerk
    model: openai/gpt-work
    toolsets: [web]
"""


def request_about(model: FakeModel, text: str) -> dict[str, Any]:
    return next(
        body for body in model.requests if any(text in str(message["content"]) for message in body["messages"][1:])
    )


def system(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"])


async def test_two_accounts_have_their_own_personality_model_and_tools(
    start: Start, telegram: FakeTelegram, work: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    configure(tmp_path, settled(work))
    async with start() as gateway:
        await ask(telegram, "at home")
        await ask(work, "at work")
        home, office = request_about(model, "at home"), request_about(model, "at work")
        assert (home["model"], office["model"]) == ("gpt-4o-mini", "gpt-work")
        assert system(home).startswith("You are a pirate.")
        assert system(office).startswith("You are a clerk.")
        assert "terminal" in {tool["function"]["name"] for tool in home["tools"]}
        assert not {tool["function"]["name"] for tool in office["tools"]} & {"terminal", "read_file"}
        assert "Model: openai/gpt-work, set for this chat." in await ask(work, "/status")
        assert "chats: telegram, telegram@work" in (await ask(work, "/status")).lower()
        assert sorted(session.key for session in await newest(gateway)) == [
            "agent:main:telegram:dm:7",
            "agent:main:telegram@work:dm:7",
        ]
        await telegram.wait_for(lambda: "" in telegram.menus and "" in work.menus, SECONDS)


async def test_what_a_chat_chooses_goes_before_what_is_settled_for_it_and_ends_at_its_door(
    start: Start, telegram: FakeTelegram, work: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    configure(tmp_path, settled(work) + "model: {users_may_choose: true}\n")
    async with start():
        assert (await ask(work, "/model")).startswith("openai/gpt-work, set for this chat by the owner.")
        await ask(work, "/model use openai/gpt-own")
        await ask(work, "/personality pirate")
        await ask(work, "at work")
        office = request_about(model, "at work")
        assert (office["model"], system(office)[:17]) == ("gpt-own", "You are a pirate.")
        await ask(work, "/personality default")
        assert (await ask(work, "/model default")).endswith("openai/gpt-work.")
        await ask(work, "as before")
        assert request_about(model, "as before")["model"] == "gpt-work"
        await ask(telegram, "at home")
        assert request_about(model, "at home")["model"] == "gpt-4o-mini"


async def test_messages_of_two_accounts_never_cross(
    start: Start, telegram: FakeTelegram, work: FakeTelegram, tmp_path: Path
) -> None:
    """The same person in the same chat id, the same words, at the same time; message ids are the same too."""
    configure(tmp_path, settled(work))
    async with start(HERMES_BUSY_MODE="queue"):
        for number in range(ROUNDS):
            telegram.user_says(f"home {number}", chat=USER)
            work.user_says(f"work {number}", chat=USER)
        async with asyncio.timeout(SECONDS):
            await telegram.wait_for(lambda: len(telegram.sent) >= ROUNDS, SECONDS)
            await work.wait_for(lambda: len(work.sent) >= ROUNDS, SECONDS)
        assert telegram.texts() == [f"echo: home {number}" for number in range(ROUNDS)]
        assert work.texts() == [f"echo: work {number}" for number in range(ROUNDS)]
