"""Check the growth: what the home takes, and how long the disk lasts."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from hermes.cli.checks.finding import Finding
from hermes.cli.support.sizes import format_size
from hermes.core.dataclasses import dataclass
from hermes.store.home import marker

LOW_BYTES = 2_000_000_000
LOW_SHARE = 0.05
SOON_DAYS = 14.0
MAX_FILES = 200_000
INSTALLED = frozenset({"models", "skills", "whatsapp"})
"""Parts that came at once and do not grow with use."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DiskUse:
    """``parts``: bytes of each file and folder directly in the home; ``days``: the age of the home, 0.0 if unknown."""

    free: int
    total: int
    parts: Mapping[str, int]
    days: float = 0.0

    @property
    def used(self) -> int:
        return sum(self.parts.values())

    @property
    def days_left(self) -> float | None:
        """In how many days the disk is full if the home grows as it has grown; None where that cannot be told."""
        grown = sum(size for name, size in self.parts.items() if name not in INSTALLED)
        return self.free / (grown / self.days) if grown and self.days >= 1 else None


def measure(home: Path) -> DiskUse:
    """Add up what the home holds; links are not followed."""
    disk = shutil.disk_usage(home)
    parts: dict[str, int] = {}
    files = 0
    for folder, _, names in os.walk(home):
        for name in names:
            path = Path(folder, name)
            top = path.relative_to(home).parts[0]
            try:
                parts[top] = parts.get(top, 0) + path.lstat().st_size
            except FileNotFoundError:  # gone meanwhile
                continue
        files += len(names)
        if files > MAX_FILES:
            break
    return DiskUse(disk.free, disk.total, parts, _age_in_days(home, time.time()))


def _age_in_days(home: Path, now: float) -> float:
    """Read from the home's own mark when it was made; 0.0 where that is not told."""
    made = str((marker(home) or {}).get("created", ""))
    try:
        return max(0.0, (now - datetime.fromisoformat(made).timestamp()) / 86400)
    except ValueError:
        return 0.0


def growth_check(use: DiskUse, command: str) -> Finding:
    largest = sorted(use.parts.items(), key=lambda part: -part[1])[:_SHOWN]
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in largest if size >= 100_000)
    about = f"the home takes {format_size(use.used)}" + (f": {parts}" if parts else "")
    if use.free < LOW_BYTES or use.free < use.total * LOW_SHARE:
        cure = f"free some space, or keep less: {command} config show"
        return Finding("growth", "hint", f"only {format_size(use.free)} of the disk are free; {about} → {cure}")
    if use.days_left is not None and use.days_left < SOON_DAYS:
        cure = f"keep less: {command} config set retention.days 30"
        return Finding("growth", "hint", f"the disk is full in {use.days_left:.0f} days at this pace; {about} → {cure}")
    return Finding("growth", "good", about)
