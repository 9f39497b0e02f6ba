"""Format sizes for people."""

from __future__ import annotations

KILOBYTE = 1000


def format_size(size: float) -> str:
    """Format a number of bytes with three digits or so: ``640 B``, ``12.4 MB``, ``230 GB``."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < KILOBYTE or unit == "GB":
            break
        number /= KILOBYTE
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
