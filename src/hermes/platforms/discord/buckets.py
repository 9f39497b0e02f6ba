"""Order callers who wait for a rate limit bucket of Discord."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

import aiohttp
from discord import RateLimited
from discord.http import Ratelimit

SHORT_SECONDS = 1.0
"""A wait that is over sooner is waited here; a longer one is told, so that others go first."""


class Bucket(Ratelimit):
    """The SDK's own waits after a call that used the last place, before it returns: a message that is shown already
    would count as unknown meanwhile. And it refuses a call although there are places left, when the window is long."""

    __slots__ = ("_dated",)

    def __init__(self, dated: Callable[[str | None], None] = lambda _: None) -> None:
        """``dated`` is told the date of each answer."""
        super().__init__(None)
        self._dated = dated

    def update(self, response: aiohttp.ClientResponse, *, use_clock: bool = False) -> None:
        super().update(response, use_clock=use_clock)
        self._dated(response.headers.get("Date"))

    async def acquire(self) -> None:
        wait = self._until_free()
        if self.remaining <= 0 and wait > SHORT_SECONDS:
            raise RateLimited(wait)
        await super().acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.outgoing -= 1
        if self.expires is None and self.remaining <= self.outgoing:
            # Discord did not say how often: one after the other.
            self.reset()  # type: ignore[no-untyped-call] # the SDK gives no types
        if (free := self.remaining - self.outgoing) > 0:
            self._wake(free)

    async def _refresh(self) -> None:
        """Called by whoever waits; the SDK would wait for a whole window again."""
        async with self._sleeping:
            await asyncio.sleep(self._until_free())
        self.reset()  # type: ignore[no-untyped-call] # the SDK gives no types
        self._wake(self.remaining)

    def _until_free(self) -> float:
        return max(0.0, self.expires - self._loop.time()) if self.expires is not None else 0.0
