"""Check the growth: what the home takes, and how long the disk lasts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from hermes.cli.checks.finding import Finding
from hermes.cli.checks.home import format_size
from hermes.core.dataclasses import dataclass

LOW_BYTES = 2_000_000_000
LOW_SHARE = 0.05
MAX_FILES = 200_000
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DiskUse:
    """``parts``: bytes of each file and folder directly in the home."""

    free: int
    total: int
    parts: Mapping[str, int]

    @property
    def used(self) -> int:
        return sum(self.parts.values())


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
    return DiskUse(disk.free, disk.total, parts)


def growth_check(use: DiskUse, command: str) -> Finding:
    largest = sorted(use.parts.items(), key=lambda part: -part[1])[:_SHOWN]
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in largest if size >= 100_000)
    about = f"the home takes {format_size(use.used)}" + (f": {parts}" if parts else "")
    if use.free < LOW_BYTES or use.free < use.total * LOW_SHARE:
        cure = f"free some space, or keep less: {command} config show"
        return Finding("growth", "hint", f"only {format_size(use.free)} of the disk are free; {about} → {cure}")
    return Finding("growth", "good", about)
