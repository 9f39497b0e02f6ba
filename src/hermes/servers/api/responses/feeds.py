"""The events of streamed responses, kept in memory so that a client that lost its stream can go on reading.

What is no longer here is told anew from the store, with numbers that go on where the client left off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from hermes.core.bounded import BoundedDict

MAX_FEEDS = 500
MAX_FEED_BYTES = 2 * 1024 * 1024
MAX_BYTES = 16 * 1024 * 1024


class ResponseFeed:
    """The events of one response; each one's place is its sequence number."""

    def __init__(self, on_growth: Callable[[int], None] = lambda _: None) -> None:
        self._on_growth = on_growth
        self.events: list[bytes] = []
        self.size = 0
        self.is_over = False
        self.is_cut = False
        """It became too long, so that it ends before the response does."""
        self._changed = asyncio.Event()

    def add(self, events: Sequence[bytes]) -> None:
        """Add events that belong together."""
        size = sum(map(len, events))
        if self.is_cut or self.size + size > MAX_FEED_BYTES:
            self.cut()
            return
        self.events.extend(events)
        self.size += size
        self._changed.set()
        self._on_growth(size)

    def cut(self) -> None:
        self.is_cut = True
        self.end()

    def end(self) -> None:
        self.is_over = True
        self._changed.set()

    async def after(self, number: int, keep_alive_seconds: float) -> AsyncIterator[bytes]:
        """Every event behind this number until the feed is over; b"" is a pause in which nothing came."""
        index = number + 1
        while True:
            while index < len(self.events):
                yield self.events[index]
                index += 1
            if self.is_over:
                return
            self._changed.clear()
            try:
                async with asyncio.timeout(keep_alive_seconds):
                    await self._changed.wait()
            except TimeoutError:
                yield b""


class ResponseFeeds:
    def __init__(self) -> None:
        self._feeds = BoundedDict[str, ResponseFeed](MAX_FEEDS)
        self._size = 0

    def open(self, response_id: str) -> ResponseFeed:
        if len(self._feeds) >= MAX_FEEDS:
            self._drop_oldest()
        feed = self._feeds[response_id] = ResponseFeed(self._grew)
        return feed

    def find(self, response_id: str) -> ResponseFeed | None:
        """The feed of a response, unless a part of it had to go."""
        feed = self._feeds.get(response_id)
        return None if feed is None or feed.is_cut else feed

    def _grew(self, by: int) -> None:
        self._size += by
        while self._size > MAX_BYTES and self._feeds:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, oldest = self._feeds.popitem(last=False)
        self._size -= oldest.size
        oldest.cut()
