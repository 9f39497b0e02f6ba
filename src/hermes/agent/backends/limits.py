"""Limit what a sandboxed command may use: processes, memory, CPU time, disk.

The kernel's own limits (setrlimit) hold for each process of a command; ``LimitWatch`` adds up all of them a few times
per second and ends the command that uses more than it may. Where the gateway has a cgroup of its own to divide, the
kernel adds up as well (``cgroups``).
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import resource
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from hermes.agent.backends.process_groups import descendants
from hermes.config.agent_settings import LimitsConfig
from hermes.core.dataclasses import dataclass

MB = 1024 * 1024
LOOK_SECONDS = 0.15
OWN_PROCESSES = 8  # our shells and the sandbox's own, which are no part of what a person started
NICE = 10  # the gateway answers first
OOM_SCORE = 900  # and lives longest: of 1000
DATA_TO_MEMORY = 2  # what one process may reserve, in proportion to what all of them may use
MEMORY_SHARE = 0.75  # of the machine, at most, whatever the settings say
LOW_MEMORY_SHARE = 0.03
LOW_DISK_BYTES = 100 * MB
WARN_SHARE = 0.8
SMALLEST_FILE = 1024  # an empty file takes an inode
FRESH_SECONDS = 30.0
WALK_SHARE = 0.05  # of the time may go into measuring a workspace
WALK_SECONDS = 5.0
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """The limits of one command; 0 is no limit.

    ``workspace`` limits all files of the workspace together.
    """

    processes: int = 0
    memory: int = 0
    cpu_seconds: int = 0
    file: int = 0
    tmp: int = 0
    workspace: int = 0


def limits_of(config: LimitsConfig, *, is_owner: bool = False) -> CommandLimits:
    """Return the limits of a command.

    The owner's commands get what the machine can give: builds need it.
    """
    most = int(total_memory() * MEMORY_SHARE)
    if is_owner:
        processes = config.processes * 8
        return CommandLimits(processes, most, tmp=config.tmp_mb * MB)
    memory = min(config.memory_mb * MB, most) if config.memory_mb and most else config.memory_mb * MB
    return CommandLimits(
        config.processes,
        memory,
        math.ceil(config.cpu_seconds),
        config.file_mb * MB,
        config.tmp_mb * MB,
        config.workspace_mb * MB,
    )


def apply(pid: int, limits: CommandLimits, *, is_full: bool = False) -> None:
    """Limit a process that waits for its start, and with it all that it will start.

    ``is_full``: the workspace is at its quota; files can be removed, and none can grow.
    """
    wanted = {
        resource.RLIMIT_DATA: limits.memory * DATA_TO_MEMORY,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_FSIZE: limits.file,
    }
    with contextlib.suppress(ProcessLookupError):  # it was killed meanwhile
        for kind, most in wanted.items():
            if most or (is_full and kind == resource.RLIMIT_FSIZE):
                _, hard = resource.prlimit(pid, kind)
                value = 0 if is_full and kind == resource.RLIMIT_FSIZE else most
                value = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.prlimit(pid, kind, (value, value))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        os.setpriority(os.PRIO_PROCESS, pid, NICE)
        with contextlib.suppress(FileNotFoundError, PermissionError):  # no /proc, or none to write
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(OOM_SCORE), encoding="ascii")


def is_counted_per_namespace() -> bool:
    """Tell whether RLIMIT_NPROC counts within one user namespace.

    It does since Linux 5.14, and never for root.
    """
    release = os.uname().release.split(".")
    is_new = release[0].isdigit() and release[1].isdigit() and (int(release[0]), int(release[1])) >= (5, 14)
    return is_new and os.getuid() != 0


def threads_of_user() -> int:
    """Count the threads of this user, as RLIMIT_NPROC does."""
    found, user = 0, os.getuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                found += int(Path(f"/proc/{name}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[17])
    return found


def total_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * PAGE


def _available_memory() -> int:
    """Return what the machine can still give; its whole memory where it does not say."""
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return total_memory()


class WorkspaceQuota:
    """The sizes of workspaces. Measuring reads the whole tree, so results are kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[float, int, int]] = {}  # when, bytes, free bytes of the disk then

    def used(self, folder: Path, most: int) -> int:
        """Return the bytes of a workspace: measured now, or lately if still valid."""
        free = free_bytes(folder)
        with self._lock:
            known = self._known.get(folder)
        if known is not None:
            when, used, was_free = known
            is_fresh = time.monotonic() - when < FRESH_SECONDS and abs(was_free - free) < most // 20
            if is_fresh and used < most * WARN_SHARE:  # near the bound, what was removed counts at once
                return used
        return self.measure(folder)

    def measure(self, folder: Path) -> int:
        used = sum(_sizes(str(folder)))
        with self._lock:
            if len(self._known) > 1000:
                self._known.clear()
            self._known[folder] = (time.monotonic(), used, free_bytes(folder))
        return used


def _sizes(folder: str) -> Iterator[int]:
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):  # removed while we look
                        known = entry.stat(follow_symlinks=False)
                        yield max(known.st_blocks * 512, SMALLEST_FILE)
                        if stat.S_ISDIR(known.st_mode):
                            waiting.append(entry.path)
        except OSError:
            continue  # removed, or closed to us


def clear_set_id_bits(folder: Path, since: float) -> int:
    """Remove set-ID bits from files that changed since then; return how many.

    A container may set them, and outside of it they would count.
    """
    found = 0
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with contextlib.suppress(OSError):
                known = os.lstat(path)
                is_set = known.st_mode & (stat.S_ISUID | stat.S_ISGID)
                if not is_set or not stat.S_ISREG(known.st_mode) or known.st_ctime < since:
                    continue
                file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    os.fchmod(file, stat.S_IMODE(known.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
                finally:
                    os.close(file)
                found += 1
    return found


def free_bytes(folder: Path) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return 0
        raise
    return disk.f_bavail * disk.f_frsize


class LimitWatch:
    """Adds up what a command uses; ``look`` says why it must end, or ''.

    ``pid`` is the first process of the command on this machine, 0 where the processes are counted elsewhere.
    """

    def __init__(self, pid: int, limits: CommandLimits, workspace: Path, quota: WorkspaceQuota, used: int) -> None:
        self._pid = pid
        self._limits = limits
        self._workspace = workspace
        self._quota = quota
        self._used = used
        # What is over its quota from the start may be tidied up; only growing further is too much.
        self._most = max(limits.workspace, used + MB if used >= limits.workspace else 0)
        self._free = self._free_at_start = free_bytes(workspace) if limits.workspace else 0
        self._measured_at = time.monotonic()
        self._walk_seconds = 0.0

    def look(self) -> str:
        return (self._processes() if self._pid else "") or (self._disk() if self._limits.workspace else "")

    def _processes(self) -> str:
        limits = self._limits
        found = descendants(self._pid, most=limits.processes + OWN_PROCESSES if limits.processes else 0)
        if limits.processes and len(found) > limits.processes + OWN_PROCESSES:
            return f"it started more than {limits.processes} processes (terminal.limits.processes)"
        private, shared, ticks = 0, 0, 0
        for pid in found:
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{pid}/statm", encoding="ascii") as file:
                    _, resident, common = (int(field) for field in file.read().split()[:3])
                private += resident - common
                shared = max(shared, common)
                if limits.cpu_seconds:
                    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                        ticks += sum(int(field) for field in file.read().rpartition(")")[2].split()[11:15])
        if limits.memory and (private + shared) * PAGE > limits.memory and _exact(found) > limits.memory:
            return f"it used more than {limits.memory // MB:,} MB of memory (terminal.limits.memory_mb)"
        if _available_memory() < total_memory() * LOW_MEMORY_SHARE:
            return "the machine ran out of memory while it ran"
        if limits.cpu_seconds and ticks / TICKS > limits.cpu_seconds:
            return f"it used more than {limits.cpu_seconds} s of CPU time (terminal.limits.cpu_seconds)"
        return ""

    def _disk(self) -> str:
        free, now = free_bytes(self._workspace), time.monotonic()
        room = max(0, self._limits.workspace - self._used)
        pause = max(WALK_SECONDS, self._walk_seconds / WALK_SHARE)
        if self._free - free > room or now - self._measured_at > pause:
            self._used = self._quota.measure(self._workspace)
            self._measured_at = time.monotonic()
            self._walk_seconds = self._measured_at - now
            self._free = free
            if self._used > self._most:
                return f"the workspace grew over {self._limits.workspace // MB:,} MB (terminal.limits.workspace_mb)"
        if free < LOW_DISK_BYTES and self._free_at_start - free > MB:
            return "the disk ran full while it ran"
        return ""


def _exact(pids: list[int]) -> int:
    """Return the memory of these processes; shared pages count once."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii", errors="replace") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) * 1024
        except (ProcessLookupError, FileNotFoundError):
            continue
        except (OSError, ValueError, IndexError):
            with (
                contextlib.suppress(OSError, ValueError, IndexError),
                open(f"/proc/{pid}/statm", encoding="ascii") as f,
            ):
                total += int(f.read().split()[1]) * PAGE
    return total
