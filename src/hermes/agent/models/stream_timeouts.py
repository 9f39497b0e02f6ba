"""Time out streams with one timer per call, and batch reads when many are open."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

import aiohttp


class Expired(StrEnum):
    IDLE = "idle"
    WHOLE = "whole"


class Watchdog:
    """Close a response that is silent between ``waiting`` and ``awake``, or late; ``expired`` says why."""

    def __init__(self, response: aiohttp.ClientResponse, *, idle: float, ends_at: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._response = response
        self.idle = idle
        self._ends_at = ends_at
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.expired: Expired | None = None
        self._arm()

    def waiting(self) -> None:
        self._since = self._loop.time()

    def awake(self) -> None:
        self._since = None

    def allow(self, idle: float) -> None:
        """From now on this much silence is allowed. A timer that fires before that is over looks again by itself."""
        is_shorter, self.idle = idle < self.idle, idle
        if is_shorter:
            self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self.stop()
        silent_since = self._since if self._since is not None else self._loop.time()
        self._timer = self._loop.call_at(min(silent_since + self.idle, self._ends_at), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        # The loop may call a timer a clock tick early, hence the small allowance.
        if now + 0.001 >= self._ends_at:
            self._expire(Expired.WHOLE)
        elif self._since is not None and now + 0.001 >= self._since + self.idle:
            self._expire(Expired.IDLE)
        else:
            self._arm()

    def _expire(self, why: Expired) -> None:
        self._timer = None
        self.expired = why
        self._response.close()


class ConcurrentStreams:
    """How many streams are open, and so how long each lets its tokens gather before the next read.

    A read costs the same for one token as for ten, and with hundreds of streams reads are all that the process does.
    The first piece is read as it comes. After that a stream waits at most as long as it has been going on, so that a
    short answer is hardly held up, and a lone one never longer than a tenth of a second, at which nobody sees steps;
    with many of them the pause grows to a quarter of a second, still quicker than anybody reads.
    """

    SHARE = 1.0
    LONE_SECONDS = 0.1
    UNHURRIED = 32
    SECONDS_PER_STREAM = 0.00025
    LONGEST_SECONDS = 0.25

    def __init__(self) -> None:
        self.open = 0

    @contextmanager
    def joined(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    def pause_seconds(self, since_first: float) -> float:
        """Return the pause of a stream whose first piece came ``since_first`` seconds ago."""
        lone = min(since_first * self.SHARE, self.LONE_SECONDS)
        if self.open <= self.UNHURRIED:
            return lone
        return max(lone, min(self.open * self.SECONDS_PER_STREAM, self.LONGEST_SECONDS))


async def read_all(content: aiohttp.StreamReader) -> bytes:
    """Read all buffered bytes in one piece, like ``readany``.

    aiohttp takes it out as it came, and asks its parser and the connection after each piece. A provider sends a chunk
    for every token, so that costs more than all else about them. Nothing is read here that ``readany`` would not read.
    There is no public way to it. Where aiohttp is otherwise inside, or a body is empty, its own way is good enough.
    """
    pieces, wait = getattr(content, "_buffer", None), getattr(content, "_wait", None)
    if isinstance(pieces, deque) and wait is not None and content.exception() is None:
        while not pieces and not content.is_eof():
            await wait("readany")
        if len(pieces) > 1:
            whole = b"".join(pieces)
            pieces.clear()
            pieces.append(whole)
    return await content.readany()


def hold_back(response: aiohttp.ClientResponse, seconds: float) -> None:
    """Leave data in the kernel's buffer for a while, so that the reader wakes once for all of it."""
    connection = response.connection
    transport = connection.transport if connection is not None else None
    if isinstance(transport, asyncio.ReadTransport):  # else all has come already
        transport.pause_reading()
        asyncio.get_running_loop().call_later(seconds, transport.resume_reading)
