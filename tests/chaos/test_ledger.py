"""The judge itself: each thing that must not happen is seen when it does."""

from __future__ import annotations

from tests.chaos.ledger import Kill, Said, judge
from tests.chaos.world import Flight
from tests.fakes.server import Sent

HELLO = Said(7, "hello", 0)
KILL = Kill(0, "at random", "worker", 100.0, 100.1, 99.5, 0.5, was_reached=True, is_stuck=False)


def flight(text: str, taken_at: float, answered_at: float | None) -> Flight:
    return Flight(Sent("7", text, "1"), taken_at, answered_at)


def test_one_answer_is_good() -> None:
    assert judge([HELLO], [flight("echo: hello", 99, 99)], [KILL]).is_good


def test_no_answer_is_a_loss() -> None:
    assert judge([HELLO], [], [KILL]).lost == [HELLO]


def test_a_marked_repeat_of_a_send_in_flight_is_allowed() -> None:
    sends = [flight("echo: hello", 99.9, None), flight("↻ echo: hello", 101, 101)]
    verdict = judge([HELLO], sends, [KILL])
    assert verdict.is_good
    assert (verdict.repeats, verdict.repeats_in_flight) == (1, 1)


def test_a_repeat_without_its_mark_is_seen() -> None:
    sends = [flight("echo: hello", 99.9, None), flight("echo: hello", 101, 101)]
    assert judge([HELLO], sends, [KILL]).unmarked == [HELLO]


def test_a_repeat_of_what_was_answered_long_before_the_kill_is_double() -> None:
    sends = [flight("echo: hello", 98, 98), flight("↻ echo: hello", 101, 101)]
    assert judge([HELLO], sends, [KILL]).doubled == [HELLO]


def test_a_second_repeat_after_one_kill_is_double() -> None:
    sends = [flight("echo: hello", 99.9, None), *[flight("↻ echo: hello", at, at) for at in (101.0, 102.0)]]
    assert judge([HELLO], sends, [KILL]).doubled == [HELLO]


def test_answers_of_one_chat_in_another_order_are_seen() -> None:
    later = Said(7, "again", 0)
    sends = [flight("echo: again", 98, 98), flight("echo: hello", 99, 99)]
    assert judge([HELLO, later], sends, [KILL]).out_of_order == [later]


def test_a_preview_that_nothing_replaced_is_seen() -> None:
    assert judge([HELLO], [flight("echo: hello ▌", 99, 99)], [KILL]).unfinished == [HELLO]
