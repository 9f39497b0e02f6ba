"""When a session is renewed."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.session_reset import ResetMode, ResetPolicy, renewal_reason

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def reason(mode: ResetMode, last_used: str, now: str) -> str:
    return renewal_reason(ResetPolicy(mode), last_used=at(last_used), now=at(now), zone=BERLIN)


@pytest.mark.parametrize(
    "mode, last_used, now, is_over",
    [
        (ResetMode.IDLE, "2026-01-05T12:00", "2026-01-05T13:59", False),
        (ResetMode.IDLE, "2026-01-05T12:00", "2026-01-05T14:00", True),
        (ResetMode.DAILY, "2026-01-05T23:00", "2026-01-06T03:59", False),
        (ResetMode.DAILY, "2026-01-05T23:00", "2026-01-06T04:00", True),
        (ResetMode.DAILY, "2026-01-06T04:00", "2026-01-06T23:59", False),
        (ResetMode.DAILY, "2026-01-06T03:59", "2026-01-06T04:01", True),
        (ResetMode.BOTH, "2026-01-06T03:59", "2026-01-06T04:01", True),
        (ResetMode.BOTH, "2026-01-06T12:00", "2026-01-06T14:00", True),
        (ResetMode.BOTH, "2026-01-06T12:00", "2026-01-06T13:00", False),
        (ResetMode.NONE, "2026-01-06T12:00", "2036-01-06T12:00", False),
        # Clocks go forward at 2:00 on the 29th of March and back at 3:00 on the 25th of October.
        (ResetMode.DAILY, "2026-03-28T23:00", "2026-03-29T03:59", False),
        (ResetMode.DAILY, "2026-03-28T23:00", "2026-03-29T04:00", True),
        (ResetMode.DAILY, "2026-10-24T23:00", "2026-10-25T03:59", False),
        (ResetMode.DAILY, "2026-10-24T23:00", "2026-10-25T04:00", True),
    ],
)
def test_a_session_ends_by_its_policy(mode: ResetMode, last_used: str, now: str, is_over: bool) -> None:
    assert bool(reason(mode, last_used, now)) is is_over


def test_the_reason_is_told_in_words() -> None:
    assert reason(ResetMode.BOTH, "2026-01-06T12:00", "2026-01-06T15:00") == "idle for 120 minutes"
    assert reason(ResetMode.DAILY, "2026-01-05T12:00", "2026-01-06T12:00") == "a new day began at 4:00"


@given(
    st.floats(1.73e9, 1.8e9),
    st.floats(0, 3 * 86400),
    st.integers(0, 23),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]),
)
def test_a_session_older_than_a_day_is_over_and_none_is_in_the_same_instant(
    now: float, age: float, hour: int, zone: str
) -> None:
    policy = ResetPolicy(ResetMode.DAILY, at_hour=hour)
    is_over = bool(renewal_reason(policy, last_used=now - age, now=now, zone=ZoneInfo(zone)))
    if age >= 25 * 3600:  # the longest day of the year
        assert is_over
    if age == 0:
        assert not is_over


@given(st.floats(1e9, 2e9), st.floats(0, 1e6))
def test_both_is_whichever_comes_first(now: float, age: float) -> None:
    def is_over(which: ResetMode) -> bool:
        return bool(renewal_reason(ResetPolicy(which), last_used=now - age, now=now, zone=BERLIN))

    assert is_over(ResetMode.BOTH) == (is_over(ResetMode.IDLE) or is_over(ResetMode.DAILY))
    assert not is_over(ResetMode.NONE)
