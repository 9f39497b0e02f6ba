"""Catch up with what was missed in many channels, for platforms whose history is asked for by channel.

A platform derives from ``CatchUp`` and says in ``missed`` what was missed in a channel, page by page with
``read_pages``. The order of the channels, the retries, and when live events may pass are the same for all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError, RateLimitedError, RejectedError, UnreachableError
from hermes.core.messages import Json

log = logging.getLogger(__name__)

READERS = 4
MAX_SECONDS = 7 * 86400.0  # nothing older is read
PAUSES_SECONDS = (2.0, 5.0, 15.0, 30.0, 60.0)  # before a channel is asked for again; the last one from then on
MAX_TRIES = 30  # in about half an hour
MIN_WAIT_SECONDS = 0.2  # of one that is told to wait for no time at all
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The messages of one channel that were missed, oldest first; ``error`` ends the connection instead."""

    channel: str
    messages: Sequence[Json] = ()
    error: PlatformError | None = None


class CatchUp:
    """Reads a few channels at a time; a channel in which somebody speaks now comes first.

    What was missed in a channel is ``put``; whoever has stored it calls ``finish``. Until then its live events have to
    wait. A channel that the platform fails to read is tried again, and no other waits for it. Where all others can be
    read and this one never is, it is put without messages: to be heard without what was missed is better than not at
    all. Whatever else ends the reading is put as an error.
    """

    platform = ""

    def __init__(self, put: Callable[[CaughtUp], None]) -> None:
        self._put = put
        self._waiting: list[str] = []
        self._pending: set[str] = set()  # wanted, and not finished yet
        self._done: set[str] = set()
        self._failures: dict[str, int] = {}
        self._reads = 0  # those that went well
        self._wake = asyncio.Event()

    async def missed(self, channel: str) -> Sequence[Json]:
        """Fetch the missed messages, oldest first. RejectedError: the channel is gone, or may not be read."""
        raise NotImplementedError

    def is_done(self, channel: str) -> bool:
        return channel in self._done

    def want(self, channel: str) -> None:
        """Something was missed there."""
        self._done.discard(channel)
        if channel not in self._pending:
            self._pending.add(channel)
            self._queue(channel)

    def skip(self, channel: str) -> None:
        """Mark a channel in which nothing was missed."""
        if channel not in self._pending:
            self._done.add(channel)

    def hurry(self, channel: str) -> None:
        """Somebody speaks there now."""
        if channel in self._waiting:
            self._waiting.remove(channel)
        elif channel in self._pending:
            return  # it is being read
        self._pending.add(channel)
        self._queue(channel, at=0)

    def finish(self, channel: str) -> None:
        """Mark a channel whose missed messages are stored."""
        self._pending.discard(channel)
        self._done.add(channel)

    async def run(self) -> None:
        """Read until cancelled: whoever speaks later in a channel that nobody knew has it read then."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._reported(self._one_after_the_other(group)))

    async def _reported(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PlatformError as error:
            self._put(CaughtUp("", error=error))

    def _queue(self, channel: str, at: int | None = None) -> None:
        self._waiting.insert(len(self._waiting) if at is None else at, channel)
        self._wake.set()

    async def _one_after_the_other(self, group: asyncio.TaskGroup) -> None:
        while True:
            while self._waiting:
                channel = self._waiting.pop(0)
                try:
                    self._put(CaughtUp(channel, await self.missed(channel)))
                except RejectedError as refused:  # the others go on
                    self._give_up(channel, refused)
                except UnreachableError as error:
                    self._failed(channel, error, group)
                    continue
                self._reads += 1
                self._failures.pop(channel, None)
            self._wake.clear()
            await self._wake.wait()

    def _give_up(self, channel: str, error: PlatformError) -> None:
        log.warning("History not fetched", extra={"platform": self.platform, "chat": channel, "reason": str(error)})
        self._put(CaughtUp(channel))

    def _failed(self, channel: str, error: PlatformError, group: asyncio.TaskGroup) -> None:
        tries = self._failures[channel] = self._failures.get(channel, 0) + 1
        if tries >= MAX_TRIES and self._reads >= len(self._failures):
            self._failures.pop(channel)
            self._give_up(channel, error)
            return
        pause = pause_after(tries)
        if tries == 1:
            about = {"platform": self.platform, "chat": channel, "reason": str(error)}
            log.warning("History not fetched yet", extra={**about, "again_in": pause})
        group.create_task(self._again(channel, pause))

    async def _again(self, channel: str, pause: float) -> None:
        await asyncio.sleep(pause)
        self._queue(channel)


async def read_pages(
    fetch: Callable[[str], Awaitable[tuple[Sequence[Json], str]]], most: int, about: Json
) -> list[Json]:
    """Fetch page after page, each with the cursor of the one before, '' for the first and behind the last.

    ``most``: pages that are read; ``about``: fields of the log line when there are more. Where a later page is refused,
    the pages before it count.
    """
    found: list[Json] = []
    cursor = ""
    for number in range(most):
        try:
            page, cursor = await patiently(partial(fetch, cursor))
        except RejectedError as refused:
            if not number:
                raise
            log.warning("History not fetched", extra={**about, "reason": str(refused)})
            return found
        found += page
        if not cursor:
            return found
    log.warning("History cut to the newest messages", extra=about)
    return found


def pause_after(tries: int) -> float:
    """Return the pause after so many failures."""
    return PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS)) - 1]


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The platform says how long to wait; nobody else is held up by it."""
    while True:
        try:
            return await ask()
        except RateLimitedError as limited:
            await asyncio.sleep(max(limited.retry_after, MIN_WAIT_SECONDS))


def objects(value: object) -> list[Json]:
    """The objects in a list of the platform's; nothing where it is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
