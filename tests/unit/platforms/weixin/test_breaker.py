"""The pause after a refusal: it grows, it ends, and nothing makes it longer than it is."""

from __future__ import annotations

import pytest

from hermes.platforms.weixin.breaker import Breaker

NOW = 1_760_000_000.0


def test_what_was_refused_beside_others_counts_once() -> None:
    breaker = Breaker(30)
    for _ in range(5):
        breaker.trip(NOW)
    assert (breaker.left(NOW), breaker.is_first) == (30, True)
    breaker.trip(NOW + 29)
    assert breaker.left(NOW + 29) == 1
    breaker.trip(NOW + 30)
    assert (breaker.left(NOW + 30), breaker.is_first) == (60, False)


def test_a_clock_that_was_set_back_does_not_make_the_pause_longer() -> None:
    breaker = Breaker(30)
    breaker.trip(NOW)
    assert breaker.left(NOW - 86_400) == 30


def test_one_success_ends_it_and_the_next_refusal_starts_anew() -> None:
    breaker = Breaker(30)
    breaker.trip(NOW)
    breaker.trip(NOW + 31)
    assert breaker.close()
    assert (breaker.left(NOW + 31), breaker.text) == (0, "")
    assert not breaker.close(), "that is no news"
    breaker.trip(NOW + 40)
    assert breaker.left(NOW + 40) == 30


def test_it_is_the_same_after_a_restart() -> None:
    breaker = Breaker(30)
    breaker.trip(NOW)
    breaker.trip(NOW + 31)
    again = Breaker.of(breaker.text, 30)
    assert (again.left(NOW + 50), again.is_first, again.tripped_at) == (41, False, NOW + 31)


@pytest.mark.parametrize("text", ["", "soon", "1 2", "1 2 3 4", "x y z"])
def test_a_mark_that_cannot_be_read_counts_as_none(text: str) -> None:
    assert Breaker.of(text, 30).left(NOW) == 0


def test_a_damaged_mark_keeps_nobody_waiting_for_more_than_an_hour() -> None:
    assert Breaker.of(f"1e300 {NOW + 1e9} {NOW}", 30).left(NOW) == 3600
