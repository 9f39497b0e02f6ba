"""docs/figures.md: one section for each kind of measurement, each with its commit, its date and the machine's load."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures.md"


def record(section: str, rows: Sequence[tuple[str, str]], *, file: Path = FIGURES) -> None:
    """Replace this section, and only this one; a new one is added at the end."""
    text = file.read_text(encoding="utf-8") if file.exists() else "# Figures\n"
    head, *others = text.split("\n## ")
    parts = {part.partition("\n")[0]: part for part in others}
    parts[section] = _rendered(section, rows)
    whole = "\n\n## ".join(part.strip() for part in (head, *parts.values()))
    file.write_text(whole + "\n", encoding="utf-8")


def _rendered(section: str, rows: Sequence[tuple[str, str]]) -> str:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    about = f"Commit {commit()}, {when}, {os.cpu_count()} cores, load {load}."
    table = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join([section, "", about, "", "| | |", "|---|---|", *table])


def commit() -> str:
    """The commit measured, with a + when files differ from it."""
    try:
        name = _git("rev-parse", "--short", "HEAD")
        return f"{name}+" if _git("status", "--porcelain", "--", "src") else name
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    return subprocess.check_output(["git", *arguments], cwd=ROOT, text=True, stderr=subprocess.DEVNULL).strip()
