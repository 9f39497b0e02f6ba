"""Limits for each key: who asks too much waits a while, and is then told when to come again."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable

from hermes.config import ApiConfig
from hermes.core.ports import Clock
from hermes.servers.api.errors import ApiError

BURST_SECONDS = 10.0
"""So much of a minute's allowance may come at once."""
MOST_WAITING = 1000
"""Requests of one key that may wait at the same time; the next is refused at once."""


class RequestPace:
    """How fast one key may ask. Keeps one number: when the next request would be due at an even pace."""

    def __init__(self) -> None:
        self._due = 0.0

    def wait(self, now: float, per_minute: int, longest: float) -> tuple[bool, float]:
        """Whether a request may come, and after how many seconds; if not, when it is worth trying again."""
        step = 60.0 / per_minute
        burst = max(0.0, BURST_SECONDS - step)
        due = max(self._due, now)
        pause = max(0.0, due - burst - now)
        if pause > longest:
            return False, pause - longest
        self._due = due + step
        return True, pause


class Slots:
    """How many requests of one key are worked on at once; the rest wait in the order they came."""

    def __init__(self) -> None:
        self.in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def take(self, most: int, seconds: float) -> bool:
        """Take a slot, waiting at most so long; False when none became free."""
        if self.in_use < most and not self._waiting:
            self.in_use += 1
            return True
        if self.waiting >= MOST_WAITING:
            return False
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self._hand_on()  # it was given to us just as we left
            elif mine in self._waiting:
                self._waiting.remove(mine)
            if isinstance(error, TimeoutError):
                return False
            raise
        return True

    def give_back(self, most: int) -> None:
        if self.in_use > most:  # the limit was lowered meanwhile
            self.in_use -= 1
        else:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            heir = self._waiting.popleft()
            if not heir.done():
                heir.set_result(None)
                return
        self.in_use -= 1


class RateLimits:
    """The limits of the configuration of the moment, applied to each key by its name."""

    def __init__(self, config: Callable[[], ApiConfig], clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._paces: dict[str, RequestPace] = {}
        self._slots: dict[str, Slots] = {}

    async def pace(self, name: str) -> None:
        """Wait for this key's turn, or refuse."""
        api = self._config()
        if not api.requests_per_minute:
            return
        may_come, seconds = self._paces.setdefault(name, RequestPace()).wait(
            self._clock.monotonic(), api.requests_per_minute, api.queue_seconds
        )
        if not may_come:
            raise too_many(f"More than {api.requests_per_minute} requests a minute came with this key.", seconds)
        if seconds:
            await asyncio.sleep(seconds)

    async def take_slot(self, name: str) -> Slots:
        """Take one of this key's places among the requests that the agent works on, for ``give_back``."""
        api = self._config()
        slots = self._slots.get(name)
        if slots is None:
            slots = self._slots[name] = Slots()
        if not await slots.take(api.max_concurrent, api.queue_seconds):
            raise too_many(
                f"As many requests of this key as may be ({api.max_concurrent}) are worked on, and none ended in time.",
                1.0,
            )
        return slots

    def give_back(self, slots: Slots) -> None:
        slots.give_back(self._config().max_concurrent)


def too_many(words: str, retry_after: float) -> ApiError:
    seconds = max(1, math.ceil(retry_after))
    return ApiError(
        429,
        f"{words} Try again in {seconds} s.",
        code="rate_limit_exceeded",
        kind="rate_limit_error",
        headers={"Retry-After": str(seconds)},
    )
