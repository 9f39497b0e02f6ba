"""What was written while nobody listened is read from the history, in order, and only once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.core.errors import CredentialsError, StoreIsDownError
from hermes.core.keys import Target
from hermes.core.messages import InboundMessage, OutboundMessage
from hermes.platforms.shared import history
from hermes.platforms.shared.history import READERS
from hermes.platforms.slack import catchup
from hermes.platforms.slack.cursors import MAX_THREADS, Places
from hermes.platforms.slack.parse import Place
from tests.contract.adapters.conftest import Inbox, receiving
from tests.fakes.slack import GROUP, FakeSlack

SECONDS = 30


@asynccontextmanager
async def known(inbox: Inbox) -> AsyncIterator[FakeSlack]:
    """A workspace in which somebody listened once, and heard Ana and the group; now nobody does."""
    async with asyncio.timeout(SECONDS), FakeSlack() as slack:
        async with listening(slack, inbox):
            slack.user_says("hello")
            slack.user_says("hello all", chat=GROUP)
            await inbox.until(2)
        inbox.events.clear()
        yield slack


@asynccontextmanager
async def listening(slack: FakeSlack, inbox: Inbox) -> AsyncIterator[asyncio.Task[None]]:
    async with slack.adapter() as adapter, receiving(adapter, inbox) as running:
        await slack.wait_for(lambda: slack.sockets == 1 and "since" in slack.cursor)
        yield running
    await slack.wait_for(lambda: slack.sockets == 0)


def texts(inbox: Inbox) -> list[str]:
    return [event.text for event in inbox.events if isinstance(event, InboundMessage)]


async def test_at_the_first_start_nothing_old_is_read(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack, listening(slack, inbox):
        slack.user_says("live")
        await inbox.until(1)
    assert slack.counts["conversations.history"] == 0


async def test_what_was_said_meanwhile_arrives_in_order_in_every_channel(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.page_size = 3
        for number in range(10):
            slack.user_says(f"d{number}")
            slack.user_says(f"g{number}", chat=GROUP)
        async with listening(slack, inbox):
            await inbox.until(20)
    assert [text for text in texts(inbox) if text[0] == "d"] == [f"d{number}" for number in range(10)]
    assert [text for text in texts(inbox) if text[0] == "g"] == [f"g{number}" for number in range(10)]


async def test_what_was_caught_up_is_not_read_again(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.user_says("meanwhile")
        for _ in range(2):
            asked = slack.counts["users.conversations"]
            async with listening(slack, inbox):
                await slack.wait_for(lambda asked=asked: slack.counts["users.conversations"] > asked)  # type: ignore[misc]
    assert texts(inbox) == ["meanwhile"]


async def test_somebody_who_writes_for_the_first_time_while_it_is_down_is_heard(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        said = slack.user_says("I am new", chat=42)
        async with listening(slack, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]


@pytest.mark.parametrize("ahead", [-86_400.0, 86_400.0], ids=["behind", "ahead"])
async def test_a_clock_that_is_set_wrong_neither_hides_what_was_missed_nor_brings_back_what_is_old(
    inbox: Inbox, ahead: float
) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack:
        slack.clock_ahead = ahead - 3600
        slack.connections = 1  # nobody listens, and nothing waits to be told
        slack.user_says("an hour before it was ever started", chat=42)
        slack.clock_ahead = ahead
        async with listening(slack, inbox):
            pass
        said = slack.user_says("while it was down", chat=42)
        async with listening(slack, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]


async def test_a_direct_chat_that_is_not_listed_is_remembered(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.hidden.add("D00000007")
        slack.user_says("still there?")
        async with listening(slack, inbox):
            await inbox.until(1)
    assert texts(inbox) == ["still there?"]


async def test_what_is_said_live_waits_behind_what_was_missed_and_both_come_once(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.user_says("missed")
        hold = slack.hold("conversations.history")
        async with listening(slack, inbox):
            await hold.reached()
            slack.user_says("live")
            slack.user_says("somebody else", chat=42)
            await asyncio.sleep(0.05)
            assert texts(inbox) == [], "a channel that is being read holds back its own"
            slack.release_all()
            await slack.wait_for(lambda: slack.unacked == 0)
    assert [text for text in texts(inbox) if text != "somebody else"] == ["missed", "live"]
    assert texts(inbox).count("somebody else") == 1, "it stands in the history too"


async def test_an_edit_waits_behind_what_it_changes(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        missed = slack.user_says("misssed")
        hold = slack.hold("conversations.history")
        async with listening(slack, inbox):
            await hold.reached()
            slack.user_edits(missed, "missed")
            slack.user_says("live")
            await asyncio.sleep(0.05)
            slack.release_all()
            await slack.wait_for(lambda: slack.unacked == 0)
    said = [(event.text, event.is_edit) for event in inbox.events if isinstance(event, InboundMessage)]
    assert said == [("misssed", False), ("missed", True), ("live", False)]


async def test_an_edit_whose_words_stand_in_the_history_is_not_told_once_more(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        missed = slack.user_says("misssed")
        slack.user_edits(missed, "missed")
        message = slack.history[missed.chat][-1]
        told = {"type": "message", "subtype": "message_changed", "channel": missed.chat, "channel_type": "im"}
        before = {**message, "text": "misssed"}
        hold = slack.hold("conversations.history")
        async with listening(slack, inbox):
            await hold.reached()
            slack.deliver_event({**told, "ts": message["edited"]["ts"], "message": message, "previous_message": before})
            slack.release_all()
            await slack.wait_for(lambda: slack.unacked == 0)
    assert texts(inbox) == ["missed"]


async def test_a_channel_in_which_somebody_speaks_now_is_read_before_those_that_wait(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        for chat in range(100, 130):
            slack.user_says("missed", chat=chat)
        hold = slack.hold("conversations.history")
        async with listening(slack, inbox):
            await slack.wait_for(lambda: hold.waiting == READERS and slack.counts["users.conversations"] > 0)
            slack.user_says("now", chat=129)
            await asyncio.sleep(0.05)
            slack.release_all()
            await inbox.until(31)
    order = [event.session_key.chat for event in inbox.events if isinstance(event, InboundMessage)]
    assert order.index("D00000129") <= 2 * READERS


async def test_the_mark_does_not_move_before_what_was_missed_is_stored(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        said = slack.user_says("missed")
        before = dict(slack.cursor)
        inbox.is_down = True
        async with slack.adapter() as adapter:
            with pytest.raises(StoreIsDownError):
                await adapter.run(inbox)
        assert slack.cursor == before
        inbox.is_down = False
        async with listening(slack, inbox):
            await inbox.until(1)
    assert inbox.keys == [said.key]
    assert slack.cursor[f"channel:{said.chat}"] == said.message_id


async def test_replies_in_threads_are_caught_up_old_threads_and_new_ones(inbox: Inbox) -> None:
    async with asyncio.timeout(SECONDS), FakeSlack() as slack:
        async with slack.adapter() as adapter, receiving(adapter, inbox):
            slack.user_says_in_group("first?", to_us=True)
            question = await inbox.message()
            await adapter.send(OutboundMessage(question.session_key.target, "Yes."))
        await slack.wait_for(lambda: slack.sockets == 0)
        slack.user_answers(slack.sent[-1], "in the old thread")
        new = slack.user_says_in_group("second?", to_us=True)
        slack.user_says("in the new thread", chat=GROUP, thread=new.message_id)
        async with listening(slack, inbox):
            await inbox.until(3)
    said = [event for event in inbox.events if isinstance(event, InboundMessage)]
    assert [each.text for each in said] == ["in the old thread", "second?", "in the new thread"]
    assert [each.is_addressed for each in said] == [True, True, True]
    assert said[0].session_key == question.session_key
    assert said[2].session_key == said[1].session_key


async def test_another_workspace_in_the_place_of_the_first_begins_anew(inbox: Inbox) -> None:
    async with known(inbox) as first, FakeSlack() as second:
        second.cursor, second.team = first.cursor, "T0OTHER"
        second.connections = 1  # nobody listens, and nothing waits to be told
        second.user_says("long before we came", chat=42)
        async with listening(second, inbox):
            await second.wait_for(lambda: second.cursor["identity"] == "T0OTHER/U0BOT")
        second.user_says("while it was down", chat=42)
        asked = second.counts["conversations.history"]
        async with listening(second, inbox):
            await inbox.until(1)
            await second.wait_for(lambda: second.counts["conversations.history"] > asked)
    assert texts(inbox) == ["while it was down"]
    assert {body["channel"] for body in second.called("conversations.history")} == {"D00000042"}


async def test_a_rate_limit_is_waited_for(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.user_says("missed")
        slack.limit_next("conversations.history", 0)
        slack.limit_next("users.conversations", 0)
        async with listening(slack, inbox):
            await inbox.until(1)
    assert texts(inbox) == ["missed"]


async def test_a_channel_whose_history_fails_for_a_while_is_asked_for_again_and_the_connection_stays(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES_SECONDS", (0.01,))
    async with known(inbox) as slack:
        slack.user_says("one")
        slack.user_says("two", chat=GROUP)
        slack.refuse_next("conversations.history", "internal_error", times=5)
        opened = slack.counts["apps.connections.open"]
        async with listening(slack, inbox) as running:
            await inbox.until(2)
            assert not running.done()
    assert sorted(texts(inbox)) == ["one", "two"]
    assert slack.counts["apps.connections.open"] == opened + 1


async def test_channels_that_cannot_be_listed_for_a_while_are_listed_later_and_the_connection_stays(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES_SECONDS", (0.01,))
    async with known(inbox) as slack:
        slack.user_says("for the first time", chat=42)
        slack.refuse_next("users.conversations", "internal_error", times=5)
        opened = slack.counts["apps.connections.open"]
        async with listening(slack, inbox) as running:
            await inbox.until(1)
            assert not running.done()
    assert texts(inbox) == ["for the first time"]
    assert slack.counts["apps.connections.open"] == opened + 1


async def test_a_channel_that_refuses_stops_no_other_and_what_is_said_there_live_is_heard(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.user_says("in one")
        slack.user_says("in the other", chat=GROUP)
        slack.refuse_next("conversations.history", "not_in_channel")
        slack.refuse_next("users.conversations", "missing_scope", needed="im:read")
        async with listening(slack, inbox) as running:
            await inbox.until(1)
            slack.user_says("live")
            slack.user_says("live", chat=GROUP)
            await inbox.until(3)
            assert not running.done()
    assert texts(inbox)[1:] == ["live", "live"]


async def test_credentials_that_are_revoked_meanwhile_end_it(inbox: Inbox) -> None:
    async with known(inbox) as slack:
        slack.refuse_next("conversations.history", "token_revoked")
        async with slack.adapter() as adapter:
            with pytest.raises(CredentialsError):
                await adapter.run(inbox)


def test_marks_survive_being_stored_and_threads_are_bounded() -> None:
    places = Places.of({})
    cursor: dict[str, str] = {}
    for number in range(MAX_THREADS + 5):
        cursor |= places.join("C1", f"{number}.0", f"{number}.5")
    cursor |= places.begin("9.0") | places.move(Place("C1", "1000.5")) | places.move(Place("C1", "999.5"))
    again = Places.of(cursor)
    assert (again.mark("C1"), again.mark("C2")) == ("1000.5", "9.0")
    assert not again.takes_part("C1", "4.0")
    assert again.takes_part("C1", "5.0")
    assert len(again.threads_in("C1")) == MAX_THREADS
    assert Places.of({"threads": "{broken"}).threads_in("C1") == {}


def test_the_thread_that_was_quiet_for_longest_is_forgotten_first() -> None:
    places = Places.of({})
    for number in range(MAX_THREADS):
        places.join("C1", f"{number}.0", f"{number}.5")
    places.join("C1", "0.0", "900.5")
    places.join("C1", "999.0", "999.5")
    assert [places.takes_part("C1", f"{number}.0") for number in (0, 1, 2, 999)] == [True, False, True, True]


def test_direct_chats_are_caught_up_with_first_and_of_these_the_liveliest() -> None:
    cursor = {f"channel:{name}": ts for name, ts in (("C1", "9.5"), ("D1", "7.5"), ("D2", "10.5"), ("C2", "1.5"))}
    assert catchup._by_need(Places.of(cursor)) == ["D2", "D1", "C1", "C2"]


def test_of_far_too_many_messages_the_newest_are_caught_up_with_each_once_and_none_from_before() -> None:
    found = [{"ts": f"{number}.000100"} for number in (*range(1200, 0, -1), 1200)]
    kept = [message["ts"] for message in catchup._in_order(found, "100.000100")]
    assert kept == [f"{number}.000100" for number in range(201, 1201)]
    assert [each["ts"] for each in catchup._in_order(found, "1198.000100")] == ["1199.000100", "1200.000100"]
    assert catchup._in_order([{"ts": "soon"}, {"ts": 5}, {}], "0") == []


def test_a_target_of_slack_reads_back() -> None:
    target = Target("slack", "C1", "1700000000.000100")
    assert Target.parse(str(target)) == target
