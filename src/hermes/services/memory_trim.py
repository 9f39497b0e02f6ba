"""Give memory back after a load: garbage cycles, caches of the store, and malloc's free pages.

Requests leave buffers of every size behind, which live for different times. malloc keeps the holes between them for the
next request, and pages of holes add up; objects that refer to each other wait for the garbage collector; every reader
of the store fills a cache of its own, some only when requests overlap. None of these is a leak, and none ends by itself
while the load changes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

WORK_SECONDS = 1.0
"""CPU that the process must have used before there is anything to give back."""
CALM_SECONDS = 0.25
"""CPU between two looks below which nobody is kept waiting by a look at every object."""
MAX_WAIT_SECONDS = 60.0
"""So long a load without a pause may last; then only the youngest objects are looked at."""
SAME_LOAD_SECONDS = 15.0
"""Work that begins this soon after a trim belongs to the same load. The load has ended when the process was calm for as
long; then its memory is trimmed once, however little it used. A trim in every pause would cost more than it saves."""


class MemoryTrim:
    """``look`` is called every few seconds; an idle process pays for reading a clock."""

    def __init__(
        self,
        cpu: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
        release: Callable[[], None] | None = None,
        free_caches: Callable[[], None] = lambda: None,
    ) -> None:
        """``free_caches`` is called in calm moments only: a load would fill the caches again."""
        self._cpu = cpu
        self._now = now
        self._release = release or release_free_pages
        self._free_caches = free_caches
        self._is_within_load = False
        self._cpu_at_trim = cpu()
        self._cpu_at_look = self._cpu_at_trim
        self._trimmed_at = self._busy_at = now()

    async def look(self) -> bool:
        """Trim after work, in the first calm moment or once a minute. Returns whether it did."""
        cpu = self._cpu()
        worked, is_calm = cpu - self._cpu_at_trim, cpu - self._cpu_at_look < CALM_SECONDS
        self._cpu_at_look = cpu
        now = self._now()
        since_trim = now - self._trimmed_at
        if not is_calm:
            self._busy_at = now
            self._is_within_load |= since_trim <= SAME_LOAD_SECONDS
        has_ended = self._is_within_load and now - self._busy_at >= SAME_LOAD_SECONDS
        if worked < WORK_SECONDS and not has_ended:
            return False
        if not is_calm and since_trim < MAX_WAIT_SECONDS:
            return False
        gc.collect() if is_calm else gc.collect(1)  # here, since what is freed may belong to the loop
        await asyncio.to_thread(self._give_back, is_calm)
        self._cpu_at_trim = self._cpu_at_look = self._cpu()
        self._trimmed_at = self._now()
        self._is_within_load = not is_calm
        return True

    def _give_back(self, is_calm: bool) -> None:
        if is_calm:
            self._free_caches()
        self._release()


def release_free_pages() -> None:
    """Return malloc's free pages to the system, in a millisecond or two; where malloc is not glibc's, do nothing."""
    import ctypes  # not at the start: only a process that has worked comes here

    try:
        trim = ctypes.CDLL(None).malloc_trim
    except AttributeError:
        return
    trim(0)
