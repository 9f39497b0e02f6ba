"""Earlier conversations: found by the person who had them, in any language, and by nobody else."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest

from hermes.agent.session_search import BITE_KNOWN, SessionSearch
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.agent.tools.session_search import session_search
from hermes.core.errors import ToolError
from hermes.core.keys import SessionKey
from hermes.services.gateway import Gateway
from hermes.store.sessions import sessions
from hermes.store.sqlite import search_index
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.watching import SECONDS, answered, results

BOB = 8
PEOPLE = {"TELEGRAM_ALLOWED_USERS": f"{USER},{BOB}", "TELEGRAM_GROUP_POLICY": "open"}


def recall(gateway: Gateway) -> SessionSearch:
    return SessionSearch(gateway.db, gateway.home, gateway.clock)


async def found(gateway: Gateway, query: str, user: int = USER, session_id: str = "") -> list[str]:
    answer = await recall(gateway).search(query, person_id=f"p_telegram_{user}", session_id=session_id, count=10)
    assert answer.is_complete
    return [one.hit.snippet.replace("»", "").replace("«", "") for one in answer.found]


async def say(telegram: FakeTelegram, text: str, *, user: int = USER) -> None:
    telegram.user_says(text, chat=user)
    await answered(telegram, f"echo: {text}")


async def test_the_agent_finds_what_was_said_in_an_earlier_session(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        await say(telegram, "the boiler was serviced by Mr Okonkwo")
        telegram.user_says("/new")
        await telegram.wait_for(lambda: any(sent.text == "Fresh session." for sent in telegram.sent), 5)
        model.script([calls_tools(("session_search", {"query": "boiler okonkwo"})), "Mr Okonkwo did."])
        telegram.user_says("who did it?")
        await answered(telegram, "Mr Okonkwo did.")
        [first, *_] = await gateway.db.read(sessions.stale, 2e12)
    assert f"{first}, line 1, user: the »boiler« was serviced by Mr »Okonkwo«" in results(model)[0]


@pytest.mark.parametrize("query", ["维修锅炉", "锅炉", "BOILER", "of", '"quoted" boiler', "100% boiler_"])
async def test_a_query_in_any_script_and_with_any_character_finds_its_line(
    start: Start, telegram: FakeTelegram, query: str
) -> None:
    async with start() as gateway:
        await say(telegram, '维修锅炉 "quoted" of the Boiler, 100% boiler_room')
        assert await found(gateway, query)
        assert not await found(gateway, f"{query} zebra")


async def test_nobody_finds_what_another_said_in_private_or_in_a_session_they_shared(
    start: Start, telegram: FakeTelegram
) -> None:
    async with start(**PEOPLE) as gateway:
        await say(telegram, "my secret is marmalade")
        await say(telegram, "my secret is mustard", user=BOB)
        group = telegram.group(-100500)
        telegram.user_says(f"@{telegram.username} marmalade in public", chat=group, user=USER)
        await telegram.wait_for(lambda: any("in public" in sent.text for sent in telegram.sent), SECONDS)
        assert len(await found(gateway, "marmalade")) == 4, "their own lines, and the agent's answers to them"
        assert await found(gateway, "marmalade", BOB) == []
        assert len(await found(gateway, "secret", BOB)) == 2
        [hit] = (await recall(gateway).search("mustard", person_id=f"p_telegram_{BOB}", session_id="", count=1)).found
        lines = await recall(gateway).read(
            hit.session.id, person_id=f"p_telegram_{USER}", session_id="", after=0, count=9
        )
        assert lines == []


async def test_a_session_is_read_on_from_a_line(start: Start, telegram: FakeTelegram, tmp_path: Path) -> None:
    async with start() as gateway:
        for number in range(3):
            await say(telegram, f"line number {number}")
        [session] = await gateway.db.read(sessions.newest)
        lane = SessionKey.parse(session.key)
        ctx = ToolContext("c", lane, f"p_telegram_{USER}", tmp_path, parts=Parts(recall(gateway)))
        text = await session_search(ctx, session=session.id, after_line=2, count=2)
        assert text == "3 user: line number 1\n4 assistant: echo: line number 1\n[To read on: after_line=4.]"
        with pytest.raises(ToolError, match="nothing to read"):
            await session_search(ctx, session=session.id, after_line=6)


async def test_the_index_forgets_deleted_sessions_however_many_there_are(start: Start, telegram: FakeTelegram) -> None:
    def fill(home: Path) -> None:
        with closing(search_index.open_index(home)) as index:
            for number in range(2 * BITE_KNOWN + 1):
                search_index.add(index, f"s_{number:05}", [], up_to=1)

    def known(home: Path) -> list[str]:
        with closing(search_index.open_index(home)) as index:
            return search_index.known_sessions(index, "", 3 * BITE_KNOWN)

    async with start() as gateway:
        await say(telegram, "this session stays")
        await asyncio.to_thread(fill, gateway.home)
        await recall(gateway).follow()
        [kept] = await asyncio.to_thread(known, gateway.home)
        assert await gateway.db.read(sessions.get, kept) is not None


async def test_what_is_new_is_found_at_once_and_what_was_deleted_is_not(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        await say(telegram, "first marmalade")
        assert len(await found(gateway, "marmalade")) == 2
        await say(telegram, "second marmalade")
        assert len(await found(gateway, "marmalade")) == 4
        [session] = await gateway.db.read(sessions.newest)
        await gateway.db.write(sessions.delete, session.id)
        assert await found(gateway, "marmalade") == []


async def test_a_damaged_index_is_built_anew(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        await say(telegram, "first marmalade")
        await found(gateway, "marmalade")
        path = gateway.home / search_index.FILE
        assert oct(path.stat().st_mode & 0o777) == "0o600"
        await asyncio.to_thread(path.write_bytes, b"not a database at all" * 1000)
        assert len(await found(gateway, "marmalade")) == 2
