"""Find what keeps the home from being used, with its cure: disk, rights, lock.

Every fault is looked for when somebody asks, so that a repaired one is gone from the next answer. Nothing here opens
a database file: closing any descriptor of one would drop the locks that SQLite holds in this process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.store.home import marker

PROBE_BYTES = 64 * 1024
LOCK_SECONDS = 0.5
_SEVERAL = 3
"""So many files that belong to somebody else are named; more are counted."""

_OUR_FOLDERS = ("logs", "run")
"""Folders whose files are looked at one by one: all of them are ours, and few."""

_ONLY_READ = frozenset({".env", "config.yaml", "gateway.json", "SOUL.md"})
"""What a person writes, and may well protect from being written."""

_NAMES = re.compile(
    r"\.env|config\.yaml|gateway\.json|SOUL\.md|\.hermes-home|mirror\.jsonl|\w+\.key|\w+\.db(-wal|-shm|\.head)?"
    r"|logs|run|sessions|backups|models|spool|skills|workspaces|checkpoints|outputs|whatsapp|history"
)
"""What is ours directly in a home; whatever else a person keeps there is theirs."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``text`` is a sentence without its full stop; ``cure`` is what to type or to do."""

    text: str
    cure: str

    def __str__(self) -> str:
        return f"{self.text} → {self.cure}"


def find_faults(home: Path, *, looks_at_lock: bool = True) -> list[Fault]:
    """Check disk, rights and, with ``looks_at_lock``, who locks ``state.db`` (not beside a gateway, which does)."""
    if marker(home) is None:
        return []  # not there yet, or another program's: nothing is written there, not even for a moment
    faults = access_faults(home)
    if looks_at_lock and (lock := lasting_lock(home / "state.db")) is not None:
        faults.append(lock)
    folders = [home]
    logs = home / "logs"
    with contextlib.suppress(OSError):  # not there, or not to be seen: the rights tell that
        if logs.stat().st_dev != home.stat().st_dev:
            folders.append(logs)
    return [*(fault for folder in folders if (fault := disk_fault(folder)) is not None), *faults]


# The disk


def disk_fault(folder: Path) -> Fault | None:
    """Write a little into the folder. None: that worked, or rights alone were in the way."""
    try:
        write_probe(folder)
    except OSError as error:
        return fault_of_disk(error, folder)
    return None


def write_probe(folder: Path) -> None:
    """Write, sync and remove a file of 64 KB: only a real write shows that there is room. Raises OSError."""
    path = folder / f".room-{os.getpid()}.tmp"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        written = os.write(descriptor, bytes(PROBE_BYTES))
        if written < PROBE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def fault_of_disk(error: OSError, folder: Path) -> Fault | None:
    """Say what an error tells of the disk below a folder; None when it is about something else."""
    where = display_path(folder)
    match error.errno:
        case errno.ENOSPC:
            return disk_is_full(folder)
        case errno.EDQUOT:
            return Fault(f"The disk of {where} is full: your quota is used up", "delete some files of yours there")
        case errno.EROFS:
            place = folder.resolve()
            while not place.is_mount() and place != place.parent:
                place = place.parent
            return Fault(f"The disk of {where} is read-only", f"sudo mount -o remount,rw {typed(place)}")
        case errno.EIO:
            return Fault(f"The disk of {where} fails (input/output error)", "copy what matters away; then: dmesg")
        case _:
            return None


def disk_is_full(folder: Path, consequence: str = "") -> Fault:
    text = f"The disk of {display_path(folder)} is full{consequence}"
    if _has_room(folder):
        return Fault(f"{text} (it has room and takes no more files)", "delete some files; nothing else is needed")
    return Fault(text, "free some space; nothing else is needed")


def _has_room(folder: Path) -> bool:
    """Whether bytes are free, so that only the number of files can be what is used up."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize > 16 * PROBE_BYTES and found.f_favail == 0


# Rights


def access_faults(home: Path) -> list[Fault]:
    """Name each file of ours that this process may not use, with the command that changes that."""
    refused = [path for path in _needed(home) if not _is_usable(path)]
    foreign = [path for path in refused if _owner(path) != os.geteuid()]
    ours = [fault for path in refused if path not in foreign and (fault := access_fault(path)) is not None]
    if not foreign:
        return ours
    names = ", ".join(display_path(path) for path in foreign[:_SEVERAL])
    more = f" and {len(foreign) - _SEVERAL} more" if len(foreign) > _SEVERAL else ""
    verb = "belongs" if len(foreign) == 1 else "belong"
    text = f"{names}{more} {verb} to {_user(_owner(foreign[0]))} and cannot be used by {_user(os.geteuid())}"
    target = foreign[0] if len(foreign) == 1 and foreign[0].is_file() else home
    recursive = "" if target.is_file() else "-R "
    return [Fault(text, f"sudo chown {recursive}{_user(os.geteuid())} {typed(target)}"), *ours]


def access_fault(path: Path) -> Fault | None:
    """Why one file or folder cannot be used by this process; None when it can, or is not there."""
    if not os.path.lexists(path) or _is_usable(path):
        return None
    if _owner(path) != os.geteuid():
        text = f"{display_path(path)} belongs to {_user(_owner(path))} and cannot be used by {_user(os.geteuid())}"
        return Fault(text, f"sudo chown {'-R ' if path.is_dir() else ''}{_user(os.geteuid())} {typed(path)}")
    mode = stat.S_IMODE(path.stat().st_mode)
    if path.is_dir():
        return Fault(
            f"{display_path(path)} cannot be entered or written (its mode is {mode:03o})", f"chmod 700 {typed(path)}"
        )
    access = "read" if path.name in _ONLY_READ else "read and written"
    return Fault(f"{display_path(path)} cannot be {access} (its mode is {mode:03o})", f"chmod 600 {typed(path)}")


def fault_behind(error: OSError, home: Path) -> Fault | None:
    """The fault of a home that an error comes from; None when it comes from elsewhere or is no fault of a home."""
    if not isinstance(error.filename, str | bytes):
        return disk_fault(home)
    path = Path(os.fsdecode(error.filename))
    if home != path and home not in path.parents:
        return None  # nobody is told to change who owns a folder of the system
    if error.errno not in {errno.EACCES, errno.EPERM}:
        return fault_of_disk(error, home)
    above = path.parents[: len(path.parts) - len(home.parts)]
    return next((fault for part in (path, *above) if (fault := access_fault(part)) is not None), None)


def _needed(home: Path) -> Iterator[Path]:
    """The home, what is directly in it, and the files in its folders that the process itself writes."""
    yield home
    for folder in (home, *(home / name for name in _OUR_FOLDERS)):
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            continue  # the folder itself is on the list
        for entry in entries:
            is_ours = folder != home or _NAMES.fullmatch(entry.name)
            if is_ours and not entry.is_symlink() and not entry.name.endswith((".tmp", ".sock")):
                yield Path(entry.path)


def _is_usable(path: Path) -> bool:
    try:
        is_folder = path.is_dir()
    except OSError:
        return True  # below a folder that is named itself
    writes = path.name not in _ONLY_READ and not _is_read_only(path)
    wanted = os.R_OK | (os.X_OK if is_folder else 0) | (os.W_OK if writes else 0)
    return os.access(path, wanted) or not os.path.lexists(path)


def _is_read_only(path: Path) -> bool:
    """Whether its whole disk is: no chmod helps there, and ``disk_fault`` tells it."""
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _owner(path: Path) -> int:
    try:
        return path.lstat().st_uid
    except OSError:
        return os.geteuid()


def _user(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # as in containers
        return str(uid)


# Locks


@dataclass(frozen=True, slots=True)
class LockHolder:
    pid: int
    name: str


def lock_fault(path: Path) -> Fault | None:
    """Name the process whose write holds up ours; None when the system does not tell."""
    holders = lock_holders(path)
    if not holders:
        return None
    processes = ", ".join(f"{holder.name} (process {holder.pid})" for holder in holders)
    pids = " ".join(str(holder.pid) for holder in holders)
    return Fault(f"{path.name} is locked by {processes}", f"let it finish, or end it: kill {pids}")


def lasting_lock(path: Path) -> Fault | None:
    """The same for a lock that is not gone after a moment: every write takes one."""
    if not (first := lock_holders(path)):
        return None
    time.sleep(LOCK_SECONDS)
    return lock_fault(path) if set(first) & set(lock_holders(path)) else None


def lock_holders(path: Path) -> Sequence[LockHolder]:
    """The other processes that hold a write lock on a database, as Linux lists them."""
    places = set()
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            found = os.stat(f"{path}{suffix}")
            places.add((os.major(found.st_dev), os.minor(found.st_dev), found.st_ino))
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            rows = [row.split() for row in file]
    except OSError:
        return ()
    # Some filesystems tell another device here than to stat, so the number of the file alone must do there.
    inodes = {inode for _, _, inode in places}
    pids = [pid for pid, place in _write_locks(rows) if place in places]
    pids = pids or [pid for pid, place in _write_locks(rows) if place[2] in inodes]
    others = dict.fromkeys(pid for pid in pids if pid > 0 and pid != os.getpid())
    return [LockHolder(pid, _process_name(pid)) for pid in others]


def _write_locks(rows: Sequence[Sequence[str]]) -> Iterator[tuple[int, tuple[int, int, int]]]:
    """``1: POSIX  ADVISORY  WRITE 4711 08:01:1234 120 120``; one that waits has an arrow and is left out."""
    for row in rows:
        if len(row) >= 8 and row[1] in {"POSIX", "OFDLCK"} and row[3] == "WRITE":
            major, minor, inode = row[5].split(":")
            yield int(row[4]), (int(major, 16), int(minor, 16), int(inode))


def _process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip() or "a process"
    except OSError:
        return "a process"


# Paths


def display_path(path: Path) -> str:
    """``~/.hermes/state.db`` rather than the whole path."""
    above = os.path.expanduser("~")
    text = str(path)
    return f"~{text.removeprefix(above)}" if text == above or text.startswith(f"{above}/") else text


def typed(path: Path) -> str:
    """A path as a shell takes it: short where that needs no quotes, since a quoted ~ is no home."""
    short = display_path(path)
    return short if shlex.quote(short.removeprefix("~")) == short.removeprefix("~") else shlex.quote(str(path))
