"""The same way of a message on PostgreSQL, where transactions really run beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.core.roles import PersonRole
from tests.contract.store.servers import PostgresForTests
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import (
    SECONDS,
    a_model_accepts,
    all_turns,
    answered,
    dangers,
    inbox_states,
    make,
    question,
    transcript,
    turn_is,
    until,
)


@pytest.fixture
def database_url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as url:
        yield url


async def test_a_message_survives_a_crash_and_an_approval_a_restart(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str, tmp_path: Path
) -> None:
    model.hold()
    async with start(HERMES_DATABASE_URL=database_url) as gateway:
        telegram.user_says("hello")
        await model.is_holding()
        await crash(gateway)
    model.release()
    async with start(HERMES_DATABASE_URL=database_url) as gateway:
        await answered(telegram, "echo: hello")
        await make(gateway, 7, PersonRole.OWNER)
        model.script([calls_tools(("danger", {"text": "bang"})), "All done."])
        telegram.user_says("do it")
        asked = await question(telegram)
        await turn_is(gateway, "waiting")
    async with start(HERMES_DATABASE_URL=database_url) as gateway:
        telegram.user_presses(asked, "Approve")
        await answered(telegram, "All done.")
        assert a_model_accepts(await transcript(gateway))
        assert [turn.state for turn in await all_turns(gateway)] == ["done", "done"]
    assert dangers(tmp_path) == ["bang"]


async def test_messages_commands_and_stops_of_many_chats_all_end_and_no_lane_is_stuck(
    start: Start, telegram: FakeTelegram, model: FakeModel, database_url: str
) -> None:
    chats = range(100, 120)
    async with start(HERMES_DATABASE_URL=database_url, TELEGRAM_ALLOW_ALL_USERS="true") as gateway:
        for text in ("one", "/stop", "two", "/new", "three"):
            for chat in chats:
                telegram.private_chat(chat)
                telegram.user_says(text, chat=chat, user=chat)
        await telegram.wait_for(lambda: telegram.texts().count("echo: three") == len(chats), SECONDS * 2)

        async def all_ended() -> bool:
            states = await inbox_states(gateway)
            return len(states) == 5 * len(chats) and all(state in ("answered", "set_aside") for state, _ in states)

        await until(all_ended)
        assert gateway.lanes.running() == []
