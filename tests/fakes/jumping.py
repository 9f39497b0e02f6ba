"""A day in seconds: an event loop whose clock stands still while anything is done, and jumps when all wait for time.

Sockets are real, and both of their ends are in this loop, so whatever was sent is there to be read: when nothing can be
read and no thread is at work, nothing will happen before the next timer. Then it is that time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hermes.store.db import Database, Job
from tests.fakes.clock import START

T = TypeVar("T")
QUIET_GRAIN = 15.0
_THREADS_SECONDS = 1.0  # real ones; a thread that is done wakes the loop at once


class _Jumps:
    """A selector that asks the loop to jump where it would have had to wait."""

    def __init__(self, loop: JumpingLoop) -> None:
        self._real = selectors.DefaultSelector()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = self._real.select(0)
        if ready or timeout == 0:
            return ready
        if self._loop.threads_at_work or timeout is None:
            return self._real.select(_THREADS_SECONDS)
        self._loop.jump(timeout)
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class JumpingLoop(asyncio.SelectorEventLoop):
    """``threads_at_work`` counts what is done beside it: by executors, and by each store that it watches.

    ``grain``: it jumps no less than so many seconds, so that whatever is looked at every second costs little while
    nothing happens for hours. Timers are then late by up to that much, as they are on a machine that is busy.
    """

    def __init__(self) -> None:
        self._at = 1000.0
        self.grain = 0.0
        self.jumps = 0
        self.threads_at_work = 0
        super().__init__(_Jumps(self))  # type: ignore[arg-type]

    def time(self) -> float:
        return self._at

    def jump(self, seconds: float) -> None:
        self.jumps += 1
        self._at += max(seconds, self.grain)

    async def sleep(self, seconds: float) -> None:
        """Nothing happens for so long."""
        self.grain = QUIET_GRAIN
        try:
            await asyncio.sleep(seconds - QUIET_GRAIN)
        finally:
            self.grain = 0.0

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        return self._counted(super().run_in_executor(executor, func, *args))

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads in real time: from Python 3.12 on, ``timeout`` would be over at the next jump."""
        self.threads_at_work += 1
        try:
            await super().shutdown_default_executor()
        finally:
            self.threads_at_work -= 1

    def _counted(self, future: asyncio.Future[T]) -> asyncio.Future[T]:
        self.threads_at_work += 1
        future.add_done_callback(self._done)
        return future

    def _done(self, _: asyncio.Future[Any]) -> None:
        self.threads_at_work -= 1

    def watch(self, db: Database) -> None:
        """Count the work of the store's own threads too."""
        submit = db._submit

        def counted(job: Job[Any]) -> None:
            self._counted(job.future)
            submit(job)

        db._submit = counted  # type: ignore[method-assign]


class LoopClock:
    """The gateway's and the fake's clock: the loop's own time, from a Monday noon on."""

    def __init__(self, loop: JumpingLoop) -> None:
        self._loop = loop
        self._began = loop.time()

    def now(self) -> float:
        return START + self._loop.time() - self._began

    def monotonic(self) -> float:
        return self._loop.time()


def run_in_jumps(main: Callable[[JumpingLoop, LoopClock], Coroutine[Any, Any, T]]) -> T:
    loop = JumpingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop, LoopClock(loop)))
