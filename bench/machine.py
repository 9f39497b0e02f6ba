"""What the system knows about processes: CPU, memory, children. Linux only, as the figures are."""

from __future__ import annotations

import os
import time
from pathlib import Path

MEGABYTE = 1_000_000


def cpu_seconds(pid: int) -> float:
    """CPU used so far by all threads of a process, those that ended included, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's name for that process's CPU clock


def tree(pid: int) -> list[int]:
    """The process and all below it that live now."""
    found = [pid]
    for child in _children(pid):
        found.extend(tree(child))
    return found


def resident(pids: list[int]) -> int:
    """Bytes of RSS, added up: pages that two processes share count twice."""
    return sum(_kilobytes(pid, "status", "VmRSS:") for pid in pids) * 1024


def proportional(pids: list[int]) -> int:
    """Bytes of PSS: a shared page counts once, split between its users."""
    return sum(_kilobytes(pid, "smaps_rollup", "Pss:") for pid in pids) * 1024


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        return [int(word) for task in tasks for word in _read(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        return []


def _kilobytes(pid: int, file: str, field: str) -> int:
    try:
        lines = _read(f"/proc/{pid}/{file}").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


def _read(path: str) -> str:
    return Path(path).read_text("ascii", "replace")


def own_pid() -> int:
    return os.getpid()
