"""Tell processes that tools started from those that people started.

Two facts about a process: one of its ancestors is the worker or the supervisor, which adopts every orphan below it; and
its hard limit on file locks is lower than the one that the worker was started with. Linux ignores that limit since 2.4,
passes it on to every child, and lets only root raise it again: the mark stays when worker and supervisor have ended.

The supervisor imports this too: standard library only, and little of it.
"""

from __future__ import annotations

import errno
import os
import signal
import time

from hermes.hosting import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Iterator

RLIMIT_LOCKS = 10  # not among the names of the module `resource`; the number is the same on every machine
NO_LIMIT = 1 << 64
MARK = 1 << 50
SO_PEERPIDFD = 77  # since Linux 6.5
WALKS = 5
LEFTOVER_SECONDS = 2.0

PERSON = "a person's"
TOOL = "a tool's"
OUTSIDE = "outside"  # in another container, or on another machine: not one that we started
UNKNOWN = "unknown"  # gone, or hidden


class ToolProcesses:
    """Tells where processes come from.

    Below the processes ``roots`` (by default this one) only tools run; ``limit`` is the lock limit without the mark.
    Without /proc (not Linux) nothing is known about processes, and all count as people's.
    """

    def __init__(self, roots: Iterable[int] | None = None, limit: int | None = None) -> None:
        self._own = os.getpid()
        self._roots = frozenset((self._own,) if roots is None else roots)
        self._limit = lock_limit(self._own) if limit is None else limit
        self._can_tell = os.path.isdir("/proc/self")

    def origin(self, pid: int) -> str:
        """Tell where a process comes from. The gateway itself counts as a person."""
        if pid == self._own or not self._can_tell:
            return PERSON
        if pid <= 0:
            return OUTSIDE if pid == 0 else UNKNOWN
        chain, limit = _chain(pid), lock_limit(pid)
        if chain is None:
            return UNKNOWN
        return TOOL if limit < self._limit or not self._roots.isdisjoint(chain) else PERSON

    def origin_of_peer(self, line: socket.socket, connected_at: float) -> str:
        """Tell which process connected to a Unix socket.

        The process that connected counts, even if another one holds the connection now.

        ``connected_at`` is when, in seconds since the boot. It matters on kernels before 6.5, which tell only a number:
        a process that is younger than the connection was given the number of the one that made it.
        """
        import socket
        import struct

        if not self._can_tell:
            return PERSON
        try:
            descriptor = line.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
        except OSError as error:
            if error.errno not in (errno.ENOPROTOOPT, errno.EOPNOTSUPP):
                return UNKNOWN  # the process has ended
            pid, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            mark = processes.start_mark(pid)
            if mark and int(mark) / os.sysconf("SC_CLK_TCK") > connected_at + 0.02:
                return UNKNOWN
            return self.origin(int(pid))
        try:
            pid = _pid_of(descriptor)
            found = self.origin(pid)
            return found if _pid_of(descriptor) == pid else UNKNOWN
        finally:
            os.close(descriptor)

    def origin_of_locker(self, descriptor: int) -> str:
        """Tell which process holds the POSIX lock on a file, as the kernel knows it."""
        if not self._can_tell:
            return PERSON
        pid = _locker(descriptor)
        if pid is None:
            return UNKNOWN
        found = self.origin(pid)
        return found if _locker(descriptor) == pid else UNKNOWN

    def origin_of_connection(self, theirs: tuple[str, int], ours: tuple[str, int]) -> str:
        """Tell which process is at the other end of a TCP connection.

        Blocks for some milliseconds: it looks at every process.
        """
        if not self._can_tell:
            return PERSON
        row = _connection(theirs, ours)
        if row is None:
            return OUTSIDE
        uid, inode = row
        if inode == "0":
            return UNKNOWN  # closed by whoever made it: the kernel has forgotten who that was
        holders = list(_holders(f"socket:[{inode}]"))
        if not holders:
            if uid == os.geteuid():
                return UNKNOWN
            # Another user's process hides its descriptors. Tools run as our own user, or under an id lent to it.
            holders = [pid for pid in _pids() if uid in _users(pid)]
        found = {self.origin(pid) for pid in holders}
        return TOOL if TOOL in found else UNKNOWN if UNKNOWN in found else PERSON


def mark_children() -> int:
    """Mark all processes that we start from now on; return the limit before.

    The mark is a lower limit on file locks, which children inherit.
    """
    before = lock_limit(os.getpid())
    if before == 0:
        return 0  # nothing below it
    try:
        import resource

        lower = min(before, MARK) - 1
        resource.setrlimit(RLIMIT_LOCKS, (lower, lower))
    except (ImportError, ValueError, OSError):  # a system without this limit
        return before
    return before


def is_marked() -> bool:
    """Tell whether this very process was started by the worker of some gateway."""
    return MARK - 1000 < lock_limit(os.getpid()) < MARK


def lock_limit(pid: int) -> int:
    """Return the hard limit on file locks of a process; none where it cannot be read."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            for row in file:
                if row.startswith("Max file locks"):
                    hard = row[14:].split()[1]
                    return NO_LIMIT if hard == "unlimited" else int(hard)
    except (OSError, ValueError, IndexError):
        return NO_LIMIT
    return NO_LIMIT


def end_leftovers(home: str, limit: int, older_than: str = "", seconds: float = LEFTOVER_SECONDS) -> int:
    """Kill the processes that tools of this home left behind; return how many.

    Its group and session do not matter: such a process has a lower limit than ``limit``, and is our child (an adopted
    orphan) or has the home in its environment. A supervisor that takes over from inside the agent's terminal is spared.
    ``older_than`` is the start mark of a worker whose processes are spared too.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while found := list(_leftovers(home, limit, older_than)):
        for pid, mark in found:
            if processes.send_signal(pid, mark, signal.SIGKILL):
                killed.add(pid)
        if time.monotonic() >= deadline:
            break
        time.sleep(processes.LOOK_SECONDS)
    return len(killed)


def _leftovers(home: str, limit: int, older_than: str) -> Iterator[tuple[int, str]]:
    own = os.getpid()
    for pid in _pids():
        if pid == own or lock_limit(pid) >= limit:
            continue
        mark = processes.start_mark(pid)
        is_younger = bool(older_than and mark) and int(mark) >= int(older_than)
        if is_younger or not processes.is_alive(pid, mark) or processes.hermes_command_of(pid).startswith("supervisor"):
            continue
        if processes.parent_of(pid) == own or _home_of(pid) == home:
            yield pid, mark


def _home_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            for variable in file.read().split(b"\0"):
                if variable.startswith(b"HERMES_HOME="):
                    return os.fsdecode(variable[12:])
    except OSError:
        return ""
    return ""


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _users(pid: int) -> tuple[int, ...]:
    """Return the ids under which a process runs: real, effective, saved and for files."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            for row in file:
                if row.startswith("Uid:"):
                    return tuple(map(int, row[4:].split()))
    except OSError:
        return ()
    return ()


def _chain(pid: int) -> list[int] | None:
    """Return the ancestors of a process; None when it is gone.

    An ancestor may end between two looks, and its number may be given to another: only what two walks say counts.
    """
    last: list[int] | None = None
    for _ in range(WALKS):
        found = _walk(pid)
        if found is not None and found == last:
            return found
        last = found
    return None


def _walk(pid: int) -> list[int] | None:
    found: list[int] = []
    while True:
        fields = processes.stat_fields(pid)
        if not fields:
            return None
        pid = int(fields[1])
        if pid <= 0 or pid in found:  # 0: the first of its namespace, or one that entered it from outside (docker exec)
            return found
        found.append(pid)


def _pid_of(descriptor: int) -> int:
    """Return the process of a pidfd; 0 in another namespace, -1 if it has ended."""
    with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
        for row in file:
            if row.startswith("Pid:"):
                return int(row[4:])
    return -1


def _locker(descriptor: int) -> int | None:
    """Return the process that holds a lock on a file; None if there is none.

    0 is a process of another namespace.
    """
    import fcntl
    import struct

    layout = "@hhqqi"
    try:
        raw = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(layout, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
    except OSError:
        return None
    kind, _, _, _, pid = struct.unpack(layout, raw[: struct.calcsize(layout)])
    return None if kind == fcntl.F_UNLCK else int(pid)


def _connection(theirs: tuple[str, int], ours: tuple[str, int]) -> tuple[int, str] | None:
    """Return user and inode of the other end of a connection on this machine."""
    wanted = {f"{here} {there}" for here, there in zip(_as_listed(theirs), _as_listed(ours), strict=True)}
    for name in ("tcp", "tcp6"):
        try:
            with open(f"/proc/self/net/{name}", encoding="ascii") as file:
                for row in file:
                    fields = row.split()
                    if f"{fields[1]} {fields[2]}" in wanted:
                        return int(fields[7]), fields[9]
        except OSError:
            continue
    return None


def _as_listed(address: tuple[str, int]) -> tuple[str, str]:
    """Format an address as in /proc/net/tcp and tcp6.

    The kernel prints four-byte words in the byte order of the machine.
    """
    import ipaddress
    import struct

    host, port = ipaddress.ip_address(address[0].partition("%")[0]), address[1]
    if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped:
        host = host.ipv4_mapped
    long = host.packed if host.version == 6 else b"\0" * 10 + b"\xff\xff" + host.packed
    forms = (host.packed, long)
    first, second = ("".join(f"{word:08X}" for (word,) in struct.iter_unpack("=I", form)) for form in forms)
    return f"{first}:{port:04X}", f"{second}:{port:04X}"


def _holders(link: str) -> Iterator[int]:
    """Yield the processes that have this open, as far as they can be looked into."""
    for pid in _pids():
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}") == link:
                    yield pid
                    break
            except OSError:
                continue
