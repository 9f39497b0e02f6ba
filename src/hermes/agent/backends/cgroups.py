"""Limit a command with its own cgroup, if the gateway may create cgroups.

systemd gives it with ``Delegate=yes`` in the unit. Then the kernel counts processes and memory of a command as a whole,
and ends all of it at once. Everywhere else ``limits`` counts, a few times per second.
"""

from __future__ import annotations

import contextlib
import logging
import os
from functools import cache
from pathlib import Path

from hermes.agent.backends.limits import CommandLimits
from hermes.agent.backends.process_groups import descendants
from hermes.store.ids import new_id

log = logging.getLogger(__name__)

ROOTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
CONTROLLERS = ("memory", "pids")
OWN = "gateway"  # where our own processes go: a cgroup with processes cannot be divided
PREFIX = "command-"


@cache
def delegated() -> Path | None:
    """Return the cgroup that the gateway may divide; None if there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    path = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), None)
    root = next((Path(name) for name in ROOTS if Path(name, "cgroup.controllers").exists()), None)
    if path is None or root is None:
        return None
    own = root / path
    # DelegateSubgroup= puts us one level below the unit.
    found = next((each for each in (own, own.parent) if _is_ours(each)), None)
    try:
        return found if found is not None and divide(found) else None
    except OSError as error:
        log.warning("Cgroup not usable", extra={"cgroup": str(found), "reason": str(error)})
        return None


def _is_ours(folder: Path) -> bool:
    """Tell whether systemd has delegated this cgroup; no other one is ours."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(folder, name) == b"1":
                return os.access(folder / "cgroup.procs", os.W_OK)
    return False


def divide(folder: Path) -> bool:
    """Enable the controllers below a cgroup; our own processes move below it first."""
    if set(CONTROLLERS) - set((folder / "cgroup.controllers").read_text(encoding="ascii").split()):
        return False
    if not set(CONTROLLERS) - set((folder / "cgroup.subtree_control").read_text(encoding="ascii").split()):
        return True
    members = {int(pid) for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
    if members - set(descendants(os.getppid())):
        return False  # somebody else's processes are in it
    if members:
        (folder / OWN).mkdir(exist_ok=True)
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                (folder / OWN / "cgroup.procs").write_text(str(pid), encoding="ascii")
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS), encoding="ascii")
    return True


def enter(folder: Path, pid: int, limits: CommandLimits) -> Path | None:
    """Put a waiting process into its own cgroup; None, and a log line, on failure."""
    group = folder / f"{PREFIX}{new_id('c')}"
    try:
        group.mkdir()
        if limits.processes:
            (group / "pids.max").write_text(str(limits.processes), encoding="ascii")
        if limits.memory:
            (group / "memory.max").write_text(str(limits.memory), encoding="ascii")
            for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                with contextlib.suppress(FileNotFoundError, PermissionError):  # not known to every kernel
                    (group / name).write_text(value, encoding="ascii")
        (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
    except OSError as error:
        log.warning("Command without a cgroup", extra={"reason": str(error)})
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def leave(group: Path) -> None:
    """Kill the processes left in a cgroup, and remove it."""
    with contextlib.suppress(FileNotFoundError, PermissionError):  # before Linux 5.14 there is none
        (group / "cgroup.kill").write_text("1", encoding="ascii")
    try:
        group.rmdir()
    except OSError as error:  # the last process is still on its way out; the next start of a command removes it
        log.debug("Cgroup not removed", extra={"cgroup": str(group), "reason": str(error)})


def sweep(folder: Path) -> None:
    """Remove the cgroups of commands that have ended."""
    for group in folder.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use
            group.rmdir()
