"""The ledger of due times: every slot ends as ran, late, missed or skipped, and no slot runs twice."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.core.entries.job_slots import (
    MAX_CAUGHT_UP,
    MAX_COUNTED,
    ON_TIME_SECONDS,
    CatchUp,
    QuietHours,
    SlotState,
    decide,
)

BERLIN = ZoneInfo("Europe/Berlin")


def every(seconds: float) -> object:
    return lambda after: (after // seconds + 1) * seconds


def states(decision: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in decision.runs:  # type: ignore[attr-defined]
        found[run.state] = found.get(run.state, 0) + 1
    for passed in decision.passed:  # type: ignore[attr-defined]
        found[passed.state] = found.get(passed.state, 0) + passed.count
    return found


def test_a_slot_that_is_noticed_in_time_ran() -> None:
    decision = decide(600, 600.4, every(600), CatchUp.RUN_ONCE)  # type: ignore[arg-type]
    assert states(decision) == {SlotState.RAN: 1}
    assert decision.next_slot == 1200


@pytest.mark.parametrize(
    "policy, expected",
    [
        (CatchUp.RUN_ONCE, {SlotState.LATE: 1, SlotState.MISSED: 4}),
        (CatchUp.RUN_ALL, {SlotState.LATE: 5}),
        (CatchUp.SKIP, {SlotState.SKIPPED: 5}),
    ],
)
def test_downtime_over_five_slots_is_caught_up_as_the_policy_says(policy: CatchUp, expected: dict[str, int]) -> None:
    decision = decide(600, 3000 + 2 * ON_TIME_SECONDS, every(600), policy)  # type: ignore[arg-type]
    assert states(decision) == expected
    assert decision.next_slot == 3600


def test_a_run_that_has_not_ended_skips_the_slot_unless_all_are_wanted() -> None:
    assert states(decide(600, 600, every(600), CatchUp.RUN_ONCE, is_busy=True)) == {SlotState.SKIPPED: 1}  # type: ignore[arg-type]
    assert states(decide(600, 600, every(600), CatchUp.RUN_ALL, is_busy=True)) == {SlotState.RAN: 1}  # type: ignore[arg-type]


def test_quiet_hours_skip_a_slot_and_hold_back_what_runs_once() -> None:
    assert states(decide(600, 600, every(600), CatchUp.RUN_ONCE, quiet_until=5000)) == {SlotState.SKIPPED: 1}  # type: ignore[arg-type]
    once = decide(600, 600, lambda _: None, CatchUp.RUN_ONCE, is_once=True, quiet_until=5000)
    assert (once.next_slot, once.wait_until, states(once)) == (600, 5000, {})
    later = decide(600, 5000, lambda _: None, CatchUp.RUN_ONCE, is_once=True)
    assert states(later) == {SlotState.LATE: 1}


def test_a_job_runs_as_often_as_it_may_and_then_is_over() -> None:
    decision = decide(600, 3000, every(600), CatchUp.RUN_ALL, runs_left=2)  # type: ignore[arg-type]
    assert [run.slot for run in decision.runs] == [600, 1200]
    assert decision.next_slot is None
    assert states(decision)[SlotState.SKIPPED] == 3


def test_a_year_of_minutes_is_decided_without_counting_them() -> None:
    calls = 0

    def following(after: float) -> float:
        nonlocal calls
        calls += 1
        return (after // 60 + 1) * 60

    now = 366 * 86400.0
    decision = decide(60, now, following, CatchUp.RUN_ALL)
    assert calls < 3 * MAX_COUNTED
    assert len(decision.runs) <= MAX_CAUGHT_UP
    assert decision.runs[-1].slot == now
    assert [passed.count for passed in decision.passed] == [0]
    assert decision.passed[0].last < decision.runs[0].slot
    assert decision.next_slot == now + 60


@settings(max_examples=80, deadline=None)
@given(
    period=st.sampled_from([60, 3600, 86400]),
    policy=st.sampled_from(list(CatchUp)),
    looks=st.lists(st.tuples(st.floats(0.0, 150_000.0), st.booleans(), st.booleans()), min_size=1, max_size=6),
)
def test_each_slot_is_decided_exactly_once_as_a_plain_model_says(
    period: int, policy: CatchUp, looks: list[tuple[float, bool, bool]]
) -> None:
    """The model writes down every multiple of the period up to now, one by one."""
    now, slot = 0.0, float(period)
    ledger: dict[float, str] = {}
    model: dict[float, str] = {}
    for pause, is_busy, is_quiet in looks:
        now += pause
        quiet_until = now + 100 if is_quiet else 0.0
        due = [float(at) for at in range(int(slot), int(now) + 1, period)] if slot <= now else []
        model |= plain_model(due, now, policy, is_busy=is_busy, is_quiet=is_quiet)
        if slot > now:
            continue
        decision = decide(slot, now, every(period), policy, is_busy=is_busy, quiet_until=quiet_until)  # type: ignore[arg-type]
        for run in decision.runs:
            assert run.slot not in ledger, "a slot ran twice"
            ledger[run.slot] = run.state
        for passed in decision.passed:
            count = round((passed.last - passed.first) / period) + 1 if passed.count == 0 else passed.count
            for number in range(count):
                at = passed.first + number * period
                if at <= passed.last and at not in {run.slot for run in decision.runs}:
                    assert at not in ledger, "a slot was decided twice"
                    ledger[at] = passed.state
        assert decision.next_slot is not None
        assert decision.next_slot > now
        slot = decision.next_slot
    assert ledger == model


def plain_model(due: list[float], now: float, policy: CatchUp, *, is_busy: bool, is_quiet: bool) -> dict[float, str]:
    found: dict[float, str] = {}
    for at in due:
        is_last, is_on_time = at == due[-1], now - at <= ON_TIME_SECONDS
        runs = {
            CatchUp.RUN_ALL: at in due[-MAX_CAUGHT_UP:],
            CatchUp.RUN_ONCE: is_last,
            CatchUp.SKIP: is_last and is_on_time,
        }[policy]
        if not runs:
            found[at] = SlotState.SKIPPED if policy is CatchUp.SKIP else SlotState.MISSED
        elif is_quiet or (is_busy and policy is not CatchUp.RUN_ALL):
            found[at] = SlotState.SKIPPED
        else:
            found[at] = SlotState.RAN if is_on_time else SlotState.LATE
    return found


# Quiet hours


def at(day: int, hour: int, minute: int = 0) -> float:
    return datetime(2026, 3, day, hour, minute, tzinfo=BERLIN).timestamp()


def test_quiet_hours_over_midnight_end_in_the_morning() -> None:
    quiet = QuietHours.parse("22:00-07:00")
    assert quiet is not None
    assert quiet.until(at(10, 21, 59), BERLIN) == 0
    assert quiet.until(at(10, 22), BERLIN) == at(11, 7)
    assert quiet.until(at(11, 6, 59), BERLIN) == at(11, 7)
    assert quiet.until(at(11, 7), BERLIN) == 0


def test_quiet_hours_by_day_and_over_the_change_of_clocks() -> None:
    noon = QuietHours.parse("12-13:30")
    assert noon is not None
    assert noon.until(at(10, 12, 30), BERLIN) == at(10, 13, 30)
    night = QuietHours.parse("22:00-07:00")
    assert night is not None
    assert night.until(at(28, 23), BERLIN) == at(29, 7)


@pytest.mark.parametrize("text", ["22:00", "22:00-22:00", "25:00-07:00", "night", "22:00-", "a-b"])
def test_wrong_quiet_hours_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="22:00-07:00"):
        QuietHours.parse(text)
