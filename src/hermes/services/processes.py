"""Process groups of tools: told apart by their birth, so that a reused number is never killed."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def birth_of(pid: int) -> str:
    """The kernel's start time of a process, or '' when it is gone or the system does not tell."""
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
