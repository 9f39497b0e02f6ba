"""Rules of the board."""

from __future__ import annotations

import pytest

from hermes.core.entries.kanban import (
    BlockReason,
    RunOutcome,
    TaskState,
    after_run,
    closes_circle,
    is_board_name,
    parse_task_number,
    place_of_ready,
    refusal_of_move,
)


@pytest.mark.parametrize(
    "text, number", [("12", 12), ("#12", 12), (" 7 ", 7), ("#", None), ("1.5", None), ("-3", None)]
)
def test_numbers_of_tasks_are_read_with_and_without_the_hash(text: str, number: int | None) -> None:
    assert parse_task_number(text) == number


@pytest.mark.parametrize("name, is_one", [("main", True), ("a-1", True), ("", False), ("Main", False), ("../x", False)])
def test_names_of_boards_are_plain_words(name: str, is_one: bool) -> None:
    assert is_board_name(name) is is_one


def test_nobody_moves_a_task_to_running_by_hand() -> None:
    assert "by itself" in refusal_of_move(TaskState.TODO, TaskState.RUNNING, has_open_needs=False)


def test_a_task_with_open_dependencies_cannot_be_completed() -> None:
    assert refusal_of_move(TaskState.TODO, TaskState.DONE, has_open_needs=True)
    assert not refusal_of_move(TaskState.TODO, TaskState.DONE, has_open_needs=False)


def test_an_archived_task_comes_back_as_todo() -> None:
    assert refusal_of_move(TaskState.ARCHIVED, TaskState.READY, has_open_needs=False)
    assert not refusal_of_move(TaskState.ARCHIVED, TaskState.TODO, has_open_needs=False)


def test_a_task_that_shall_be_ready_waits_for_others_and_for_its_time() -> None:
    assert place_of_ready(open_needs=[1], not_before=None, now=10.0).reason is BlockReason.DEPENDENCY
    assert place_of_ready(open_needs=[], not_before=20.0, now=10.0).state is TaskState.SCHEDULED
    assert place_of_ready(open_needs=[], not_before=5.0, now=10.0).state is TaskState.READY


@pytest.mark.parametrize("outcome", [RunOutcome.FAILED, RunOutcome.TIMED_OUT])
def test_a_failed_run_is_tried_again_later_each_time_and_then_blocked(outcome: RunOutcome) -> None:
    first, second, third = (
        after_run(outcome, attempts=number, max_attempts=3, needs_review=False) for number in (1, 2, 3)
    )
    assert first.state is second.state is TaskState.SCHEDULED
    assert 0 < first.wait_seconds < second.wait_seconds
    assert third.state is TaskState.BLOCKED
    assert third.reason is not None
    assert third.reason.value == outcome.value


def test_an_answered_run_is_done_or_waits_for_a_review() -> None:
    assert after_run(RunOutcome.ANSWERED, attempts=1, max_attempts=3, needs_review=False).state is TaskState.DONE
    assert after_run(RunOutcome.ANSWERED, attempts=1, max_attempts=3, needs_review=True).state is TaskState.REVIEW


def test_a_circle_of_dependencies_is_found_over_several_tasks() -> None:
    known = {2: [3], 3: [4], 4: []}
    assert closes_circle(4, 2, known)
    assert closes_circle(2, 2, known)
    assert not closes_circle(2, 4, known)
