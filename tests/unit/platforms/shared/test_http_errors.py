"""What is the same for every platform about its answers."""

from __future__ import annotations

import pytest

from hermes.platforms.shared.http_errors import clock_ahead


@pytest.mark.parametrize(
    "told, ahead",
    [
        ("Sun, 09 Sep 2001 01:46:40 GMT", 0.0),
        ("Sun, 09 Sep 2001 01:46:37 GMT", 0.0),  # whole seconds, and the way here
        ("Sun, 09 Sep 2001 02:46:40 GMT", 3600.0),
        ("Sun, 09 Sep 2001 00:46:40 GMT", -3600.0),
        ("soon", 0.0),
        ("", 0.0),
        (None, 0.0),
        ("Sun, 99 Sep 99999 01:46:40 GMT", 0.0),
    ],
)
def test_a_clock_is_wrong_when_it_is_off_by_more_than_some_seconds(told: str | None, ahead: float) -> None:
    assert clock_ahead(told, 1_000_000_000.0) == ahead
