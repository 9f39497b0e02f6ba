"""A real supervisor with a stand-in worker, and the questions that tests ask about the two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hermes.hosting import heartbeat, paths, processes
from hermes.hosting.control import client as control

ROOT = Path(__file__).parents[2]
STAND_IN = Path(__file__).parent / "workers" / "stand_in.py"
T = TypeVar("T")


def until(ask: Callable[[], T], seconds: float = 20.0) -> T:
    """Ask until the answer is yes; the answer."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not so within {seconds} s: {ask!r}")
        time.sleep(0.01)
    return answer


class Kept:
    """``with Kept(home, "steady") as kept:`` a supervisor of its own, ended with the block."""

    def __init__(
        self,
        home: Path,
        *modes: str,
        options: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
        python: str = sys.executable,
    ) -> None:
        """``python`` runs the worker."""
        self.home = home
        self._environ = environ or {}
        self._command = [sys.executable, "-P", "-m", "hermes", "supervisor", *options, "--"]
        self._command += [python, str(STAND_IN), *modes]

    def __enter__(self) -> Self:
        environ = {**os.environ, **self._environ, "HERMES_HOME": str(self.home), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        self.process = subprocess.Popen(
            self._command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        seen = self.beat()
        is_ours = seen is not None and processes.parent_of(seen.pid) == self.process.pid
        mark = processes.start_mark(seen.pid) if seen else ""
        self.process.kill()
        self.process.wait(20)
        if seen and is_ours and not processes.wait_until_gone(seen.pid, mark, 2):
            processes.send_signal(seen.pid, mark, signal.SIGKILL)
        if self.process.stdout:
            self.process.stdout.close()

    def beat(self) -> heartbeat.Beat | None:
        return heartbeat.read(paths.heartbeat(str(self.home)))

    def worker(self, other_than: int = 0) -> int:
        """The pid of a worker that is ready and answers, once there is one."""

        def ask() -> int:
            seen = self.beat()
            if seen is None or not seen.ready_at or seen.pid == other_than or not processes.is_alive(seen.pid, ""):
                return 0
            return seen.pid

        return until(ask, 25.0)

    def lives(self) -> list[str]:
        file = self.home / "lives"
        return file.read_text().splitlines() if file.exists() else []

    def call(self, verb: str, timeout: float = 5.0) -> object:
        return control.call(self.home, verb, timeout=timeout)

    def output(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.read()
