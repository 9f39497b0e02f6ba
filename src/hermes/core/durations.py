"""Lengths of time as people say them."""

from __future__ import annotations


def span(seconds: float) -> str:
    """``0.4 s``, ``21 s``, ``2 min``, ``3 h 5 min``, ``3 d 4 h``."""
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


def count(number: int, word: str) -> str:
    """``1 message``, ``2 messages``."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
