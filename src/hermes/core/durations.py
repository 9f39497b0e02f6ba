"""Format and parse durations as people write them, and show times in the owner's zone."""

from __future__ import annotations

import re
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


_zones: list[Callable[[], tzinfo | None]] = []


def use_zone(find: Callable[[], tzinfo | None]) -> None:
    """Show times in the zone that ``find`` returns; None is the zone of the process. Asked with every time shown."""
    _zones[:] = [find]


def format_time(form: str, at: float) -> str:
    """Format a moment as ``strftime`` does, in the owner's zone."""
    zone = _zones[0]() if _zones else None
    if zone is None:
        return time.strftime(form, time.localtime(at))
    from datetime import datetime

    return datetime.fromtimestamp(at, zone).strftime(form)


def format_duration(seconds: float) -> str:
    """Format seconds: ``0.4 s``, ``21 s``, ``2 min``, ``3 h 5 min``, ``3 d 4 h``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds < 59.5 else "1 min"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def parse_duration(text: str) -> float | None:
    """Parse ``90s``, ``30m``, ``2h``, ``1d`` or ``2w`` into seconds; None for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h|d|w)", text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] if found else None


def count(number: int, word: str) -> str:
    """Format a count with its noun: ``1 message``, ``2 messages``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
