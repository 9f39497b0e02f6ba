"""Which messages make one prompt."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.lane import MAX_JOIN_SECONDS, BusyMode, rows_of_next_prompt

PAUSE = 0.8


@dataclass(frozen=True)
class Row:
    received_at: float
    may_continue: bool = False
    kind: str = "message"

    @property
    def ready_at(self) -> float:
        return self.received_at + (PAUSE if self.may_continue else 0.0)


@pytest.mark.parametrize("mode", list(BusyMode))
def test_nothing_makes_no_prompt(mode: BusyMode) -> None:
    assert rows_of_next_prompt([], mode, 0.0) == ((), None)


@pytest.mark.parametrize("mode", [BusyMode.INTERRUPT, BusyMode.STEER])
def test_all_that_arrived_is_one_prompt(mode: BusyMode) -> None:
    rows = [Row(1), Row(2), Row(3)]
    assert rows_of_next_prompt(rows, mode, 3.0) == (rows, None)


def test_in_queue_mode_each_is_a_prompt_of_its_own() -> None:
    assert rows_of_next_prompt([Row(1), Row(2)], BusyMode.QUEUE, 3.0) == ([Row(1)], None)


def test_in_queue_mode_the_parts_of_one_message_stay_together() -> None:
    parts = [Row(1, True), Row(1.5, True), Row(1.9)]
    assert rows_of_next_prompt([*parts, Row(2)], BusyMode.QUEUE, 3.0) == (parts, None)


def test_in_queue_mode_what_came_too_late_is_no_part_of_it() -> None:
    assert rows_of_next_prompt([Row(1, True), Row(2)], BusyMode.QUEUE, 3.0) == ([Row(1, True)], None)


def test_what_was_queued_by_itself_is_a_prompt_of_its_own_in_every_mode() -> None:
    alone = Row(2, kind="queue")
    rows = [Row(1), alone, Row(3), Row(4)]
    assert rows_of_next_prompt(rows, BusyMode.INTERRUPT, 5.0) == ([Row(1)], None)
    assert rows_of_next_prompt(rows[1:], BusyMode.INTERRUPT, 5.0) == ([alone], None)
    assert rows_of_next_prompt(rows[2:], BusyMode.INTERRUPT, 5.0) == ([Row(3), Row(4)], None)


def test_what_was_to_steer_a_turn_that_has_ended_is_a_message_like_any_other() -> None:
    rows = [Row(1), Row(2, kind="steer"), Row(3)]
    assert rows_of_next_prompt(rows, BusyMode.INTERRUPT, 5.0) == (rows, None)


def test_one_that_may_go_on_is_waited_for() -> None:
    assert rows_of_next_prompt([Row(1, True)], BusyMode.INTERRUPT, 1.2) == ((), 1 + PAUSE)
    assert rows_of_next_prompt([Row(1, True)], BusyMode.INTERRUPT, 1 + PAUSE) == ([Row(1, True)], None)


def test_a_stream_that_never_ends_is_not_waited_for_for_ever() -> None:
    rows = [Row(number * 0.5, True) for number in range(100)]
    group, _ = rows_of_next_prompt(rows, BusyMode.INTERRUPT, MAX_JOIN_SECONDS)
    assert group


ROWS = st.lists(st.tuples(st.floats(0, 20), st.booleans()), min_size=1, max_size=8).map(
    lambda found: [Row(at, flag) for at, flag in sorted(found)]
)


@given(ROWS, st.sampled_from(BusyMode), st.floats(0, 60))
def test_either_some_of_the_first_rows_or_a_time_to_look_again(rows: list[Row], mode: BusyMode, now: float) -> None:
    group, look_again_at = rows_of_next_prompt(rows, mode, now)
    if group:
        assert look_again_at is None
        assert list(group) == rows[: len(group)]
    else:
        assert look_again_at is not None
        assert now < look_again_at <= rows[0].received_at + MAX_JOIN_SECONDS
        assert rows_of_next_prompt(rows, mode, look_again_at)[0]


@given(ROWS, st.sampled_from(BusyMode))
def test_every_row_gets_its_prompt_in_order(rows: list[Row], mode: BusyMode) -> None:
    seen: list[Row] = []
    left = list(rows)
    while left:
        group, _ = rows_of_next_prompt(left, mode, 1000.0)
        assert group
        seen += group
        left = left[len(group) :]
    assert seen == rows
