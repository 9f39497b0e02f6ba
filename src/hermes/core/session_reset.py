"""Decide when a session is reset: daily, after idle minutes, or never."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from enum import StrEnum

from hermes.core.dataclasses import dataclass


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


def renewal(policy: ResetPolicy, *, last_used: float, now: float, zone: tzinfo) -> ResetMode | None:
    """Return what ended the session, ``idle`` or ``daily``; None while it goes on."""
    if policy.mode in (ResetMode.IDLE, ResetMode.BOTH) and now - last_used >= policy.idle_minutes * 60:
        return ResetMode.IDLE
    if policy.mode in (ResetMode.DAILY, ResetMode.BOTH):
        here = datetime.fromtimestamp(now, zone)
        # In a night that has this hour twice, the first one counts: a day begins once.
        today = here.replace(hour=policy.at_hour, minute=0, second=0, microsecond=0, fold=0)
        if last_used < (today if today <= here else today - timedelta(days=1)).timestamp():
            return ResetMode.DAILY
    return None


def renewal_reason(policy: ResetPolicy, *, last_used: float, now: float, zone: tzinfo) -> str:
    """Describe why the session ended; '' while it goes on."""
    match renewal(policy, last_used=last_used, now=now, zone=zone):
        case ResetMode.IDLE:
            return f"idle for {policy.idle_minutes} minutes"
        case ResetMode.DAILY:
            return f"a new day began at {policy.at_hour}:00"
        case _:
            return ""
