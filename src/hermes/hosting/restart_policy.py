"""Decide when and how an ended worker is restarted. Pure rules.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

STOP_ASKED = 0
RESTART_ASKED = 75
CONFIGURATION = 78

SETTLING_SECONDS = 10.0  # a worker that lives so long after it was ready started cleanly
WINDOW_SECONDS = 300.0
LIMIT = 3
MAX_PAUSE_SECONDS = 60.0
REMEMBERED_SECONDS = 3600.0
MAX_REMEMBERED = 200  # a worker that is killed at once each time would fill the record

# Sent by people, shells and service managers; a program that fails by itself ends by others.
FROM_OUTSIDE = frozenset({1, 2, 3, 9, 15})


class WorkerExit:
    """How a worker ended. ``signal`` 0: it exited with ``code``. ``ready_seconds`` None: it never was ready.

    A worker that was started with platforms paused is ready from the moment on which it resumed them;
    ``were_paused``: it ended before that.
    """

    __slots__ = ("code", "out_of_memory", "ready_seconds", "settled", "signal", "stalled_seconds", "were_paused")

    def __init__(
        self,
        *,
        code: int = 0,
        signal: int = 0,
        ready_seconds: float | None = None,
        settled: bool = False,
        out_of_memory: bool = False,
        stalled_seconds: float = 0.0,
        were_paused: bool = False,
    ) -> None:
        self.code = code
        self.signal = signal
        self.ready_seconds = ready_seconds
        self.settled = settled
        self.out_of_memory = out_of_memory
        self.stalled_seconds = stalled_seconds
        self.were_paused = were_paused

    @property
    def by_itself(self) -> bool:
        """Not by our wish and not by somebody's signal."""
        if self.signal:
            return self.signal not in FROM_OUTSIDE or self.out_of_memory or self.stalled_seconds > 0
        return self.code not in (STOP_ASKED, RESTART_ASKED, CONFIGURATION)

    @property
    def was_unclean_start(self) -> bool:
        if not self.by_itself:
            return False
        return self.ready_seconds is None or (self.ready_seconds < SETTLING_SECONDS and not self.settled)

    @property
    def was_settled_start(self) -> bool:
        """Tell whether this worker proved, with its platforms on, that a start works."""
        if self.ready_seconds is None or self.were_paused:
            return False
        return self.ready_seconds >= SETTLING_SECONDS or self.settled

    @property
    def kind(self) -> str:
        """Classify the exit in one word for `gateway status`."""
        if self.stalled_seconds > 0:
            return "stalled"
        if self.out_of_memory:
            return "memory"
        if self.signal:
            return "crashed" if self.by_itself else "killed"
        return {STOP_ASKED: "asked", RESTART_ASKED: "restart", CONFIGURATION: "configuration"}.get(self.code, "crashed")

    def describe(self) -> str:
        if self.stalled_seconds > 0:
            return f"its heart had stopped for {self.stalled_seconds:.0f} s"
        if self.out_of_memory:
            return f"killed by signal {self.signal}, out of memory"
        if self.signal:
            return f"killed by signal {self.signal}"
        if self.code == STOP_ASKED:
            return "stopped as asked"
        if self.code == RESTART_ASKED:
            return "restart asked"
        return f"ended with exit code {self.code}"


class RestartPolicy:
    """Count unclean starts: the pause before the next, and safe mode. A settled or requested start clears it."""

    def __init__(self) -> None:
        self._unclean: list[float] = []
        self._unasked: list[float] = []

    def note(self, ended: WorkerExit, now: float) -> None:
        if ended.kind == "restart":
            self.forget()
        elif ended.was_settled_start:
            self._unclean.clear()
        if ended.was_unclean_start:
            self._unclean.append(now)
        if ended.kind not in ("asked", "restart", "configuration"):
            self._unasked.append(now)
        self._unclean = [at for at in self._unclean if now - at < WINDOW_SECONDS]
        self._unasked = [at for at in self._unasked if now - at < REMEMBERED_SECONDS][-MAX_REMEMBERED:]

    def forget(self) -> None:
        """Start afresh: a person asked for a restart."""
        self._unclean.clear()
        self._unasked.clear()

    def ages(self, now: float) -> list[float]:
        """Return the ages of unasked exits in the last hour, the oldest first."""
        return [now - at for at in self._unasked]

    def count(self, now: float) -> int:
        return sum(now - at < WINDOW_SECONDS for at in self._unclean)

    def is_looping(self, now: float) -> bool:
        return self.count(now) >= LIMIT

    def pause_seconds(self, ended: WorkerExit, now: float) -> float:
        """None at all, unless the start itself went wrong; then longer each time."""
        if not ended.was_unclean_start:
            return 0.0
        pause: float = 0.25 * 2 ** min(self.count(now) - 1, 10)
        return min(MAX_PAUSE_SECONDS, pause)
