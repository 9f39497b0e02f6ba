"""Which deaths count as bad starts, and what follows from three of them."""

from __future__ import annotations

import pytest

from hermes.hosting.restart_policy import RestartPolicy, WorkerExit

CRASH = WorkerExit(code=1)


@pytest.mark.parametrize(
    "ended",
    [
        WorkerExit(code=1),
        WorkerExit(code=1, ready_seconds=9.9),
        WorkerExit(signal=11, ready_seconds=1.0),
        WorkerExit(signal=9, out_of_memory=True),
        WorkerExit(signal=9, stalled_seconds=31.0),
    ],
    ids=["before ready", "soon after ready", "segfault", "out of memory", "stalled before ready"],
)
def test_a_worker_that_dies_by_itself_at_its_start_counts(ended: WorkerExit) -> None:
    assert ended.was_unclean_start


@pytest.mark.parametrize(
    "ended",
    [
        WorkerExit(signal=9),
        WorkerExit(signal=15, ready_seconds=1.0),
        WorkerExit(code=1, ready_seconds=10.1),
        WorkerExit(code=1, ready_seconds=1.0, settled=True),
        WorkerExit(code=0),
        WorkerExit(code=75),
        WorkerExit(code=78),
    ],
    ids=["killed", "terminated", "long after ready", "had settled something", "asked", "restart", "configuration"],
)
def test_every_other_end_does_not_count(ended: WorkerExit) -> None:
    assert not ended.was_unclean_start
    assert RestartPolicy().pause_seconds(ended, 0.0) == 0


def test_three_bad_starts_in_five_minutes_are_a_loop() -> None:
    restarts = RestartPolicy()
    for now in (0.0, 100.0):
        restarts.note(CRASH, now)
    assert not restarts.is_looping(100.0)
    restarts.note(CRASH, 299.0)
    assert restarts.is_looping(299.0)


def test_a_loop_is_over_when_five_minutes_have_passed() -> None:
    restarts = RestartPolicy()
    for now in (0.0, 1.0, 2.0):
        restarts.note(CRASH, now)
    assert restarts.is_looping(299.0)
    assert not restarts.is_looping(301.0)


def test_pauses_grow_up_to_a_minute() -> None:
    restarts = RestartPolicy()
    pauses = []
    for now in range(12):
        restarts.note(CRASH, float(now))
        pauses.append(restarts.pause_seconds(CRASH, float(now)))
    assert pauses[:4] == [0.25, 0.5, 1.0, 2.0]
    assert pauses[-1] == 60.0


@pytest.mark.parametrize(
    "ended, kind, words",
    [
        (WorkerExit(code=0), "asked", "stopped as asked"),
        (WorkerExit(code=75), "restart", "restart asked"),
        (WorkerExit(code=78), "configuration", "ended with exit code 78"),
        (WorkerExit(code=1), "crashed", "ended with exit code 1"),
        (WorkerExit(signal=9), "killed", "killed by signal 9"),
        (WorkerExit(signal=11), "crashed", "killed by signal 11"),
        (WorkerExit(signal=9, out_of_memory=True), "memory", "killed by signal 9, out of memory"),
        (WorkerExit(signal=9, stalled_seconds=30.2), "stalled", "its heart had stopped for 30 s"),
    ],
)
def test_how_it_ended_is_told_in_words(ended: WorkerExit, kind: str, words: str) -> None:
    assert (ended.kind, ended.describe()) == (kind, words)


@pytest.mark.parametrize(
    "ended",
    [
        WorkerExit(code=75),
        WorkerExit(signal=9, ready_seconds=10.1),
        WorkerExit(signal=9, ready_seconds=1.0, settled=True),
    ],
    ids=["a person asked for a restart", "it lived long enough", "it settled an event"],
)
def test_what_shows_that_a_start_works_ends_the_loop(ended: WorkerExit) -> None:
    restarts = looping()
    restarts.note(ended, 3.0)
    assert not restarts.is_looping(3.0)


@pytest.mark.parametrize(
    "ended",
    [
        WorkerExit(signal=9, ready_seconds=60.0, were_paused=True),
        WorkerExit(signal=9),
        WorkerExit(code=1, ready_seconds=2.0),
    ],
    ids=["its platforms were still paused", "killed before it was ready", "died just after it resumed them"],
)
def test_what_proves_nothing_leaves_the_loop(ended: WorkerExit) -> None:
    restarts = looping()
    restarts.note(ended, 3.0)
    assert restarts.is_looping(3.0)


def test_ends_that_nobody_asked_for_are_counted_for_an_hour() -> None:
    restarts = RestartPolicy()
    for ended in (WorkerExit(signal=9, ready_seconds=100.0), CRASH, WorkerExit(code=0), WorkerExit(code=78)):
        restarts.note(ended, 0.0)
    restarts.note(WorkerExit(signal=9), 1800.0)
    assert restarts.ages(1800.0) == [1800.0, 1800.0, 0.0]
    restarts.note(WorkerExit(signal=9), 3700.0)
    assert restarts.ages(3700.0) == [1900.0, 0.0]
    restarts.note(WorkerExit(code=75), 3701.0)
    assert restarts.ages(3701.0) == []


def looping() -> RestartPolicy:
    restarts = RestartPolicy()
    for now in (0.0, 1.0, 2.0):
        restarts.note(CRASH, now)
    return restarts
