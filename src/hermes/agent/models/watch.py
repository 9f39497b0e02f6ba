"""One timer per call instead of one per chunk: deadlines that cost nothing while tokens flow."""

from __future__ import annotations

import asyncio
from enum import StrEnum

import aiohttp


class Expired(StrEnum):
    IDLE = "idle"
    WHOLE = "whole"


class Watchdog:
    """Closes a response that stays silent for too long, or that goes on past its deadline.

    Only waiting counts as silence (``waiting`` … ``awake``): a reader that is slow itself is not the provider's fault.
    ``expired`` says why the response was closed.
    """

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
        """From now on this much silence is allowed."""
        self.idle = idle
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
