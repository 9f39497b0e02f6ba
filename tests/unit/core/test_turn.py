"""What a turn does next follows from its rows alone."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.turn import CallModel, CloseCall, RunCall, WaitForApproval, identical_in_a_row, next_action

STATES = ("proposed", "waiting", "allowed", "refused", "started", "done")


@dataclass(frozen=True)
class Call:
    state: str
    name: str = "read_file"
    arguments: str = "{}"


def decide(*states: str, repeatable: bool = True, steps: int = 1, max_steps: int = 9) -> object:
    calls = [Call(state) for state in states]
    return next_action(calls, [repeatable] * len(calls), steps=steps, max_steps=max_steps)


def test_with_no_calls_open_the_model_speaks() -> None:
    assert decide(steps=0) == CallModel()
    assert decide("done", "done") == CallModel()


def test_at_the_last_step_it_is_asked_for_a_summary() -> None:
    assert decide("done", steps=9) == CallModel(wants_summary=True)
    assert decide("done", steps=8) == CallModel(wants_summary=False)


def test_calls_run_in_their_order() -> None:
    assert decide("done", "proposed", "proposed") == RunCall(1)
    assert decide("allowed", "proposed") == RunCall(0)


def test_a_waiting_call_holds_up_none_that_may_run() -> None:
    assert decide("waiting", "proposed") == RunCall(1)
    assert decide("waiting", "refused") == CloseCall(1, "refused")
    assert decide("waiting", "done") == WaitForApproval()


def test_what_was_started_runs_again_only_if_it_may() -> None:
    assert decide("started") == RunCall(0)
    assert decide("started", repeatable=False) == CloseCall(0, "interrupted")
    assert decide("proposed", repeatable=False) == RunCall(0)


@given(st.lists(st.sampled_from(STATES), max_size=6), st.lists(st.booleans(), min_size=6, max_size=6))
def test_the_model_speaks_only_when_every_call_is_answered(states: list[str], repeatable: list[bool]) -> None:
    action = next_action([Call(state) for state in states], repeatable, steps=1, max_steps=9)
    match action:
        case CallModel():
            assert all(state == "done" for state in states)
        case WaitForApproval():
            assert set(states) - {"done"} == {"waiting"}
        case RunCall(index):
            assert states[index] in ("proposed", "allowed", "started")
        case CloseCall(index, why):
            assert states[index] == {"refused": "refused", "interrupted": "started"}[why]


@given(st.lists(st.sampled_from(STATES), min_size=1, max_size=6))
def test_doing_what_is_said_always_comes_to_an_end(states: list[str]) -> None:
    """Each action closes a call; a person's answer opens the way when all that is left waits."""
    action = decide(*states)
    for _ in range(2 * len(states)):
        if isinstance(action, WaitForApproval):
            states[states.index("waiting")] = "allowed"
        elif isinstance(action, RunCall | CloseCall):
            states[action.index] = "done"
        action = decide(*states)
    assert isinstance(action, CallModel), "it never ends"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=8))
def test_only_the_newest_calls_in_a_row_are_counted(made: list[tuple[str, str]]) -> None:
    count = identical_in_a_row(made, "a", "x")
    assert made[len(made) - count :] == [("a", "x")] * count
    assert count == len(made) or made[len(made) - count - 1] != ("a", "x")
