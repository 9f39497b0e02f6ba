"""Check the home: whose it is, its disk, its rights, and what was left behind."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from hermes.cli.checks.finding import Finding
from hermes.cli.support.sizes import format_size
from hermes.core.durations import format_time
from hermes.hosting import banner, paths, status
from hermes.store import home_faults
from hermes.store.home import KEPT_OPEN, Whose, inspect_home

MIN_FREE_BYTES = 500_000_000
LEFT_SECONDS = 3600.0
"""So long nobody writes a temporary file: an older one was left by a process that was killed."""

_MAX_NAMED = 3
_MAX_WALKED = 20_000


def home_check(home: Path, facts: status.Facts | None = None) -> Finding:
    shown = banner.short_home(str(home), os.path.expanduser("~"))
    state = inspect_home(home)
    if state.whose is Whose.FOREIGN:
        text = f"{shown} belongs to {state.description}; it was left alone"
        return Finding("home", "trouble", text, (f"use another folder → HERMES_HOME=~/.hermes-two {_command(facts)}",))
    if not home.exists():
        return Finding("home", "good", f"{shown}, not there yet: the first start makes it")
    free = shutil.disk_usage(home).free
    about = f"{shown}, {format_size(free)} free"
    is_free = facts is None or not facts.is_held
    if faults := home_faults.find_faults(home, looks_at_lock=is_free):
        words = [str(fault) for fault in faults]
        can_chmod = any(fault.cure.startswith("chmod ") for fault in faults)
        return Finding("home", "trouble", words[0], tuple(words[1:]), fix="permissions" if can_chmod else "")
    if free < MIN_FREE_BYTES:
        return Finding("home", "trouble", f"{about}: nothing can be stored when it is full → free some space")
    if exposed := exposed_paths(home):
        names = ", ".join(path.name for path in exposed[:_MAX_NAMED])
        text = f"{about}; others can read {names} → chmod -R go= {shown}"
        reason = "Another account of this machine could read keys and messages."
        return Finding("home", "hint", text, reason=reason, fix="permissions")
    return Finding("home", "good", f"{shown}, yours alone, {format_size(free)} free")


def _command(facts: status.Facts | None) -> str:
    return f"{facts.command if facts else 'hermes'} gateway run"


def exposed_paths(home: Path) -> list[Path]:
    """Files and folders of ours that group or others can use. Links and the people's own files are passed over."""
    return [path for path in [home, *_ours(home)] if _is_exposed(path)]


def _is_exposed(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # gone meanwhile
        return False
    return bool(stat.S_IMODE(mode) & 0o077) and not stat.S_ISLNK(mode)


def _ours(home: Path) -> Iterator[Path]:
    walked = 0
    for folder, folders, files in os.walk(home):
        if Path(folder) == home:
            # The agent's files are the people's own, the program's packages come with the modes of their archive.
            folders[:] = [name for name in folders if name not in KEPT_OPEN and name not in ("models", "whatsapp")]
            yield from (home / name for name in KEPT_OPEN if (home / name).exists())
        for name in (*folders, *files):
            if not name.endswith(".tmp"):  # being written this moment
                yield Path(folder, name)
            walked += 1
        if walked > _MAX_WALKED:
            return


# What was left behind


def leftovers(home: Path, *, is_used: bool, now: float) -> list[Path]:
    """Temporary files of processes that were killed, and, where nobody works in the home, a dead socket."""
    found = [
        path
        for pattern in ("*.tmp", "run/*.tmp", "sessions/*.tmp", "backups/*.half*", "run/requests/*")
        for path in home.glob(pattern)
        if _age(path, now) > LEFT_SECONDS
    ]
    if not is_used:
        with suppress(PermissionError):  # the home names the cure
            socket = Path(paths.socket(str(home)))
            found += [socket] if socket.is_socket() else []
        found += [path for pattern in ("*.db.rebuilding*", "*.db.recovery") for path in home.glob(pattern)]
    return sorted(set(found))


def _age(path: Path, now: float) -> float:
    try:
        return now - path.lstat().st_mtime
    except (FileNotFoundError, PermissionError):  # gone meanwhile; or out of reach, and the home names the cure
        return 0.0


def leftovers_check(home: Path, found: Sequence[Path], command: str) -> list[Finding]:
    """Nothing where nothing was left behind."""
    if not found:
        return []
    names = ", ".join(str(path.relative_to(home)) for path in found[:_MAX_NAMED])
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    text = f"left behind by a process that was killed: {names}{more} → {command} doctor --fix"
    return [Finding("leftovers", "hint", text, fix="leftovers")]


# The clock


def clock_check(home: Path, ahead: float | None, now: float) -> Finding:
    """``ahead``: by how many seconds our clock is ahead of a server's, if one told the time."""
    cure = "timedatectl set-ntp true"
    if ahead is not None and abs(ahead) > MAX_CLOCK_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        return Finding("clock", "trouble", f"{abs(ahead):.0f} s {side} the servers that were asked → {cure}")
    written = newest_write(home)
    if written - now > MAX_CLOCK_SECONDS:
        day = format_time("%Y-%m-%d %H:%M", written)
        text = f"set back: files of the home were written at {day}, which is in the future → {cure}"
        return Finding("clock", "trouble", text)
    compared = "" if ahead is None else ", as the servers that were asked"
    return Finding("clock", "good", f"{format_time('%Y-%m-%d %H:%M %Z', now)}{compared}")


MAX_CLOCK_SECONDS = 120.0


def newest_write(home: Path) -> float:
    """When a file of the home was written last; 0.0 where there is none."""
    times = [0.0]
    for name in ("state.db", "state.db-wal", "logs/gateway.log", "run/heartbeat", ".env", "config.yaml"):
        try:
            times.append((home / name).stat().st_mtime)
        except OSError:  # not there, or not ours to see: the home tells that
            continue
    return max(times)
