"""Schedules as people write them, and the instants at which they are due."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hermes.core.entries.schedule import (
    Schedule,
    ScheduleError,
    ScheduleKind,
    cron_slots,
    longest_prefix,
    next_after,
    parse,
)

SHANGHAI = ZoneInfo("Asia/Shanghai")
BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 1, 7, 10, 30, tzinfo=SHANGHAI).timestamp()  # a Wednesday


def read(text: str) -> Schedule:
    return parse(text, now=NOW, zone=SHANGHAI)


def first(text: str) -> str:
    at = next_after(read(text), NOW, SHANGHAI)
    assert at is not None
    return datetime.fromtimestamp(at, SHANGHAI).strftime("%a %Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("30m", 1800), ("2h", 7200), ("1d", 86400), ("90s", 90), ("1h30m", 5400), ("1h 30m", 5400),
        ("in 30 minutes", 1800), ("in an hour", 3600), ("in half an hour", 1800), ("45 minutes from now", 2700),
        ("2 hours later", 7200), ("30分钟后", 1800), ("2小时后", 7200), ("半小时后", 1800), ("1 week", 604800),
    ],
)  # fmt: skip
def test_a_duration_is_once_from_now(text: str, seconds: int) -> None:
    schedule = read(text)
    assert (schedule.kind, schedule.at, schedule.is_relative) == (ScheduleKind.ONCE, NOW + seconds, True)
    assert next_after(schedule, NOW, SHANGHAI) == NOW + seconds
    assert next_after(schedule, NOW + seconds, SHANGHAI) is None


@pytest.mark.parametrize(
    "text, canonical",
    [
        ("every 30m", "every 30m"), ("every 2 hours", "every 2h"), ("every 90 minutes", "every 90m"),
        ("each 1h30m", "every 90m"), ("every minute", "every 1m"), ("every 2 days", "every 2d"),
        ("每隔15分钟", "every 15m"), ("每2小时", "every 2h"),
    ],
)  # fmt: skip
def test_an_interval_counts_from_its_begin(text: str, canonical: str) -> None:
    schedule = read(text)
    assert (schedule.kind, schedule.text) == (ScheduleKind.EVERY, canonical)
    step = schedule.seconds
    assert next_after(schedule, NOW, SHANGHAI) == NOW + step
    assert next_after(schedule, NOW + 10 * step, SHANGHAI) == NOW + 11 * step
    assert next_after(schedule, NOW + 10 * step + 1, SHANGHAI) == NOW + 11 * step


@pytest.mark.parametrize(
    "text, due",
    [
        ("0 8 * * 1-5", "Thu 2026-01-08 08:00"),
        ("*/15 * * * *", "Wed 2026-01-07 10:45"),
        ("0 9 * * MON", "Mon 2026-01-12 09:00"),
        ("@daily", "Thu 2026-01-08 00:00"),
        ("hourly", "Wed 2026-01-07 11:00"),
        ("weekdays at 8", "Thu 2026-01-08 08:00"),
        ("weekdays at 8:15am", "Thu 2026-01-08 08:15"),
        ("every weekday at 8", "Thu 2026-01-08 08:00"),
        ("weekends at 10", "Sat 2026-01-10 10:00"),
        ("every day at 7:30", "Thu 2026-01-08 07:30"),
        ("daily at 11pm", "Wed 2026-01-07 23:00"),
        ("Every morning at 9", "Thu 2026-01-08 09:00"),
        ("every monday at 9", "Mon 2026-01-12 09:00"),
        ("every tuesday and friday at 18:00", "Fri 2026-01-09 18:00"),
        ("mondays at 9", "Mon 2026-01-12 09:00"),
        ("monthly on the 1st at 9", "Sun 2026-02-01 09:00"),
        ("每天8点", "Thu 2026-01-08 08:00"),
        ("每天早上8点半", "Thu 2026-01-08 08:30"),
        ("每天晚上8点", "Wed 2026-01-07 20:00"),
        ("工作日8点", "Thu 2026-01-08 08:00"),
        ("每周一9点", "Mon 2026-01-12 09:00"),
        ("每月1号9点", "Sun 2026-02-01 09:00"),
        ("tomorrow 9:00", "Thu 2026-01-08 09:00"),
        ("tomorrow at 9am", "Thu 2026-01-08 09:00"),
        ("today at 18:30", "Wed 2026-01-07 18:30"),
        ("at 18:30", "Wed 2026-01-07 18:30"),
        ("9:00", "Thu 2026-01-08 09:00"),
        ("monday at 8", "Mon 2026-01-12 08:00"),
        ("next friday 17:00", "Fri 2026-01-09 17:00"),
        ("wednesday 10:00", "Wed 2026-01-14 10:00"),
        ("明天9点", "Thu 2026-01-08 09:00"),
        ("今天下午3点", "Wed 2026-01-07 15:00"),
        ("2026-03-01T09:00", "Sun 2026-03-01 09:00"),
        ("2026-03-01 9:00", "Sun 2026-03-01 09:00"),
        ("2026-03-01T09:00:00+01:00", "Sun 2026-03-01 16:00"),
        ("2026-03-01T01:00Z", "Sun 2026-03-01 09:00"),
        ('"every 2h"', "Wed 2026-01-07 12:30"),
    ],
)
def test_a_phrase_is_due_when_a_person_would_expect_it(text: str, due: str) -> None:
    assert first(text) == due


@pytest.mark.parametrize(
    "text", ["30m", "every 2h", "0 8 * * 1-5", "weekdays at 8", "tomorrow 9:00", "2026-03-01T09:00"]
)
def test_the_canonical_form_is_read_as_the_same_schedule(text: str) -> None:
    schedule = read(text)
    again = read(schedule.text)
    assert next_after(again, NOW, SHANGHAI) == next_after(schedule, NOW, SHANGHAI)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "evry 5 mins", "every 0m", "every 3s", "every", "sometimes", "25:00", "tomorrow", "tomorrow 25:00",
        "61 * * * *", "0 0 30 2 *", "* * * *", "* * * * * *", "2020-01-01T00:00", "2026-02-30T09:00", "today at 9:00",
        "-5m", "0m", "9", "at 13pm", "every day", "monthly on the 40th at 9", "9" * 300, "💥", "0 0 * * 8",
        "999999999999999999999h", "every 99999d",
    ],
)  # fmt: skip
def test_a_wrong_schedule_comes_back_with_three_right_ones(text: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        read(text)
    assert len(caught.value.nearest) == 3
    for suggestion in caught.value.nearest:
        assert next_after(read(suggestion), NOW, SHANGHAI), suggestion


def test_suggestions_keep_the_numbers_of_the_wrong_schedule() -> None:
    with pytest.raises(ScheduleError) as caught:
        read("evry 5 mins")
    assert "every 5m" in caught.value.nearest
    with pytest.raises(ScheduleError) as caught:
        read("wekdays at 8:15")
    assert "weekdays at 8:15" in caught.value.nearest


def slots(expression: str, zone: ZoneInfo, after: datetime, count: int) -> list[str]:
    found = cron_slots(expression, after.timestamp(), zone)
    return [
        datetime.fromtimestamp(at, zone).strftime("%m-%d %H:%M %z") for at, _ in zip(found, range(count), strict=False)
    ]


def test_a_time_in_the_gap_of_summer_time_is_due_once_after_it() -> None:
    assert slots("30 2 * * *", BERLIN, datetime(2026, 3, 28, 12, tzinfo=BERLIN), 2) == [
        "03-29 03:00 +0200",
        "03-30 02:30 +0200",
    ]
    assert slots("30 2 * * *", NEW_YORK, datetime(2026, 3, 7, 12, tzinfo=NEW_YORK), 2) == [
        "03-08 03:00 -0400",
        "03-09 02:30 -0400",
    ]


def test_a_time_that_comes_twice_is_due_once() -> None:
    assert slots("30 2 * * *", BERLIN, datetime(2026, 10, 24, 12, tzinfo=BERLIN), 2) == [
        "10-25 02:30 +0200",
        "10-26 02:30 +0100",
    ]
    assert slots("30 1 * * *", NEW_YORK, datetime(2026, 10, 31, 12, tzinfo=NEW_YORK), 2) == [
        "11-01 01:30 -0400",
        "11-02 01:30 -0500",
    ]


def test_every_hour_is_due_in_the_hour_that_comes_twice_too() -> None:
    found = slots("0 * * * *", BERLIN, datetime(2026, 10, 25, 0, 30, tzinfo=BERLIN), 4)
    assert found == ["10-25 01:00 +0200", "10-25 02:00 +0200", "10-25 02:00 +0100", "10-25 03:00 +0100"]


def test_the_29th_of_february_is_due_in_leap_years_alone() -> None:
    found = cron_slots("0 9 29 2 *", NOW, SHANGHAI)
    years = [datetime.fromtimestamp(at, SHANGHAI).year for at, _ in zip(found, range(2), strict=False)]
    assert years == [2028, 2032]


def test_due_times_grow_whatever_the_clocks_do() -> None:
    for zone in (BERLIN, NEW_YORK):
        start = datetime(2026, 1, 1, tzinfo=zone).timestamp()
        last = start
        for at in cron_slots("*/20 1-3 * * *", start, zone):
            assert at > last
            last = at
            if at > start + timedelta(days=366).total_seconds():
                break


def test_what_was_typed_is_split_into_schedule_and_text() -> None:
    found = longest_prefix(["tomorrow", "at", "9:00", "water", "the", "plants"], read)
    assert found is not None
    schedule, rest = found
    assert rest == ["water", "the", "plants"]
    assert first(schedule.text) == "Thu 2026-01-08 09:00"
    assert longest_prefix(["water", "the", "plants"], read) is None
    cron = longest_prefix(["0", "8", "*", "*", "1-5", "news"], read)
    assert cron is not None
    assert (cron[0].text, cron[1]) == ("0 8 * * 1-5", ["news"])
