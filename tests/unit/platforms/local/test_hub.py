"""The meeting place of terminals and the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hermes.core.errors import StoreIsDownError, UnreachableError, WindowClosedError
from hermes.core.keys import Target
from hermes.core.messages import Cursor, InboundEvent, InboundMessage, OutboundMessage
from hermes.platforms.local.adapter import LocalAdapter
from hermes.platforms.local.hub import MAX_REMEMBERED_SENDS, LocalHub

DESK = Target("local", "desk")


def adapter(hub: LocalHub) -> LocalAdapter:
    return LocalAdapter(hub, "main", lambda: None)


class Inbox:
    def __init__(self) -> None:
        self.events: list[InboundEvent] = []
        self.may_store = asyncio.Event()
        self.is_asked = asyncio.Event()

    async def __call__(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        self.is_asked.set()
        await self.may_store.wait()
        self.events.extend(events)


async def test_submitting_returns_only_when_the_message_is_stored() -> None:
    hub, inbox = LocalHub(), Inbox()
    running = asyncio.create_task(adapter(hub).run(inbox))
    submitting = asyncio.create_task(hub.submit("desk", "hello", "k1"))
    await inbox.is_asked.wait()
    assert not submitting.done()
    inbox.may_store.set()
    await submitting
    running.cancel()
    event = inbox.events[0]
    assert isinstance(event, InboundMessage)
    assert (event.keys, str(event.session_key), event.sender_id) == (("k1",), "agent:main:local:dm:desk", "local")


async def test_a_store_that_is_down_is_told_to_whoever_submitted() -> None:
    hub = LocalHub()

    async def down(events: Sequence[InboundEvent], cursor: Cursor | None = None) -> None:
        raise StoreIsDownError("the disk is full")

    submitting = asyncio.create_task(hub.submit("desk", "hello", "k1"))
    with pytest.raises(StoreIsDownError):
        await adapter(hub).run(down)
    with pytest.raises(StoreIsDownError, match="disk is full"):
        await submitting


async def test_a_gateway_that_stops_half_way_says_send_it_again() -> None:
    hub, inbox = LocalHub(), Inbox()
    running = asyncio.create_task(adapter(hub).run(inbox))
    submitting = asyncio.create_task(hub.submit("desk", "hello", "k1"))
    await inbox.is_asked.wait()
    running.cancel()
    with pytest.raises(UnreachableError, match="again"):
        await submitting


async def test_what_nobody_takes_is_given_up_and_not_stored_later() -> None:
    hub, inbox = LocalHub(), Inbox()
    with pytest.raises(UnreachableError, match="again"):
        await hub.submit("desk", "hello", "k1", within_seconds=0.01)
    inbox.may_store.set()
    running = asyncio.create_task(adapter(hub).run(inbox))
    await hub.submit("desk", "hello", "k2")
    running.cancel()
    assert [event.keys for event in inbox.events] == [("k2",)]


async def test_everyone_who_listens_to_a_chat_sees_what_is_sent_there_and_nobody_else() -> None:
    hub = LocalHub()
    async with hub.listen("desk") as one, hub.listen("desk") as two, hub.listen("other") as other:
        await adapter(hub).send(OutboundMessage(DESK, "hello"))
        assert (one.get_nowait().text, two.get_nowait().text, other.empty()) == ("hello", "hello", True)


async def test_a_chat_that_nobody_looks_at_is_a_closed_window() -> None:
    hub = LocalHub()
    async with hub.listen("desk"):
        pass
    with pytest.raises(WindowClosedError, match="nobody is looking at local:desk"):
        await adapter(hub).send(OutboundMessage(DESK, "hello"))


async def test_only_so_many_sends_are_remembered() -> None:
    hub = LocalHub()
    async with hub.listen("desk") as queue:
        for number in range(MAX_REMEMBERED_SENDS + 1):
            hub.deliver(OutboundMessage(DESK, "x", idempotency_key=f"ob_{number}"))
        hub.deliver(OutboundMessage(DESK, "x", idempotency_key=f"ob_{MAX_REMEMBERED_SENDS}"))
        assert queue.qsize() == MAX_REMEMBERED_SENDS + 1
        hub.deliver(OutboundMessage(DESK, "x", idempotency_key="ob_0"))
        assert queue.qsize() == MAX_REMEMBERED_SENDS + 2
