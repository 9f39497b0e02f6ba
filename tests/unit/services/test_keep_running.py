"""A part that breaks begins again, and status says so meanwhile."""

from __future__ import annotations

import asyncio
import logging

import pytest

from hermes.services.keep_running import keep_running


async def test_a_part_that_broke_begins_again_and_is_told_of_while_it_rests(caplog: pytest.LogCaptureFixture) -> None:
    troubles: list[str] = []
    seen: list[list[str]] = []
    is_back = asyncio.Event()

    async def run() -> None:
        seen.append(list(troubles))
        if len(seen) < 3:
            asyncio.get_running_loop().call_soon(lambda: seen.append(list(troubles)))
            raise ValueError("a row that cannot be read")
        is_back.set()
        await asyncio.Event().wait()

    with caplog.at_level(logging.ERROR):
        part = asyncio.create_task(keep_running("menus", run, troubles, pauses=(0.01,)))
        async with asyncio.timeout(10):
            await is_back.wait()
    broke = ["menus failed and starts again. The reason: hermes logs --level error"]
    assert seen == [[], broke, []]
    assert "a row that cannot be read" in caplog.text
    part.cancel()
    with pytest.raises(asyncio.CancelledError):
        await part


async def test_a_part_that_waits_for_what_is_cancelled_begins_again() -> None:
    is_back = asyncio.Event()
    waited_for = asyncio.get_running_loop().create_future()
    waited_for.cancel()

    async def run() -> None:
        if not is_begun_again:
            is_begun_again.append(True)
            await waited_for
        is_back.set()

    is_begun_again: list[bool] = []
    async with asyncio.timeout(10):
        await keep_running("alerts", run, [], pauses=(0.01,))
    assert is_back.is_set()


async def test_a_part_that_is_done_is_not_begun_again() -> None:
    times = []

    async def run() -> None:
        times.append(1)

    await keep_running("tools", run, [])
    assert times == [1]


async def test_one_that_breaks_while_it_is_ended_ends() -> None:
    has_begun = asyncio.Event()
    troubles: list[str] = []

    async def run() -> None:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("while it tidied up")

    part = asyncio.create_task(keep_running("presenter", run, troubles))
    await has_begun.wait()
    part.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(ValueError, match="while it tidied up"):
            await part
    assert troubles == []
