"""Keep backups in a folder: name them, list them, delete the old ones."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.store.backup import contents
from hermes.store.backup.archive import ArchiveRefusedError, BackupManifest, open_archive
from hermes.store.home import SECRET_BYTES

AUTOMATIC = ("hourly", "update")
"""Backups that nobody asked for: only these are deleted by age and size."""

BEFORE_RESTORE = "before-restore-"
DAY_SECONDS = 86_400.0
_NAME = re.compile(r"hermes-(\d{8}-\d{6})(?:-\d+)?-([a-z]+)\.tar\.gz")


@dataclass(frozen=True, slots=True)
class ShelfEntry:
    path: Path
    size: int
    made_at: float
    reason: str


def default_folder(home: Path) -> Path:
    return contents.backup_folder(home)


def key_file(home: Path) -> Path:
    return default_folder(home) / "key"


def read_key(home: Path) -> bytes | None:
    """The key that signs this home's backups; None before the first."""
    try:
        key = bytes.fromhex(key_file(home).read_text("ascii"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return key if len(key) >= SECRET_BYTES else None


def new_path(folder: Path, reason: str, now: float) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    names = (f"hermes-{stamp}{f'-{number}' if number else ''}-{reason}.tar.gz" for number in range(1000))
    return next(folder / name for name in names if not (folder / name).exists())


def entries(folder: Path) -> list[ShelfEntry]:
    """Every backup of the folder, the newest first, by its name alone."""
    found = []
    for path in folder.glob("hermes-*.tar.gz") if folder.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            try:
                seen = path.stat()
            except FileNotFoundError:  # deleted meanwhile
                continue
            found.append(ShelfEntry(path, seen.st_size, seen.st_mtime, match[2]))
    return sorted(found, key=lambda entry: (entry.made_at, entry.path.name), reverse=True)


def read_manifest(path: Path, key: bytes | None) -> BackupManifest | str:
    """The list of an archive, or why it is refused. The files behind the list are not read."""
    try:
        with open_archive(path, key) as reader:
            return reader.manifest
    except ArchiveRefusedError as error:
        return str(error)


def choose_old(found: Sequence[ShelfEntry], now: float, *, keep_days: float, keep_bytes: int) -> list[ShelfEntry]:
    """Choose which automatic backups go: all but one of each day after a day, too old ones, and beyond the size.

    The newest automatic one always stays.
    """
    gone: list[ShelfEntry] = []
    days: set[int] = set()
    total = 0
    automatic = [entry for entry in found if entry.reason in AUTOMATIC]
    for entry in automatic[:1]:
        total = entry.size
    for entry in automatic[1:]:
        age = now - entry.made_at
        day = int(entry.made_at // DAY_SECONDS)
        is_spare = age > DAY_SECONDS and day in days
        if age > keep_days * DAY_SECONDS or is_spare or total + entry.size > keep_bytes:
            gone.append(entry)
            continue
        if age > DAY_SECONDS:
            days.add(day)
        total += entry.size
    return gone


def set_aside_folders(home: Path) -> list[Path]:
    """What restores have set aside, the newest first."""
    found = (path for path in default_folder(home).glob(f"{BEFORE_RESTORE}*") if path.is_dir())
    return sorted(found, reverse=True)


def prune(home: Path, folder: Path, now: float, *, keep_days: float, keep_bytes: int) -> list[Path]:
    """Delete old automatic backups, and what restores set aside longer ago; returns what was deleted."""
    gone = [entry.path for entry in choose_old(entries(folder), now, keep_days=keep_days, keep_bytes=keep_bytes)]
    for path in gone:
        path.unlink(missing_ok=True)
    before = now - keep_days * DAY_SECONDS
    old = [path for path in set_aside_folders(home)[1:] if path.stat().st_mtime < before]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return [*gone, *old]
