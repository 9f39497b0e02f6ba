"""What comes in: nothing is lost, nothing is doubled without a name to know it by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hermes.core.errors import ConflictError, CredentialsError, PlatformError, StoreIsDownError, UnreachableError
from hermes.core.messages import Button, Cursor, InboundEvent, InboundMessage, OutboundMessage, Unreadable
from tests.contract.adapters.conftest import Inbox, receiving, saying
from tests.fakes.server import FakeServer


async def test_a_message_arrives_with_its_key_sender_text_and_place(server: FakeServer, inbox: Inbox) -> None:
    said = server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        message = await inbox.message()
    assert said.key in message.keys
    assert (message.text, message.session_key.target, message.is_addressed) == ("hello", server.target(), True)
    assert message.session_key.platform == server.platform
    assert message.sender_id
    assert message.sent_at.tzinfo is not None


async def test_messages_arrive_in_the_order_they_were_said(server: FakeServer, inbox: Inbox) -> None:
    said = [server.user_says(f"number {number}") for number in range(150)]
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(150)
    assert inbox.keys == [each.key for each in said]


async def test_message_the_inbox_did_not_take_is_offered_again(server: FakeServer, inbox: Inbox) -> None:
    if not server.capabilities.redelivers:
        pytest.skip("this platform hands an event out once; emit itself tries again")
    said = server.user_says("hello")
    inbox.is_down = True
    async with server.adapter() as adapter:
        with pytest.raises(StoreIsDownError):
            await adapter.run(inbox)
    inbox.is_down = False
    async with server.adapter() as adapter, receiving(adapter, inbox):
        assert said.key in (await inbox.message()).keys


async def test_nothing_is_asked_for_before_the_inbox_has_taken_what_came(server: FakeServer) -> None:
    taking, taken = asyncio.Event(), asyncio.Event()

    async def slow(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        taking.set()
        await taken.wait()

    server.user_says("hello")
    async with server.adapter() as adapter:
        running = asyncio.create_task(adapter.run(slow))
        await taking.wait()
        polls = server.polls
        await asyncio.sleep(0.02)
        assert server.polls == polls
        taken.set()
        if polls:
            await server.wait_for(lambda: server.polls > polls)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_the_identity_is_known_before_the_first_event(server: FakeServer) -> None:
    known: list[str] = []
    async with server.adapter() as adapter:

        async def look(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
            known.append(adapter.identity)
            raise StoreIsDownError("enough seen")

        server.user_says("hello")
        with pytest.raises(StoreIsDownError):
            await adapter.run(look)
    assert known == [server.identity]


async def test_the_same_message_delivered_again_carries_the_same_key(server: FakeServer, inbox: Inbox) -> None:
    said = server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(1)
        server.redeliver(said)
        await inbox.until(2)
    assert set(inbox.events[0].keys) & set(inbox.events[1].keys) == {said.key}


async def test_two_messages_never_share_a_key(server: FakeServer, inbox: Inbox) -> None:
    for _ in range(3):
        server.user_says("the same words")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(3)
    assert len(set(inbox.keys)) == 3


@pytest.mark.plays("unknown")
async def test_an_event_of_an_unknown_kind_does_no_harm(server: FakeServer, inbox: Inbox) -> None:
    server.something_unknown_happens()
    said = server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        assert said.key in (await inbox.message()).keys


@pytest.mark.plays("broken")
async def test_an_event_that_cannot_be_read_is_kept_and_the_next_one_arrives(server: FakeServer, inbox: Inbox) -> None:
    server.something_broken_arrives()
    said = server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(2)
    broken = inbox.events[0]
    assert isinstance(broken, Unreadable)
    assert broken.raw
    assert broken.keys
    assert inbox.keys[1] == said.key


async def test_a_connection_without_news_is_alive(server: FakeServer, inbox: Inbox) -> None:
    seen = asyncio.Event()
    async with asyncio.timeout(20), server.adapter(alive=seen.set) as adapter, receiving(adapter, inbox):
        await seen.wait()
    assert inbox.events == []


@pytest.mark.plays("drop")
async def test_after_a_dropped_connection_what_was_said_meanwhile_arrives(server: FakeServer, inbox: Inbox) -> None:
    server.user_says("before")
    async with server.adapter() as adapter:
        async with receiving(adapter, inbox) as running:
            await inbox.until(1)
            if server.polls:
                await server.wait_for(lambda: server.polls >= 2)
            server.drop_connection()
            with pytest.raises(UnreachableError):
                await running
        said = server.user_says("meanwhile")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(2)
    assert said.key in inbox.keys[1:]


@pytest.mark.plays("outage")
async def test_during_an_outage_it_is_unreachable_and_afterwards_it_works(server: FakeServer, inbox: Inbox) -> None:
    await server.stop()
    async with server.adapter() as adapter:
        with pytest.raises(UnreachableError):
            await adapter.run(inbox)
        with pytest.raises(UnreachableError):
            await adapter.send(saying(server, "hello"))
        await server.start()
        server.user_says("hello")
        async with receiving(adapter, inbox):
            await inbox.until(1)


@pytest.mark.plays("credentials")
async def test_bad_credentials_stop_it_with_words(server: FakeServer, inbox: Inbox) -> None:
    server.refuse_credentials()
    async with server.adapter() as adapter:
        with pytest.raises(CredentialsError, match=r"\w+ \w+"):
            await adapter.run(inbox)


@pytest.mark.plays("conflict")
async def test_a_second_process_on_the_same_account_is_a_conflict(server: FakeServer, inbox: Inbox) -> None:
    async with server.adapter() as first, server.adapter() as second, receiving(first, inbox) as one:
        await server.wait_for(lambda: server.polls >= 2)
        async with receiving(second, inbox) as two:
            done, _ = await asyncio.wait({one, two}, return_when=asyncio.FIRST_COMPLETED)
            with pytest.raises(ConflictError):
                await done.pop()


@pytest.mark.plays("edits")
async def test_an_edit_by_the_user_is_told_as_an_edit_with_a_key_of_its_own(server: FakeServer, inbox: Inbox) -> None:
    said = server.user_says("helo")
    edited = server.user_edits(said, "hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        first, second = await inbox.message(), await inbox.message()
    assert (first.text, first.is_edit) == ("helo", False)
    assert (second.text, second.is_edit) == ("hello", True)
    assert edited.key in second.keys
    assert not set(first.keys) & set(second.keys)


@pytest.mark.plays("quotes")
async def test_a_reply_shows_what_it_answers(server: FakeServer, inbox: Inbox) -> None:
    server.user_says("hello")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.message()
        await adapter.send(saying(server, "the answer is 42"))
        server.user_answers(server.sent[-1], "why?")
        message = await inbox.message()
    assert message.text == "why?"
    assert message.quote is not None
    assert (message.quote.text, message.quote.from_us) == ("the answer is 42", True)


@pytest.mark.plays("outage")
async def test_a_press_after_a_reconnect_arrives_with_its_sender_and_data(server: FakeServer, inbox: Inbox) -> None:
    if not server.capabilities.buttons:
        pytest.skip("no buttons here")
    server.user_says("hello")
    async with server.adapter() as adapter:
        async with receiving(adapter, inbox):
            asked = await inbox.message()
            buttons = ((Button("Allow", "ap_1:yes"), Button("Refuse", "ap_1:no")),)
            await adapter.send(OutboundMessage(server.target(), "May I?", buttons=buttons))
        await server.stop()
        with pytest.raises(PlatformError):
            await adapter.run(inbox)
    await server.start()
    pressed = server.user_presses(server.sent[-1], "ap_1:yes")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        press = await inbox.press()
    assert (press.data, press.sender_id, press.session_key) == ("ap_1:yes", asked.sender_id, asked.session_key)
    assert pressed.key in press.keys
    assert press.message_id in ("", server.sent[-1].message_id)  # not every platform says under which message


@pytest.mark.plays("bursts")
async def test_what_is_likely_to_go_on_says_so_and_what_is_not_does_not(server: FakeServer, inbox: Inbox) -> None:
    server.user_forwards(["one", "two"])
    server.user_sends_album([b"\xff\xd8one", b"\xff\xd8two"], "look")
    server.user_says("x" * server.capabilities.text_limit)
    server.user_says("the rest")
    async with server.adapter() as adapter, receiving(adapter, inbox):
        await inbox.until(6)
    messages = [event for event in inbox.events if isinstance(event, InboundMessage)]
    assert [message.may_continue for message in messages] == [True] * 5 + [False]
    assert [message.text for message in messages[:3]] == ["one", "two", "look"]
    assert [len(message.attachments) for message in messages] == [0, 0, 1, 1, 0, 0]
