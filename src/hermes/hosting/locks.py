"""Decide by flock who runs here: a lock cannot outlive its process.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

from hermes.hosting import paths, processes


class Holder:
    """Who holds a lock, as it wrote itself; ``pid`` 0: unknown. ``restart_signal`` restarts its worker; 0: none."""

    __slots__ = ("is_stopping", "mark", "pid", "restart_signal", "what")

    def __init__(
        self, pid: int = 0, mark: str = "", what: str = "", restart_signal: int = 0, *, is_stopping: bool = False
    ) -> None:
        self.pid = pid
        self.mark = mark
        self.what = what
        self.restart_signal = restart_signal
        self.is_stopping = is_stopping

    def describe(self) -> str:
        """Describe the process: ``another hermes (process 4711: sessions list)``."""
        if not self.pid:
            return "another process"
        command = processes.hermes_command_of(self.pid) if self.is_here() else ""
        return f"another hermes (process {self.pid}: {command or self.what.removeprefix('hermes ')})"

    def how_to_end(self) -> str:
        """Return what to type to end the process; '' where it cannot be seen from here."""
        if not self.is_here():
            return ""
        stopped = "`fg` where it was started, or kill -9" if processes.is_stopped(self.pid) else "kill"
        return f" → {stopped} {self.pid}"

    def is_here(self) -> bool:
        """Tell whether the holder is a visible process of this machine, the same one."""
        return processes.is_alive(self.pid, self.mark)


class Lock:
    """A lock that is held until ``release`` or the end of this process. Children do not inherit it."""

    def __init__(self, descriptor: int, record: dict[str, object]) -> None:
        self._descriptor = descriptor
        self._record = record

    def stopping(self) -> None:
        """Write down that this process is about to end, so that a successor waits for it."""
        if self._descriptor >= 0:
            _write(self._descriptor, {**self._record, "stopping": True})

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def take(path: str, what: str, wait_seconds: float = 0.0, *, restart_signal: int = 0) -> Lock | None:
    """Take the lock and write down who has it, or return None when another holds it after the wait."""
    paths.make_private(os.path.dirname(path))
    deadline = time.monotonic() + wait_seconds
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    while not _flock(descriptor, fcntl.LOCK_EX):
        if time.monotonic() >= deadline:
            os.close(descriptor)
            return None
        time.sleep(0.02)
    record: dict[str, object] = {"pid": os.getpid(), "start": processes.start_mark(os.getpid()), "what": what}
    if restart_signal:
        record["restart_signal"] = restart_signal
    try:
        _write(descriptor, record)
    except OSError:
        os.close(descriptor)
        raise
    return Lock(descriptor, record)


def holder(path: str) -> Holder | None:
    """Who holds the lock now; None when it is free."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two who only ask never see each other.
        if _flock(descriptor, fcntl.LOCK_SH):
            return None
        return _read(os.pread(descriptor, 4096, 0))
    finally:
        os.close(descriptor)


def _write(descriptor: int, record: dict[str, object]) -> None:
    raw = json.dumps(record).encode() + b"\n"
    os.pwrite(descriptor, raw, 0)  # in place: on a full disk a record that was there stays
    os.ftruncate(descriptor, len(raw))


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(raw: bytes) -> Holder:
    try:
        record = json.loads(raw)
        return Holder(
            int(record["pid"]),
            str(record.get("start", "")),
            str(record.get("what", "")),
            int(record.get("restart_signal", 0)),
            is_stopping=record.get("stopping") is True,
        )
    except (ValueError, KeyError, TypeError):
        return Holder()  # just taken, not yet written down
