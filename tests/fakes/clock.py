"""Time that moves when a test says so."""

from __future__ import annotations

from datetime import UTC, datetime

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC).timestamp()  # a Monday noon, far from midnight and DST


class FakeClock:
    """A ``hermes.core.ports.Clock``. Both times move together with ``advance``; ``jump`` moves the wall clock alone."""

    def __init__(self, now: float = START) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("Time does not run backwards; jump() moves the wall clock alone")
        self._now += seconds
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """The system's clock was set, as by NTP or a person; monotonic time knows nothing of it."""
        self._now += seconds
