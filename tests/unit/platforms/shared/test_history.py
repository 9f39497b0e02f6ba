"""Pages of a channel's history, and the channels in the order in which they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from hermes.core.errors import CredentialsError, RateLimitedError, RejectedError
from hermes.core.messages import Json
from hermes.platforms.shared import history
from hermes.platforms.shared.history import CatchUp, CaughtUp, read_pages

PAGES: dict[str, tuple[list[Json], str]] = {"": ([{"n": 1}], "b"), "b": ([{"n": 2}], "c"), "c": ([{"n": 3}], "")}


async def fetch(cursor: str) -> tuple[list[Json], str]:
    return PAGES[cursor]


async def test_pages_follow_each_other_by_their_cursors_up_to_the_most() -> None:
    assert await read_pages(fetch, 10, {}) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert await read_pages(fetch, 2, {}) == [{"n": 1}, {"n": 2}]


async def test_a_refused_later_page_keeps_the_pages_before_and_a_refused_first_page_is_an_error() -> None:
    async def refused_at_c(cursor: str) -> tuple[list[Json], str]:
        if cursor == "c":
            raise RejectedError("no longer a member")
        return PAGES[cursor]

    async def refused(_: str) -> tuple[list[Json], str]:
        raise RejectedError("not a member")

    assert await read_pages(refused_at_c, 10, {}) == [{"n": 1}, {"n": 2}]
    with pytest.raises(RejectedError):
        await read_pages(refused, 10, {})


async def test_a_page_that_has_to_wait_is_asked_for_again_with_its_own_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MIN_WAIT_SECONDS", 0.001)
    asked: list[str] = []

    async def limited(cursor: str) -> tuple[list[Json], str]:
        asked.append(cursor)
        if asked == ["", "b"]:
            raise RateLimitedError("slower", retry_after=0)
        return PAGES[cursor]

    assert len(await read_pages(limited, 10, {})) == 3
    assert asked == ["", "b", "b", "c"]


class Scripted(CatchUp):
    """Each channel holds one message with its name; ``gone`` may not be read, ``locked`` ends the connection."""

    platform = "scripted"

    async def missed(self, channel: str) -> Sequence[Json]:
        if channel == "gone":
            raise RejectedError("no such channel")
        if channel == "locked":
            raise CredentialsError("token revoked")
        return [{"text": channel}]


async def test_the_channel_in_which_somebody_speaks_comes_first_and_one_that_is_gone_stops_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "READERS", 1)
    put: asyncio.Queue[CaughtUp] = asyncio.Queue()
    catch_up = Scripted(put.put_nowait)
    for channel in ("a", "gone", "b"):
        catch_up.want(channel)
    catch_up.skip("quiet")
    catch_up.skip("a")  # it is wanted already
    catch_up.hurry("b")
    running = asyncio.create_task(catch_up.run())
    try:
        found = [await asyncio.wait_for(put.get(), 10) for _ in range(3)]
        assert [(each.channel, len(each.messages)) for each in found] == [("b", 1), ("a", 1), ("gone", 0)]
        assert [catch_up.is_done(channel) for channel in ("a", "b", "quiet")] == [False, False, True]
        catch_up.finish("a")
        assert catch_up.is_done("a")
        catch_up.want("locked")
        assert isinstance((await asyncio.wait_for(put.get(), 10)).error, CredentialsError)
    finally:
        running.cancel()
        await asyncio.wait({running})
