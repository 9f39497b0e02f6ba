"""Check the ways outside: which hosts answer, through which proxy, and which have moved."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

from hermes.cli.checks.finding import Finding, Level

if TYPE_CHECKING:
    from hermes.cli.support.connectivity import Reached


GONE = frozenset({301, 308, 410})
"""What a host answers whose address has changed for good."""


def network_check(reached: Mapping[str, Reached], command: str = "hermes") -> Finding:
    if not reached:
        return Finding("network", "good", "nothing to reach: no platform is set up")
    lines = [_way(name, endpoint) for name, endpoint in reached.items()]
    failed = [endpoint for endpoint in reached.values() if endpoint.failure]
    level: Level = "trouble" if failed else "good"
    if failed:
        lines.append(f"which proxy is used, and where it is set → {command} config show")
    elif any(_has_moved(endpoint) for endpoint in reached.values()):
        level = "hint"
    return Finding("network", level, lines[0], tuple(lines[1:]))


def _has_moved(reached: Reached) -> bool:
    return reached.status in GONE and "/" in reached.shown


def _way(name: str, reached: Reached) -> str:
    through = f" through {reached.proxy}" if reached.proxy else ""
    if reached.failure:
        return f"{reached.host} cannot be reached{through}: {reached.failure}"
    if _has_moved(reached):
        setting = name.replace("@main ", ".").replace("@", ".accounts.").replace(" ", ".")
        to = f" to {reached.moved_to}" if reached.moved_to else ""
        return f"{reached.host} has moved{to} → correct platforms.{setting}"
    return f"{reached.host} reached in {reached.milliseconds:.0f} ms{through}"


def clock_difference(reached: Mapping[str, Reached]) -> float | None:
    """By how much our clock is ahead of the servers that answered; None where none told the time."""
    offsets = [endpoint.clock_ahead for endpoint in reached.values() if endpoint.clock_ahead is not None]
    return median(offsets) if offsets else None
