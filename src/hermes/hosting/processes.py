"""Identify processes by pid and start time, since pids are reused.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

LOOK_SECONDS = 0.02


def start_mark(pid: int) -> str:
    """Return the start time that tells reused pids apart; "" where unknown."""
    fields = stat_fields(pid)
    return fields[19] if fields else ""


def parent_of(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[1]) if fields else 0


def ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and (pid := parent_of(pid)) > 0 and pid not in found:
        found.append(pid)
    return found


def children(pid: int) -> list[int]:
    """Return the processes whose parent is this one, ended ones that nobody waited for among them."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(int(name)) == pid]


def reap_long_ended(seen: set[int]) -> set[int]:
    """Take the ends of children that had ended at the last look (``seen``) too; returns those of this look."""
    ended = {pid for pid in children(os.getpid()) if not is_alive(pid, "")}
    for pid in ended & seen:
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue  # whoever started it was quicker
    return ended - seen


def is_alive(pid: int, mark: str) -> bool:
    """Tell whether this very process still runs; a zombie does not."""
    if pid <= 0:
        return False
    if not os.path.isdir("/proc/self"):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in ("Z", "X") and mark in ("", fields[19])


def is_stopped(pid: int) -> bool:
    """Tell whether the process is suspended (Ctrl+Z, SIGSTOP)."""
    fields = stat_fields(pid)
    return bool(fields) and fields[0] in ("T", "t")


def hermes_command_of(pid: int) -> str:
    """Return the command and verb that started a process; '' where unknown."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")
    except OSError:
        return ""
    names = [os.path.basename(word) for word in words]
    if "hermes" not in names:
        return ""
    typed = [word for word in words[names.index("hermes") + 1 :] if word]
    shown = typed[:1] if typed[:1] == ["-z"] else typed[:2]  # what was asked is nobody's business
    return " ".join(word for word in shown if word.isprintable())[:80] or "chat"


def wait_until_gone(pid: int, mark: str, seconds: float) -> bool:
    return wait_until(lambda: not is_alive(pid, mark), seconds)


def wait_until(ask: Callable[[], bool], seconds: float) -> bool:
    """Ask again and again until it is so; False when it was not in this time."""
    deadline = time.monotonic() + seconds
    while not ask():
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def send_signal(pid: int, mark: str, number: int) -> bool:
    """Signal this very process; False when it is gone or not ours."""
    if not is_alive(pid, mark):
        return False
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def started_at(pid: int) -> float:
    """Return when a process began, in epoch seconds; now where unknown."""
    mark = start_mark(pid)
    if not mark:
        return time.time()
    return time.time() - since_boot() + int(mark) / os.sysconf("SC_CLK_TCK")


def since_boot() -> float:
    """Return the seconds since the machine started, as start marks count them; any clock that goes on elsewhere."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def open_files() -> int:
    """Count our own descriptors; 0 where the system does not list them."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def rename_process(name: str) -> None:
    """Set the process name that `ps` and `ss` show; the system keeps 15 bytes, and some systems none."""
    prctl(PR_SET_NAME, name.encode("ascii"))


PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int | bytes) -> bool:
    """Change a property of this process; False where the system does not know it.

    By the bare `_ctypes`: the package around it would cost every start three milliseconds.
    """
    try:
        import _ctypes

        program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: what is loaded already
        address = _ctypes.dlsym(program, "prctl")
        return bool(_ctypes.call_function(address, (option, value, 0, 0, 0)) == 0)
    except AttributeError:  # a Python that has renamed its inner parts
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError):
        return False


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent ends: none leaves our family by forking twice."""
    return prctl(PR_SET_CHILD_SUBREAPER, 1)


def hide_memory() -> bool:
    """Close our memory, environment and descriptors to other processes of the same user. No core is dumped either."""
    return prctl(PR_SET_DUMPABLE, 0)


def booted_at() -> float:
    """Return when the machine started, in epoch seconds; 0 where unknown."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            for line in file:
                if line.startswith("btime "):
                    return float(line.split()[1])
    except OSError:
        return 0.0
    return 0.0


def stat_fields(pid: int) -> list[str]:
    """Return the fields of /proc/<pid>/stat after the name, which may itself hold spaces and brackets."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []
