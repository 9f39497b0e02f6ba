"""Check the settings: what is not understood, what is not loaded, what asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes.cli.checks.finding import ARROW, Finding, Level
from hermes.core.durations import count
from hermes.hosting import status

if TYPE_CHECKING:
    from hermes.config import Config, Loaded


def config_check(loaded: Loaded, command: str = "hermes") -> Finding:
    problems = sorted(loaded.problems, key=lambda problem: problem.level != "error")
    if not problems:
        set_by_owner = sum(1 for resolved in loaded.sources.values() if resolved.entries)
        return Finding("config", "good", f"{count(set_by_owner, 'value')} set, all understood")
    level: Level = "trouble" if problems[0].level == "error" else "hint"
    more = [str(problem) for problem in problems[1:]]
    if not any(ARROW in str(problem) for problem in problems):
        more.append(f"edit the file ({command} config path prints where it is), then type → {command} config check")
    fix = "config" if any(problem.repair for problem in problems) else ""
    return Finding("config", level, str(problems[0]), tuple(more), fix=fix)


def approvals_check(config: Config, command: str) -> list[Finding]:
    """Nothing unless the owner's commands run without a question."""
    if config.approvals.mode != "off":
        return []
    cure = f"{command} config set approvals.mode dangerous"
    return [Finding("approvals", "hint", f"off: the owner's commands run without a question → {cure}")]


def platforms_check(broken: Mapping[str, str], facts: status.Facts) -> list[Finding]:
    """Nothing where all that are installed could be loaded, or where a running gateway tells of it itself."""
    known = (facts.snapshot or {}).get("troubles", ())
    lines = tuple(line for line in broken.values() if line not in known)
    if not lines:
        return []
    cure = () if any(ARROW in line for line in lines) else (f"what went wrong → {facts.command} logs --level error",)
    return [Finding("platforms", "trouble", lines[0], (*lines[1:], *cure))]
