"""Measure what a home holds, and how long its disk lasts. Blocking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.core.dataclasses import dataclass

MAX_FILES = 20_000
"""So many files of a folder are measured; of more, their mean counts for all."""
DAY = 86400.0
WARNED_DAYS = 14.0

FOLDERS: Mapping[str, tuple[str, ...]] = {
    "transcripts": ("sessions",),
    "backups": ("backups",),
    "checkpoints": ("checkpoints",),
    "outputs": ("outputs", "cron/output"),
    "logs": ("logs",),
    "files on their way": ("spool", "pictures"),
    "models": ("models",),
}


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes by part of the home; ``set_aside`` are those of damaged stores; ``free`` those left on the disk."""

    database: int
    set_aside: int
    parts: Mapping[str, int]
    free: int

    @property
    def total(self) -> int:
        return self.database + self.set_aside + sum(self.parts.values())

    def days_left(self, oldest: float | None, now: float) -> float | None:
        """Days until the disk is full if database and transcripts grow as before; None where that is unknown."""
        grown = self.database + self.parts.get("transcripts", 0)
        days = (now - oldest) / DAY if oldest else 0.0
        return self.free / (grown / days) if days >= 1.0 and grown else None


def measure(home: Path) -> Stored:
    files = [path for path in home.glob("*.db*") if path.is_file()]
    aside = [path for path in files if ".corrupt." in path.name or ".replaced." in path.name]
    parts = {name: sum(_folder_bytes(home / each) for each in folders) for name, folders in FOLDERS.items()}
    return Stored(
        database=sum(map(_bytes, files)) - sum(map(_bytes, aside)),
        set_aside=sum(map(_bytes, aside)),
        parts=parts,
        free=shutil.disk_usage(home).free,
    )


def size_text(size: float) -> str:
    number, unit = (size / 1e9, "GB") if size >= 1e9 else (size / 1e6, "MB")
    return f"{number:.0f} {unit}" if number >= 10 else f"{number:.1f} {unit}"


def _folder_bytes(folder: Path) -> int:
    total = measured = count = 0
    for path in _files_of(folder):
        count += 1
        if measured < MAX_FILES:
            measured += 1
            total += _bytes(path)
    return total * count // measured if measured else 0


def _files_of(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            yield Path(place, name)


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # gone meanwhile
        return 0
