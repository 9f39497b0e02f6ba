"""Who asks too much waits, and is then told when to come again."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.servers.api.limits import BURST_SECONDS, RequestPace, Slots, too_many


def test_a_burst_passes_and_then_the_pace_holds() -> None:
    pace = RequestPace()
    waits = [pace.wait(100.0, per_minute=60, longest=5.0) for _ in range(15)]
    assert [wait for _, wait in waits[:10]] == [0.0] * 10
    assert [wait for _, wait in waits[10:]] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert pace.wait(100.0, per_minute=60, longest=5.0) == (False, 1.0)


def test_a_refused_request_costs_nothing() -> None:
    pace = RequestPace()
    assert pace.wait(0.0, per_minute=6, longest=0.0) == (True, 0.0)
    for _ in range(5):
        assert pace.wait(0.0, per_minute=6, longest=0.0) == (False, 10.0)
    assert pace.wait(10.0, per_minute=6, longest=0.0) == (True, 0.0)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.integers(1, 600))
def test_no_minute_sees_more_than_its_share_and_a_burst(gaps: list[float], per_minute: int) -> None:
    pace, now, starts = RequestPace(), 0.0, []
    for gap in gaps:
        now += gap
        may_come, pause = pace.wait(now, per_minute, longest=30.0)
        if may_come:
            starts.append(now + pause)
    for start in starts:
        in_window = sum(start <= other < start + 60 for other in starts)
        assert in_window <= per_minute + max(1, BURST_SECONDS * per_minute / 60) + 1


async def test_the_rest_wait_in_order() -> None:
    slots, order = Slots(), []

    async def work(number: int) -> None:
        assert await slots.take(1, 5.0)
        order.append(number)
        await asyncio.sleep(0)
        slots.give_back(1)

    async with asyncio.timeout(20):
        await asyncio.gather(*(work(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert (slots.in_use, slots.waiting) == (0, 0)


async def test_who_waited_too_long_leaves_the_queue() -> None:
    slots = Slots()
    assert await slots.take(1, 0.0)
    assert not await slots.take(1, 0.01)
    assert slots.waiting == 0
    slots.give_back(1)
    assert await slots.take(1, 0.0)


async def test_who_is_cancelled_while_waiting_takes_nothing_along() -> None:
    slots = Slots()
    assert await slots.take(1, 0.0)
    waiting = asyncio.create_task(slots.take(1, 5.0))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    handed = asyncio.create_task(slots.take(1, 5.0))
    await asyncio.sleep(0)
    slots.give_back(1)  # it is this one's now, and it is cancelled in the same breath
    handed.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handed
    assert (slots.in_use, slots.waiting) == (0, 0)


async def test_a_lowered_limit_is_reached_as_work_ends() -> None:
    slots = Slots()
    for _ in range(3):
        assert await slots.take(3, 0.0)
    for _ in range(2):
        slots.give_back(1)
    assert slots.in_use == 1
    assert not await slots.take(1, 0.01)


def test_a_refusal_says_when_to_come_again() -> None:
    refused = too_many("Too much.", 0.2)
    assert refused.status == 429
    assert refused.headers == {"Retry-After": "1"}
    assert "Try again in 1 s" in refused.message
