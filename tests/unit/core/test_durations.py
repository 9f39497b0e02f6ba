"""Parse durations as people type them, and format them for reading."""

from __future__ import annotations

import pytest

from hermes.core.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    "typed, seconds", [("90s", 90), ("30m", 1800), ("2 h", 7200), ("1d", 86400), ("1.5w", 907200), ("5min", 300)]
)
def test_typed_duration_becomes_seconds(typed: str, seconds: float) -> None:
    assert parse_duration(typed) == seconds


@pytest.mark.parametrize("typed", ["", "soon", "5", "-3m", "3y"])
def test_text_that_is_no_duration_is_refused(typed: str) -> None:
    assert parse_duration(typed) is None


@pytest.mark.parametrize(
    "seconds, text",
    [
        (0.42, "0.4 s"),
        (21, "21 s"),
        (59.7, "1 min"),
        (125, "2 min"),
        (7200, "2 h"),
        (11100, "3 h 5 min"),
        (273600, "3 d 4 h"),
    ],
)
def test_seconds_become_a_readable_duration(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
