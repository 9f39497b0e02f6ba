"""Find the owner's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


@lru_cache(maxsize=8)
def zone_of(name: str) -> tzinfo:
    """The named zone; '' or one that this machine does not know is the machine's own."""
    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):  # the configuration says so when it is loaded
            pass
    return datetime.now().astimezone().tzinfo or UTC
