"""Limit the requests of each key, and the wrong keys of each address."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
from collections import deque
from collections.abc import Callable
from dataclasses import field

from aiohttp import web

from hermes.config import ApiConfig
from hermes.core.bounded import MOST_KEYS, BoundedDict, Throttle
from hermes.core.dataclasses import dataclass
from hermes.core.ports import Clock
from hermes.servers.api.errors import ApiError

BURST_SECONDS = 10.0
"""So much of a minute's allowance may come at once."""
MOST_WAITING = 1000
"""Requests of one key that may wait at the same time; the next is refused at once."""
WRONG_KEYS_PER_MINUTE = 30
"""Wrong keys that one address may show at an even pace, a few of them at once. A right key is never refused."""
LOG_SECONDS = 60.0
LOGGED_PER_MINUTE = 60
"""Lines about wrong keys for all addresses together: a crowd must not fill the log."""

log = logging.getLogger(__name__)


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
    """The limits of the configuration of the moment, applied to each key by its id."""

    def __init__(self, config: Callable[[], ApiConfig], clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._paces: dict[str, RequestPace] = {}
        self._slots: dict[str, Slots] = {}

    async def pace(self, key_id: str) -> None:
        """Wait for this key's turn, or refuse."""
        api = self._config()
        if not api.requests_per_minute:
            return
        may_come, seconds = self._paces.setdefault(key_id, RequestPace()).wait(
            self._clock.monotonic(), api.requests_per_minute, api.queue_seconds
        )
        if not may_come:
            raise too_many(f"More than {api.requests_per_minute} requests a minute came with this key.", seconds)
        if seconds:
            await asyncio.sleep(seconds)

    async def take_slot(self, key_id: str) -> Slots:
        """Take one of this key's places among the requests that the agent works on, for ``give_back``."""
        api = self._config()
        slots = self._slots.get(key_id)
        if slots is None:
            slots = self._slots[key_id] = Slots()
        if not await slots.take(api.max_concurrent, api.queue_seconds):
            raise too_many(
                f"As many requests of this key as may be ({api.max_concurrent}) are worked on, and none ended in time.",
                1.0,
            )
        return slots

    def give_back(self, slots: Slots) -> None:
        slots.give_back(self._config().max_concurrent)


@dataclass(slots=True)
class _WrongKeysOfAddress:
    pace: RequestPace = field(default_factory=RequestPace)
    count: int = 0


class WrongKeys:
    """Counts the wrong keys of each address.

    The address is that of the connection, or the client's that a trusted proxy names. Behind any other proxy all
    clients share one address, because anybody can write X-Forwarded-For. A valid key is always accepted, so this locks
    nobody out.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._addresses = BoundedDict[str, _WrongKeysOfAddress](MOST_KEYS)
        self._line_due = Throttle(LOG_SECONDS)
        self._lines = RequestPace()

    def refuse(self, request: web.Request) -> ApiError | None:
        """Count a wrong key. Returns the refusal when too many came from its address."""
        address, now = address_of(request.remote or ""), self._clock.monotonic()
        known = self._addresses.get(address)
        if known is None:
            known = self._addresses[address] = _WrongKeysOfAddress()
        known.count += 1
        if self._line_due.is_due(address, now) and self._lines.wait(now, LOGGED_PER_MINUTE, 0.0)[0]:
            log.warning("API key refused", extra={"address": address, "count": known.count})
            known.count = 0
        may_come, seconds = known.pace.wait(now, WRONG_KEYS_PER_MINUTE, 0.0)
        if may_come:
            return None
        return too_many(
            "Too many wrong API keys came from this address, and this one is wrong too. Check it: hermes api-key list",
            seconds,
        )


def address_of(remote: str) -> str:
    """Return the address to count: for IPv6 the network, since one client has a whole one."""
    try:
        address = ipaddress.ip_address(remote.partition("%")[0])
    except ValueError:
        return remote
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))


def too_many(words: str, retry_after: float) -> ApiError:
    seconds = max(1, math.ceil(retry_after))
    return ApiError(
        429,
        f"{words} Try again in {seconds} s.",
        code="rate_limit_exceeded",
        kind="rate_limit_error",
        headers={"Retry-After": str(seconds)},
    )
