"""Copy a database with SQLite's own backup, so that the copy is whole."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path

from hermes.store import home
from hermes.store.sqlite.file import beside, stamp

KEPT = 5


def backup(connection: sqlite3.Connection, path: Path, word: str, now: float) -> Path:
    """Copy the connection's database to ``backups/<name>.<time>.<word>`` and keep the newest few."""
    folder = path.parent / "backups"
    home.make_private_folder(folder)
    copy = folder / f"{path.name}.{stamp(now)}.{word}"
    half = beside(copy, ".half")
    half.unlink(missing_ok=True)
    os.close(os.open(half, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(half)) as target:
            connection.backup(target)
            # Off the shared-memory journal: a copy stands alone as one file.
            target.execute("PRAGMA journal_mode = delete")
        half.replace(copy)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            beside(half, suffix).unlink(missing_ok=True)
    for old in newest(path)[KEPT:]:
        old.unlink(missing_ok=True)
    return copy


def newest(path: Path) -> list[Path]:
    """Every backup of this database, the newest first."""
    found = [
        entry
        for entry in (path.parent / "backups").glob(f"{path.name}.*")
        if not entry.name.endswith((".half", "-wal", "-shm", "-journal", ".pages"))
    ]
    return sorted(found, key=lambda entry: entry.name, reverse=True)
