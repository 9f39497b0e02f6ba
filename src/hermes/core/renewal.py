"""When a session is renewed: daily at an hour, after idle minutes, whichever comes first, or never."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum


class ResetMode(StrEnum):
    DAILY = "daily"
    IDLE = "idle"
    BOTH = "both"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ResetPolicy:
    mode: ResetMode = ResetMode.BOTH
    at_hour: int = 4
    idle_minutes: int = 120


def renewal_reason(policy: ResetPolicy, *, last_used: float, now: float, zone: tzinfo) -> str:
    """Why the session is over, in words; '' while it goes on."""
    if policy.mode in (ResetMode.IDLE, ResetMode.BOTH) and now - last_used >= policy.idle_minutes * 60:
        return f"idle for {policy.idle_minutes} minutes"
    if policy.mode in (ResetMode.DAILY, ResetMode.BOTH) and last_used < _last_reset(policy.at_hour, now, zone):
        return f"a new day began at {policy.at_hour}:00"
    return ""


def _last_reset(hour: int, now: float, zone: tzinfo) -> float:
    here = datetime.fromtimestamp(now, zone)
    today = here.replace(hour=hour, minute=0, second=0, microsecond=0)
    return (today if today <= here else today - timedelta(days=1)).timestamp()
