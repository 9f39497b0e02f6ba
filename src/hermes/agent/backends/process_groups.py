"""Kill process groups of tools, identified by start time, never a reused pid."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from pathlib import Path

log = logging.getLogger(__name__)

GONE_SECONDS = 5.0


def birth_of(pid: int) -> str:
    """Return the kernel's start time of a process, or '' when it is gone or the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold spaces; the start time is the 20th field after it.
    return stat.rpartition(")")[2].split()[19]


def kill_group(group: int, born: str) -> bool:
    """SIGKILL the group if it is still the one that was recorded."""
    if group <= 1 or not born or birth_of(group) != born:
        return False
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.killpg(group, signal.SIGKILL)
    return True


def is_alive(group: int) -> bool:
    """Tell whether a process of the group runs; zombies do not count."""
    if not signal_group(group, 0):
        return False
    if not os.path.isdir("/proc/self"):
        return True
    return any(_group_of(name) == group for name in os.listdir("/proc") if name.isdigit())


def is_running(pid: int) -> bool:
    """Tell whether a process runs; a zombie does not."""
    return _group_of(str(pid)) != 0


def _group_of(pid: str) -> int:
    """Return the group of a process that runs; 0 for one that is dead or gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, _, group = file.read().rpartition(")")[2].split()[:3]
    except (OSError, ValueError):
        return 0
    return 0 if state in "ZX" else int(group)


def descendants(pid: int, *, most: int = 0) -> list[int]:
    """Return a process and all below it, as the kernel lists them; a little more than ``most`` of them at most.

    What a process starts while this looks may be missing: look again.
    """
    found = [pid]
    for each in found:
        if most and len(found) > most:
            break
        with contextlib.suppress(OSError):  # it ended meanwhile
            for task in os.listdir(f"/proc/{each}/task"):
                with open(f"/proc/{each}/task/{task}/children", encoding="ascii") as file:
                    found.extend(int(child) for child in file.read().split())
    return found


def signal_group(group: int, number: int) -> bool:
    """Signal a process group; False when none of its processes is left."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # some of it runs as somebody else, by sudo: the others got the signal
        return True
    return True


async def let_go(process: asyncio.subprocess.Process) -> None:
    """Close the pipes of a killed process and wait for its end.

    Neither ``wait`` nor ``communicate`` does: the one waits for ever while a pipe is full and nobody reads it, the
    other while somebody else holds a pipe, such as a server that left the group.
    """
    feeding = process.stdin.transport if process.stdin is not None else None
    if feeding is not None and (not feeding.is_closing() or feeding.get_write_buffer_size()):
        feeding.abort()  # closing would first write all that is left
    transport = getattr(process, "_transport", None)  # there is no public way to it
    if transport is not None:
        transport.close()
    try:
        async with asyncio.timeout(GONE_SECONDS):
            await process.wait()
    except TimeoutError:
        log.error("Program not ended", extra={"group": process.pid})
