"""What was missed in many channels, read a few at a time: for platforms whose history is asked for by channel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hermes.core.errors import PlatformError, RateLimitedError, UnreachableError

log = logging.getLogger(__name__)

READERS = 4
PAUSES_SECONDS = (2.0, 5.0, 15.0, 30.0, 60.0)  # before a channel is asked for again; the last one from then on
MOST_TRIES = 30  # in about half an hour
SHORTEST_WAIT_SECONDS = 0.2  # of one that is told to wait for no time at all
T = TypeVar("T")


class Readers:
    """``read`` is called once for each channel that was added, and again for one that the platform failed to read;
    nobody else waits for it. Where all others can be read and one never is, ``give_up`` is called for it: to be heard
    without what was missed is better than not at all. ``broke`` is told of whatever else ends the reading.
    """

    def __init__(
        self,
        platform: str,
        read: Callable[[str], Awaitable[None]],
        give_up: Callable[[str], None],
        broke: Callable[[PlatformError], None],
    ) -> None:
        self._platform = platform
        self._read = read
        self._give_up = give_up
        self._broke = broke
        self._waiting: list[str] = []
        self._failures: dict[str, int] = {}
        self._reads = 0  # those that went well
        self._wake = asyncio.Event()

    def add(self, channel: str) -> None:
        self._waiting.append(channel)
        self._wake.set()

    def add_first(self, channel: str) -> None:
        """Somebody speaks there now."""
        if channel in self._waiting:
            self._waiting.remove(channel)
        self._waiting.insert(0, channel)
        self._wake.set()

    def is_waiting(self, channel: str) -> bool:
        return channel in self._waiting

    async def run(self) -> None:
        """Read until cancelled: whoever speaks later in a channel that nobody knew has it read then."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._report_errors(group))

    async def _report_errors(self, group: asyncio.TaskGroup) -> None:
        try:
            await self._one_after_the_other(group)
        except PlatformError as error:
            self._broke(error)

    async def _one_after_the_other(self, group: asyncio.TaskGroup) -> None:
        while True:
            while self._waiting:
                channel = self._waiting.pop(0)
                try:
                    await self._read(channel)
                except UnreachableError as error:
                    self._failed(channel, error, group)
                else:
                    self._reads += 1
                    self._failures.pop(channel, None)
            self._wake.clear()
            await self._wake.wait()

    def _failed(self, channel: str, error: PlatformError, group: asyncio.TaskGroup) -> None:
        tries = self._failures[channel] = self._failures.get(channel, 0) + 1
        about = {"platform": self._platform, "chat": channel, "reason": str(error)}
        if tries >= MOST_TRIES and self._reads >= len(self._failures):
            log.warning("Not caught up", extra=about)
            self._failures.pop(channel)
            self._give_up(channel)
            return
        pause = pause_after(tries)
        if tries == 1:
            log.warning("Not caught up yet", extra={**about, "again_in": pause})
        group.create_task(self._again(channel, pause))

    async def _again(self, channel: str, pause: float) -> None:
        await asyncio.sleep(pause)
        self.add(channel)


def pause_after(tries: int) -> float:
    """How long to wait after so many that failed."""
    return PAUSES_SECONDS[min(tries, len(PAUSES_SECONDS)) - 1]


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The platform says how long to wait; nobody else is held up by it."""
    while True:
        try:
            return await ask()
        except RateLimitedError as limited:
            await asyncio.sleep(max(limited.retry_after, SHORTEST_WAIT_SECONDS))
