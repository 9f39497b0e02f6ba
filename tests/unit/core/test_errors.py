"""What an error says is safe to act on, whatever a platform or a plugin put into it."""

from __future__ import annotations

import math

import pytest

from hermes.core.errors import MAX_RETRY_SECONDS, UNKNOWN_RETRY_SECONDS, RateLimitedError


@pytest.mark.parametrize(
    "told, waited",
    [
        (7, 7),
        (0.0, 0.0),
        (-5, 0.0),
        (math.nan, UNKNOWN_RETRY_SECONDS),
        (math.inf, MAX_RETRY_SECONDS),
        (-math.inf, 0.0),
    ],
)
def test_pause_that_a_platform_asks_for_is_always_one_that_a_timer_can_wait(told: float, waited: float) -> None:
    assert RateLimitedError("Slow down.", told).retry_after == waited
