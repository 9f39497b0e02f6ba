"""Following a turn: what is passed on at once, what is gathered, and what silence looks like."""

from __future__ import annotations

import asyncio

from hermes.servers.api.streams.turn_stream import follow
from hermes.services.events import TextArrived, TurnEnded, TurnEvent, TurnStarted
from hermes.services.requests.requests import RequestHandle

LANE, TURN = "agent:main:api:dm:s1", "t_1"


def begun() -> RequestHandle:
    handle = RequestHandle("ev_1", LANE)
    handle.saw(TurnStarted(LANE, TURN, event_ids=("ev_1",)))
    handle.ready()
    return handle


def says(handle: RequestHandle, *texts: str) -> None:
    for text in texts:
        handle.saw(TextArrived(LANE, TURN, text))


async def test_the_first_words_go_on_at_once_and_what_follows_closely_is_gathered() -> None:
    handle = begun()
    seen: list[TurnEvent | None] = []
    says(handle, "a")
    async for event in follow(handle, least_seconds=0.02):
        seen.append(event)
        if len(seen) == 1:
            says(handle, "b", "c")
            asyncio.get_running_loop().call_later(0.005, says, handle, "d")
        elif len(seen) == 2:
            handle.saw(TurnEnded(LANE, TURN, "done", "abcd"))
    assert [event.text for event in seen if isinstance(event, TextArrived)] == ["a", "bcd"]
    assert isinstance(seen[-1], TurnEnded)


async def test_silence_is_told_and_ends_with_the_next_event() -> None:
    handle = begun()
    seen: list[TurnEvent | None] = []
    async for event in follow(handle, keep_alive_seconds=0.01):
        seen.append(event)
        if len(seen) == 2:
            handle.saw(TurnEnded(LANE, TURN, "done", ""))
    assert seen[:2] == [None, None]
    assert isinstance(seen[2], TurnEnded)


async def test_an_event_that_comes_after_a_cancelled_wait_is_there_for_the_next() -> None:
    handle = begun()
    waiting = asyncio.create_task(handle.within(5))
    await asyncio.sleep(0)
    waiting.cancel()
    says(handle, "late")
    await asyncio.gather(waiting, return_exceptions=True)
    event = await handle.within(5)
    assert isinstance(event, TextArrived)
    assert event.text == "late"


async def test_events_of_another_turn_wake_nobody() -> None:
    handle = begun()
    waiting = asyncio.create_task(handle.within(0.02))
    await asyncio.sleep(0)
    handle.saw(TextArrived(LANE, "t_other", "not yours"))
    assert await waiting is None
