"""A clock that is set: time goes on at its own pace until the deadlines have moved."""

from __future__ import annotations

import time

import pytest

from hermes.services.clock import SteadyClock, SystemClock, steady_clock
from tests.fakes.clock import FakeClock


@pytest.mark.parametrize("seconds", [-86400.0, -5.0, 5.0, 86400.0])
def test_a_jump_is_not_told_before_it_is_accepted(seconds: float) -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    began = clock.now()
    system.jump(seconds)
    system.advance(10)
    assert clock.now() == began + 10
    assert clock.jump() == seconds
    clock.accept(clock.jump())
    assert clock.now() == system.now()
    assert clock.jump() == 0


def test_a_clock_that_went_far_ahead_is_doubted_for_a_day() -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    for jump, is_doubtful in ((3600.0, False), (30 * 86400.0, True)):
        system.jump(jump)
        clock.accept(clock.jump())
        assert clock.is_doubtful is is_doubtful
    system.advance(86400)
    assert not clock.is_doubtful


def test_a_clock_that_is_being_adjusted_is_followed() -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    for _ in range(100):
        system.jump(0.4)
        assert clock.now() == system.now()
    assert clock.jump() == 0


def test_a_clock_that_is_set_and_set_right_again_was_never_set() -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    system.jump(3600)
    clock.now()
    system.jump(-3600)
    assert clock.jump() == 0
    assert clock.now() == system.now()


def test_a_machine_that_was_asleep_is_a_clock_that_jumped() -> None:
    system, awake = FakeClock(), [0.0]
    clock = SteadyClock(system, lambda: awake[0])
    system.advance(8 * 3600)  # and no time passed for the process
    assert clock.jump() == 8 * 3600


def test_the_system_clock_is_steady_when_nobody_sets_it() -> None:
    clock = steady_clock(SystemClock())
    assert abs(clock.now() - time.time()) < 1
    assert clock.jump() == 0


def test_a_clock_that_follows_another_one_shows_its_time_whatever_the_machine_says() -> None:
    system = FakeClock()
    clock = SteadyClock(system)
    right = system.now() - 3600
    clock.follow(-3600.0)
    assert clock.now() == right
    system.jump(86400.0)  # somebody sets the machine's clock
    assert clock.now() == right, "not before the next look at the other clock"
    clock.follow(-3600.0 - 86400.0)
    system.advance(10)
    assert clock.now() == right + 10
    assert clock.jump() == 0
