"""In a group each person has a talk of their own; a thread, and a group that is set so, is shared by all in it."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_about_commands import configure
from tests.integration.test_retry import GROUP, IN_GROUPS, OTHER, say
from tests.integration.test_session_commands import ask, heard, newest

SHARED = "group_sessions_per_user: false\n"


async def test_two_people_of_a_group_hear_nothing_of_each_other(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    telegram.group(GROUP)
    async with start(**IN_GROUPS) as gateway:
        await say(telegram, "my secret is seven", USER)
        await say(telegram, "what is it?", OTHER)
        assert heard(model) == ["u8 (user 8): what is it?"]
        assert "seven" not in await say(telegram, "/history", OTHER)
        assert (await say(telegram, "/resume last", OTHER)).startswith("You have no conversation")
        keys = sorted(session.key for session in await newest(gateway))
        assert keys == [f"agent:main:telegram:group:{GROUP}:p={user}" for user in (USER, OTHER)]


async def test_a_thread_is_shared_by_all_in_it(start: Start, telegram: FakeTelegram, model: FakeModel) -> None:
    telegram.group(GROUP, is_forum=True)
    async with start(**IN_GROUPS) as gateway:
        await say(telegram, "one", USER, thread=5)
        await say(telegram, "two", OTHER, thread=5)
        assert heard(model) == ["u7 (user 7): one", "u8 (user 8): two"]
        [session] = await newest(gateway)
        assert session.key == f"agent:main:telegram:group:{GROUP}:t=5"


async def test_a_group_is_shared_when_the_owner_says_so_and_keeps_private_talks_out(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    configure(tmp_path, SHARED)
    telegram.group(GROUP)
    async with start(**IN_GROUPS) as gateway:
        await ask(telegram, "in private")
        await ask(telegram, "/title Private")
        assert (await say(telegram, "/sessions", USER)).startswith("Nothing was said here before.")
        await say(telegram, "one", USER)
        await say(telegram, "two", OTHER)
        assert heard(model) == ["u7 (user 7): one", "u8 (user 8): two"]
        for name in ("Private", "2"):
            assert (await say(telegram, f"/resume {name}", USER)).startswith("You have no conversation")
        await say(telegram, "/new", OTHER)
        await say(telegram, "three", USER)
        assert heard(model) == ["u7 (user 7): three"]
        assert (await say(telegram, "/resume last", OTHER)).startswith("Continued here:")
        await say(telegram, "four", USER)
        assert heard(model) == ["u7 (user 7): one", "u8 (user 8): two", "u7 (user 7): four"]
        assert "needs" not in await say(telegram, "/status", OTHER)
        in_group = [session for session in await newest(gateway) if ":group:" in session.key]
        assert {session.key for session in in_group} == {f"agent:main:telegram:group:{GROUP}"}


async def test_who_the_agent_is_in_a_shared_talk_is_not_for_everybody_to_choose(
    start: Start, telegram: FakeTelegram, tmp_path: Path
) -> None:
    configure(tmp_path, SHARED + "personalities: {pirate: Arr.}\n")
    telegram.group(GROUP)
    async with start(**IN_GROUPS):
        assert (await say(telegram, "/personality pirate", USER)).startswith("Several people share this conversation")
