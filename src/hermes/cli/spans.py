"""Lengths of time as people type them."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def seconds_of(text: str) -> float | None:
    """``90s``, ``30m``, ``2h``, ``1d``, ``2w`` in seconds; None for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?(s|m|min|h|d|w)", text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] if found else None
