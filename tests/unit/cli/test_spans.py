"""Lengths of time as people type them."""

from __future__ import annotations

import pytest

from hermes.cli.spans import seconds_of


@pytest.mark.parametrize(
    "typed, seconds", [("90s", 90), ("30m", 1800), ("2 h", 7200), ("1d", 86400), ("1.5w", 907200), ("5min", 300)]
)
def test_spans_are_understood(typed: str, seconds: float) -> None:
    assert seconds_of(typed) == seconds


@pytest.mark.parametrize("typed", ["", "soon", "5", "-3m", "3y"])
def test_other_words_are_not(typed: str) -> None:
    assert seconds_of(typed) is None
