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
    sender_id: str = "7"
    role: str = "user"

    @property
    def ready_at(self) -> float:
        return self.received_at + (PAUSE if self.may_continue else 0.0)


@dataclass(frozen=True)
class Numbered:
    """A row that can be told from an equal one."""

    row: Row
    number: int
    kind: str = "message"

    @property
    def sender_id(self) -> str:
        return self.row.sender_id

    @property
    def role(self) -> str:
        return self.row.role

    @property
    def received_at(self) -> float:
        return self.row.received_at

    @property
    def ready_at(self) -> float:
        return self.row.ready_at


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


OTHERS = [Row(2, sender_id="8"), Row(2, role="guest"), Row(2, sender_id="8", role="owner")]


@pytest.mark.parametrize("other", OTHERS, ids=["another sender", "another role", "both"])
@pytest.mark.parametrize("mode", list(BusyMode))
def test_a_prompt_ends_where_the_sender_or_the_role_changes(mode: BusyMode, other: Row) -> None:
    rows = [Row(1), other, Row(3)]
    assert rows_of_next_prompt(rows, mode, 5.0) == ([Row(1)], None)
    assert rows_of_next_prompt(rows[1:], mode, 5.0) == ([other], None)


@pytest.mark.parametrize("mode", list(BusyMode))
def test_what_another_writes_between_the_parts_of_a_message_does_not_tear_it_apart(mode: BusyMode) -> None:
    parts = [Row(1, True), Row(1.5, True), Row(1.9)]
    rows = [parts[0], Row(1.2, sender_id="8"), parts[1], Row(1.6, sender_id="9"), parts[2]]
    assert rows_of_next_prompt(rows, mode, 5.0) == (parts, None)


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
SHARED = st.lists(st.tuples(st.floats(0, 20), st.booleans(), st.sampled_from("78")), min_size=1, max_size=8).map(
    lambda found: [Row(at, flag, sender_id=sender) for at, flag, sender in sorted(found)]
)


@given(SHARED, st.sampled_from(BusyMode))
def test_in_a_shared_chat_every_row_gets_its_prompt_once_and_none_holds_two_senders(
    rows: list[Row], mode: BusyMode
) -> None:
    left = list(enumerate(rows))
    while left:
        group, _ = rows_of_next_prompt([Numbered(row, number) for number, row in left], mode, 1000.0)
        assert group[0].number == left[0][0], "whoever waits longest is next"
        assert len({row.sender_id for row in group}) == 1
        taken = {row.number for row in group}
        assert len(taken) == len(group)
        left = [one for one in left if one[0] not in taken]


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


@pytest.mark.parametrize("mode", list(BusyMode))
def test_requests_of_one_sender_are_turns_of_their_own_also_in_a_chat(mode: BusyMode) -> None:
    asked = [Row(float(number), kind="request", sender_id="key:bob") for number in range(2)]
    rows = [Row(0.0), *asked, Row(3.0)]
    groups: list[list[Row]] = []
    while rows:
        group, _ = rows_of_next_prompt(rows, mode, 10.0)
        groups.append(list(group))
        rows = rows[len(group) :]
    assert [len(group) for group in groups] == [1, 1, 1, 1]
