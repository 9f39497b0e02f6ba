"""Following a turn: what is passed on at once, what is gathered, and what silence looks like."""

from __future__ import annotations

import asyncio

from hermes.servers.api.turn_stream import follow
from hermes.services.events import TextArrived, TurnEnded, TurnEvent, TurnStarted
from hermes.services.requests.requests import RequestHandle

LANE, TURN = "agent:main:api:dm:s1", "t_1"


def begun() -> RequestHandle:
    ticket = RequestHandle("ev_1", LANE)
    ticket.saw(TurnStarted(LANE, TURN, event_ids=("ev_1",)))
    ticket.ready()
    return ticket


def says(ticket: RequestHandle, *texts: str) -> None:
    for text in texts:
        ticket.saw(TextArrived(LANE, TURN, text))


async def test_the_first_words_go_on_at_once_and_what_follows_closely_is_gathered() -> None:
    ticket = begun()
    seen: list[TurnEvent | None] = []
    says(ticket, "a")
    async for event in follow(ticket, least_seconds=0.02):
        seen.append(event)
        if len(seen) == 1:
            says(ticket, "b", "c")
            asyncio.get_running_loop().call_later(0.005, says, ticket, "d")
        elif len(seen) == 2:
            ticket.saw(TurnEnded(LANE, TURN, "done", "abcd"))
    assert [event.text for event in seen if isinstance(event, TextArrived)] == ["a", "bcd"]
    assert isinstance(seen[-1], TurnEnded)


async def test_silence_is_told_and_ends_with_the_next_event() -> None:
    ticket = begun()
    seen: list[TurnEvent | None] = []
    async for event in follow(ticket, keep_alive_seconds=0.01):
        seen.append(event)
        if len(seen) == 2:
            ticket.saw(TurnEnded(LANE, TURN, "done", ""))
    assert seen[:2] == [None, None]
    assert isinstance(seen[2], TurnEnded)


async def test_an_event_that_comes_after_a_cancelled_wait_is_there_for_the_next() -> None:
    ticket = begun()
    waiting = asyncio.create_task(ticket.within(5))
    await asyncio.sleep(0)
    waiting.cancel()
    says(ticket, "late")
    await asyncio.gather(waiting, return_exceptions=True)
    event = await ticket.within(5)
    assert isinstance(event, TextArrived)
    assert event.text == "late"


async def test_events_of_another_turn_wake_nobody() -> None:
    ticket = begun()
    waiting = asyncio.create_task(ticket.within(0.02))
    await asyncio.sleep(0)
    ticket.saw(TextArrived(LANE, "t_other", "not yours"))
    assert await waiting is None
