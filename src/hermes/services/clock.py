"""Read the system's clock, behind the port that tests replace."""

from __future__ import annotations

import time


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # CLOCK_BOOTTIME goes on while the machine sleeps, so a suspended process sees its deadlines passed.
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()
