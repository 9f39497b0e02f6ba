"""What was written while no session listened is read from the history, in order, and only once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hermes.core.errors import StoreIsDownError
from hermes.core.messages import Cursor, InboundEvent, InboundMessage
from hermes.platforms.discord import adapter as adapters
from hermes.platforms.discord import catchup
from hermes.platforms.discord.cursors import Places
from hermes.platforms.shared import history
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.discord import GROUP, SERVER, FakeDiscord, direct

SECONDS = 30


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapters, "PAUSE_SECONDS", (0.0, 0.01))


@asynccontextmanager
async def known(inbox: Inbox) -> AsyncIterator[FakeDiscord]:
    """Somebody listened once, and heard Ana and the group; now nobody does, and Discord has forgotten the session."""
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        async with listening(discord, inbox):
            discord.user_says("hello")
            discord.user_says("hello all", chat=GROUP)
            await inbox.until(2)
        inbox.events.clear()
        discord.forget_sessions()
        yield discord


@asynccontextmanager
async def listening(discord: FakeDiscord, inbox: Inbox, **settings: Any) -> AsyncIterator[asyncio.Task[None]]:
    async with discord.adapter(**settings) as adapter, receiving(adapter, inbox) as running:
        await discord.wait_for(lambda: discord.sockets == 1)
        yield running
    await discord.wait_for(lambda: discord.sockets == 0)


def texts(inbox: Inbox) -> list[str]:
    return [event.text for event in inbox.events if isinstance(event, InboundMessage)]


def is_complete(discord: FakeDiscord) -> bool:
    return Places.of(discord.cursor).session is not None


async def test_at_the_first_start_nothing_old_is_read(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord:
        discord.user_says("old", chat=GROUP)
        discord.user_says("old too")
        async with listening(discord, inbox):
            discord.user_says("live")
            await inbox.until(1)
            await discord.wait_for(lambda: is_complete(discord))
    assert texts(inbox) == ["live"]


@pytest.mark.parametrize("days", [-1, 1, 30], ids=["behind by a day", "ahead by a day", "ahead by a month"])
async def test_a_clock_that_is_set_wrong_neither_hides_what_was_missed_nor_brings_back_what_is_old(
    inbox: Inbox, days: int
) -> None:
    """``days``: by how much ours is ahead."""
    async with asyncio.timeout(SECONDS), FakeDiscord(is_known=False) as discord:
        discord.clock_ahead = -days * 86_400.0 - 3600
        discord.user_says("an hour before it was ever started", chat=GROUP)
        discord.clock_ahead += 3600
        async with listening(discord, inbox):
            await discord.wait_for(lambda: is_complete(discord))
        discord.forget_sessions()
        said = discord.user_says("while it was down", chat=GROUP)
        async with listening(discord, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]


async def test_what_was_said_meanwhile_arrives_in_order_in_every_channel(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchup, "PAGE", 3)
    async with known(inbox) as discord:
        for number in range(10):
            discord.user_says(f"d{number}")
            discord.user_says(f"g{number}", chat=GROUP)
        assert discord.nowhere == 20
        async with listening(discord, inbox):
            await inbox.until(20)
    assert [text for text in texts(inbox) if text[0] == "d"] == [f"d{number}" for number in range(10)]
    assert [text for text in texts(inbox) if text[0] == "g"] == [f"g{number}" for number in range(10)]


async def test_of_far_too_many_the_newest_are_read(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catchup, "PAGE", 3)
    monkeypatch.setattr(catchup, "MAX_PAGES", 2)
    async with known(inbox) as discord:
        for number in range(10):
            discord.user_says(f"d{number}")
        async with listening(discord, inbox):
            await inbox.until(6)
            await discord.wait_for(lambda: is_complete(discord))
    assert texts(inbox) == [f"d{number}" for number in range(4, 10)]


async def test_what_was_caught_up_is_not_read_again(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.user_says("meanwhile")
        for number in range(2):
            async with listening(discord, inbox):
                await discord.wait_for(lambda: is_complete(discord))
            discord.forget_sessions()
            assert len(discord.identified) == number + 1
    assert texts(inbox) == ["meanwhile"]


async def test_a_channel_in_which_nobody_spoke_is_not_even_asked(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        for number in range(50):
            discord.channels[str(400 + number)] = {"id": str(400 + number), "type": 0, "guild_id": SERVER}
        discord.channels["600"] = {"id": "600", "type": 15, "guild_id": SERVER, "last_message_id": discord._id()}
        async with listening(discord, inbox):
            await discord.wait_for(lambda: is_complete(discord))
    assert discord.counts["GET messages"] == 1, "the direct chat: only channels of servers tell of their newest message"


async def test_somebody_who_wrote_for_the_first_time_while_it_was_down_is_heard_with_their_next_message(
    inbox: Inbox,
) -> None:
    async with known(inbox) as discord:
        discord.user_says("I am new", chat=42)
        async with listening(discord, inbox):
            await discord.wait_for(lambda: is_complete(discord))
            assert texts(inbox) == []
            discord.user_says("hello?", chat=42)
            await inbox.until(2)
    assert texts(inbox) == ["I am new", "hello?"]


async def test_live_messages_wait_behind_what_was_missed_and_come_once(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        first = discord.user_says("missed")
        hold = discord.hold("GET messages")
        async with listening(discord, inbox):
            await hold.reached()
            live = [discord.user_says(f"live {number}") for number in range(3)]
            other = discord.user_says("elsewhere", chat=GROUP)
            await inbox.until(1)
            assert inbox.keys == [other.key], "nobody else waits"
            assert not is_complete(discord)
            hold.release()
            await inbox.until(5)
            await discord.wait_for(lambda: is_complete(discord))
    assert inbox.keys[1:] == [first.key, *(each.key for each in live)]


async def test_an_edit_waits_behind_what_it_changes_and_is_told_once(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        early, late = discord.user_says("erly"), discord.user_says("lte")
        hold = discord.hold("GET messages")
        discord.user_edits(early, "early")
        shown = discord.history[early.chat][-2]
        async with listening(discord, inbox):
            await hold.reached()
            discord.dispatch("MESSAGE_UPDATE", {**shown, "channel_type": 1})
            discord.user_edits(late, "late")
            await asyncio.sleep(0.05)
            discord.release_all()
            await inbox.until(3)
            await discord.wait_for(lambda: is_complete(discord))
    said = [(event.text, event.is_edit) for event in inbox.events if isinstance(event, InboundMessage)]
    assert said == [("early", False), ("lte", False), ("late", True)]


async def test_what_stands_in_the_history_and_is_told_live_comes_once(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.user_says("missed")
        hold = discord.hold("GET channel")
        async with listening(discord, inbox):
            said = discord.user_says("both", chat=42)  # an unknown chat: read from the history, and told live
            await inbox.until(2)
            hold.release()
    assert inbox.keys.count(said.key) == 1


async def test_a_crash_in_the_middle_of_catching_up_begins_it_again(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        said = [discord.user_says("one"), discord.user_says("two", chat=GROUP)]
        hold = discord.hold("GET messages")
        async with listening(discord, inbox):
            await hold.reached()
            said.append(discord.user_says("live"))
        discord.release_all()
        assert not is_complete(discord), "no session is remembered that would hide what was not read"
        async with listening(discord, inbox):
            await inbox.until(3)
    assert {each.key for each in said} == set(inbox.keys)


async def test_what_could_not_be_stored_is_read_again(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        said = [discord.user_says(f"number {number}") for number in range(5)]
        inbox.is_down = True
        async with discord.adapter() as adapter:
            with pytest.raises(StoreIsDownError):
                await adapter.run(inbox)
        inbox.is_down = False
        async with listening(discord, inbox):
            await inbox.until(5)
    assert inbox.keys == [each.key for each in said]


async def test_marks_and_messages_are_stored_together(inbox: Inbox) -> None:
    batches: list[tuple[list[str], dict[str, str]]] = []

    async def look(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        batches.append(([event.text for event in events if isinstance(event, InboundMessage)], dict(cursor or {})))

    async with known(inbox) as discord:
        said = discord.user_says("meanwhile")
        async with discord.adapter() as adapter:
            running = asyncio.create_task(adapter.run(look))
            await discord.wait_for(lambda: any(texts for texts, _ in batches))
            running.cancel()
            await asyncio.wait({running})
    [cursor] = [cursor for texts, cursor in batches if texts == ["meanwhile"]]
    assert cursor[f"dm:{direct(7)}"] == said.message_id


async def test_threads_in_which_it_takes_part_are_caught_up_and_need_no_mention(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord:
        async with listening(discord, inbox):
            discord.user_says_in_group("a question", to_us=True)
            asked = await inbox.message()
        thread = asked.session_key.thread
        discord._make_thread(thread, GROUP, "a question")
        discord.forget_sessions()
        discord.user_says("and more", chat=thread)
        async with listening(discord, inbox):
            more = await inbox.message()
    assert (more.text, more.is_addressed, more.session_key) == ("and more", True, asked.session_key)


async def test_channels_that_are_not_heard_are_not_read(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.user_says("not for us", chat=GROUP)
        async with listening(discord, inbox, ignored_channels=(GROUP,)):
            await discord.wait_for(lambda: is_complete(discord))
    assert texts(inbox) == []
    assert discord.counts["GET messages"] == 1


async def test_a_channel_that_may_not_be_read_keeps_nobody_else_waiting(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.user_says("lost", chat=GROUP)
        said = discord.user_says("found")
        discord.hidden.add(GROUP)
        async with listening(discord, inbox):
            await inbox.until(1)
            await discord.wait_for(lambda: is_complete(discord))
    assert inbox.keys == [said.key]


async def test_a_channel_whose_history_fails_for_a_while_keeps_nobody_else_waiting_and_loses_nothing(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES_SECONDS", (0.01,))
    async with known(inbox) as discord:
        missed = discord.user_says("missed", chat=GROUP)
        found = discord.user_says("found")
        discord.failing.add(GROUP)
        async with listening(discord, inbox) as running:
            live = discord.user_says("live", chat=GROUP)
            later = discord.user_says("later")
            await inbox.until(2)
            await discord.wait_for(lambda: discord.failed > 2)
            assert inbox.keys == [found.key, later.key]
            assert not is_complete(discord), "a crash now would read it again"
            discord.failing.clear()
            await inbox.until(4)
            await discord.wait_for(lambda: is_complete(discord))
            assert not running.done()
    assert inbox.keys[2:] == [missed.key, live.key]
    assert len(discord.identified) == 1, "in one session: Discord counts them"


async def test_a_channel_whose_history_never_comes_is_heard_again_where_all_others_could_be_read(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES_SECONDS", (0.01,))
    monkeypatch.setattr(history, "MAX_TRIES", 3)
    async with known(inbox) as discord:
        discord.user_says("out of reach", chat=GROUP)
        discord.failing.add(GROUP)
        async with listening(discord, inbox) as running:
            discord.user_says("live", chat=GROUP)
            await inbox.until(1)
            await discord.wait_for(lambda: is_complete(discord))
            assert not running.done()
    assert texts(inbox) == ["live"]


async def test_where_no_history_can_be_read_at_all_nothing_is_given_up(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES_SECONDS", (0.01,))
    monkeypatch.setattr(history, "MAX_TRIES", 3)
    async with known(inbox) as discord:
        said = [discord.user_says("one"), discord.user_says("two", chat=GROUP)]
        discord.failing |= {GROUP, direct(7)}
        async with listening(discord, inbox):
            await discord.wait_for(lambda: discord.failed > 10)
            assert inbox.keys == []
            discord.failing.clear()
            await inbox.until(2)
    assert {each.key for each in said} == set(inbox.keys)


async def test_thirty_channels_with_forty_messages_each_are_caught_up_under_limits(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        for channel in range(500, 530):
            discord.channels[str(channel)] = {"id": str(channel), "type": 0, "guild_id": SERVER}
            for number in range(40):
                discord.user_says(f"{channel} {number}", chat=str(channel))
        for _ in range(10):
            discord.limit_next("GET messages", 0.02)
        async with listening(discord, inbox):
            await inbox.until(30 * 40)
            await discord.wait_for(lambda: is_complete(discord))
    for channel in range(500, 530):
        own = [text for text in texts(inbox) if text.startswith(f"{channel} ")]
        assert own == [f"{channel} {number}" for number in range(40)]


async def test_a_limit_on_the_history_is_waited_for(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        said = discord.user_says("meanwhile")
        discord.limit_next("GET messages", 0.05)
        async with listening(discord, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]


async def test_a_token_that_is_refused_meanwhile_ends_it(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.user_says("meanwhile")
        discord.refuse_next("GET messages", 401, 0, "401: Unauthorized", times=history.READERS)
        async with discord.adapter() as adapter, receiving(adapter, inbox) as running:
            await asyncio.wait({running})
            assert "DISCORD_BOT_TOKEN" in str(running.exception())


async def test_a_server_that_is_not_there_yet_is_caught_up_when_it_comes(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        said = discord.user_says("meanwhile", chat=GROUP)
        discord.absent.add(SERVER)
        async with listening(discord, inbox):
            discord.user_says("hello")
            await inbox.until(1)
            assert not is_complete(discord)
            discord.dispatch("GUILD_CREATE", discord.server())
            await inbox.until(2)
            await discord.wait_for(lambda: is_complete(discord))
    assert said.key in inbox.keys


async def test_what_was_said_while_a_server_had_trouble_of_its_own_is_read_when_it_is_back(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeDiscord() as discord, listening(discord, inbox):
        discord.user_says("before", chat=GROUP)
        await inbox.until(1)
        discord.dispatch("GUILD_DELETE", {"id": SERVER, "unavailable": True})
        quiet, discord.sessions = discord.sessions, {}
        missed = discord.user_says("told to nobody", chat=GROUP)
        discord.sessions = quiet
        discord.dispatch("GUILD_CREATE", discord.server())
        later = discord.user_says("after", chat=GROUP)
        await inbox.until(3)
    assert inbox.keys[1:] == [missed.key, later.key]


async def test_what_was_said_before_the_bot_came_to_a_server_is_not_read(inbox: Inbox) -> None:
    async with known(inbox) as discord, listening(discord, inbox):
        await discord.wait_for(lambda: is_complete(discord))
        place = {"id": "700", "type": 0, "guild_id": "201", "last_message_id": discord._id()}
        discord.channels["700"] = place
        new = {"id": "201", "joined_at": "2100-01-01T00:00:00+00:00", "channels": [place], "roles": [], "threads": []}
        discord.dispatch("GUILD_CREATE", new)
        discord.user_says("hello")
        await inbox.until(1)
    assert discord.counts["GET messages"] == 1, "that of the direct chat"


async def test_another_bot_in_the_place_of_the_first_begins_anew(inbox: Inbox) -> None:
    async with known(inbox) as first, FakeDiscord(is_known=False) as second:
        second.cursor, second.identity = first.cursor, "999"
        assert first.cursor["identity"] == first.identity
        second.user_says("long before we came", chat=GROUP)
        async with listening(second, inbox):
            await second.wait_for(lambda: is_complete(second) and second.cursor["identity"] == "999")
        assert second.resumed == []
        second.forget_sessions()
        second.user_says("while it was down", chat=GROUP)
        async with listening(second, inbox):
            await inbox.until(1)
    assert texts(inbox) == ["while it was down"]


async def test_threads_in_which_nobody_spoke_for_long_are_forgotten_and_still_caught_up(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        quiet = discord.user_opens_thread("quiet")
        cursor = {f"channel:{number}": str(number) for number in range(1, 200)} | {f"channel:{quiet}": "5", "dm:6": "6"}
        discord.cursor |= cursor
        discord.hidden.add("6")
        said = discord.user_says("after a year", chat=quiet)
        async with listening(discord, inbox):
            await inbox.until(1)
            await discord.wait_for(lambda: is_complete(discord))
    assert inbox.keys == [said.key]
    left = {name for name in discord.cursor if name.startswith(("channel:", "dm:"))}
    assert left == {f"channel:{GROUP}", f"channel:{quiet}", f"dm:{direct(7)}", "dm:6"}


async def test_a_channel_that_was_quiet_for_longer_than_is_caught_up_is_not_even_asked(inbox: Inbox) -> None:
    async with known(inbox) as discord:
        discord.cursor["since"] = "1"
        discord.channels["400"] = {"id": "400", "type": 0, "guild_id": SERVER, "last_message_id": "1000"}
        async with listening(discord, inbox):
            await discord.wait_for(lambda: is_complete(discord))
    assert discord.counts["GET messages"] == 1, "the direct chat"
