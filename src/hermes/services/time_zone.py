"""Find the owner's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

LOCALTIME = "/etc/localtime"


@lru_cache(maxsize=64)
def zone_of(name: str) -> tzinfo:
    """The named zone; '' or one that this machine does not know is the machine's own."""
    if name:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):  # the configuration says so when it is loaded
            pass
    return _zone_of_machine()


def _zone_of_machine() -> tzinfo:
    """The zone with its rules for summer time, where the machine has them: an offset alone is wrong half the year."""
    offset = datetime.now().astimezone().tzinfo or UTC
    try:
        with open(LOCALTIME, "rb") as file:
            zone = ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return offset
    # A process may have been started with another zone than the machine's, by a TZ that is no name.
    now = datetime.now(UTC)
    return zone if zone.utcoffset(now.astimezone(zone)) == now.astimezone().utcoffset() else offset
