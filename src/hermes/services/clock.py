"""Read the system's clock; keep its jumps from expiring what waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hermes.core.ports import Clock

JUMP_SECONDS = 1.0
"""Less is a clock that is being adjusted, not set."""
LONG_JUMP_SECONDS = 7 * 86400.0
DOUBT_SECONDS = 86400.0
"""After a long jump the clock may be wrong: for this long nothing is deleted for its age."""


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # CLOCK_BOOTTIME goes on while the machine sleeps, so a suspended process sees its deadlines passed.
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


class WrongClock(SystemClock):
    """A test aid for the chaos suite: the clock of a machine that is set wrong by so many seconds."""

    def __init__(self, ahead: float) -> None:
        self._ahead = ahead

    def now(self) -> float:
        return time.time() + self._ahead


def clock_from(environ: Mapping[str, str]) -> SystemClock:
    """The system's clock; ``HERMES_TEST_CLOCK_AHEAD=SECONDS`` sets it wrong."""
    ahead = environ.get("HERMES_TEST_CLOCK_AHEAD", "")
    return WrongClock(float(ahead)) if ahead else SystemClock()


class SteadyClock:
    """A clock that does not jump before the stored deadlines have moved with it.

    When the system's clock is set, or the machine was asleep, ``now`` goes on at the pace of time as it passed for this
    process. The janitor moves the deadlines by ``jump`` and then calls ``accept``: from then on ``now`` is the system's
    time again. So nothing expires because of a jump, and nothing waits for a time that comes twice.
    """

    def __init__(self, clock: Clock, awake: Callable[[], float] | None = None) -> None:
        """``awake`` counts seconds; a counter that stops during suspend turns each suspend into a jump."""
        self._clock = clock
        self._ahead = 0.0
        self._awake = awake or clock.monotonic
        self._offset = clock.now() - self._awake()
        self._doubtful_until = clock.monotonic()
        self._asleep = clock.monotonic() - self._awake()

    def now(self) -> float:
        system, steady = self._clock.now() + self._ahead, self._awake() + self._offset
        if abs(system - steady) >= JUMP_SECONDS:
            return steady
        self._offset += system - steady
        return system

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def jump(self) -> float:
        """Return the seconds that the system's clock is ahead of ``now`` (negative: behind); 0: no jump."""
        ahead = self._clock.now() + self._ahead - (self._awake() + self._offset)
        return ahead if abs(ahead) >= JUMP_SECONDS else 0.0

    def system_time(self) -> float:
        """The machine's own time, right or wrong."""
        return self._clock.now()

    def follow(self, ahead: float) -> None:
        """Show the time of a clock that is so many seconds ahead of the machine's: the one that several nodes share."""
        self._ahead = ahead
        self._offset = self._clock.now() + ahead - self._awake()

    def slept(self) -> float:
        """Return how much of ``jump`` the machine has slept; the rest is a clock that was set."""
        return self._clock.monotonic() - self._awake() - self._asleep

    def accept(self, jump: float) -> None:
        self._offset += jump
        self._asleep = self._clock.monotonic() - self._awake()
        if jump > LONG_JUMP_SECONDS:
            self._doubtful_until = self._clock.monotonic() + DOUBT_SECONDS

    @property
    def is_doubtful(self) -> bool:
        """Whether the clock went so far ahead lately that it may be wrong."""
        return self._clock.monotonic() < self._doubtful_until


def steady_clock(clock: Clock) -> SteadyClock:
    return SteadyClock(clock, time.monotonic if isinstance(clock, SystemClock) else None)
