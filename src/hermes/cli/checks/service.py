"""Check the process: whether it runs, who holds the home, which versions work together."""

from __future__ import annotations

from pathlib import Path

from hermes.cli.checks.finding import ARROW, Finding, Level
from hermes.hosting import locks, paths, processes, status

MIN_SQLITE = (3, 35, 0)
"""The first with RETURNING, which every claim uses."""


def service_check(facts: status.Facts) -> Finding:
    judged = status.judge(facts)
    if facts.is_hidden:
        text = "its state cannot be seen with your rights"
        return Finding("service", "trouble", text, (f"what to type → {facts.command} gateway status",))
    words = judged.lines[0].partition(": ")[2]
    match judged.state:
        case status.State.NOT_RUNNING:
            unheard = f" No message arrives from {', '.join(facts.platforms)}" if facts.platforms else ""
            text = f"not running: {words}{unheard} → {facts.command} gateway start"
            level: Level = "trouble" if facts.platforms else "hint"
            return Finding("service", level, text, fix="gateway" if status.has_died(facts) else "")
        case status.State.STALLED | status.State.DEGRADED:
            fix = "gateway" if judged.state is status.State.STALLED else ""
            cures = _cures(facts)
            if not cures and ARROW not in words:
                word = "restart" if fix else "status"
                cures = (f"what to do → {facts.command} gateway {word}",)
            return Finding("service", "trouble", f"{judged.state.value}: {words}", cures, fix=fix)
        case _ if facts.snapshot is not None and not facts.snapshot.get("kept_up_by"):
            by_hand = f"start it after a reboot → {facts.command} gateway install"
            return Finding("service", "hint", "runs by hand: a reboot ends it", (*_cures(facts), by_hand))
        case _:
            cures = _cures(facts)
            return Finding("service", "hint" if cures else "good", words, cures)


def _cures(facts: status.Facts) -> tuple[str, ...]:
    of_process = [words for _, words in status.cures_of_process(facts)]
    return (*status.cures(facts.snapshot or {}), *of_process)


def locks_check(home: Path) -> list[Finding]:
    """Name a command that works alone in the home; nothing where there is none."""
    try:
        holder = locks.holder(paths.owner_lock(str(home)))
    except OSError:  # no rights: the home names the cure
        return []
    if holder is None or "gateway" in holder.what:
        return []
    if processes.is_stopped(holder.pid):
        text = f"{holder.describe()} holds the home and is stopped{holder.how_to_end()}"
        return [Finding("locks", "trouble", text)]
    return [Finding("locks", "good", f"in use by {holder.describe()}")]


def versions_check() -> Finding:
    """Tell what works together here; trouble where a library is too old."""
    import sqlite3
    import sys

    from hermes import __version__

    about = f"Hermes {__version__}, Python {'.'.join(map(str, sys.version_info[:3]))}, SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < MIN_SQLITE:
        return Finding("versions", "trouble", f"{about}: SQLite is too old → use a newer Python: HERMES_PYTHON=PATH")
    return Finding("versions", "good", about)
