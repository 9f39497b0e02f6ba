"""The bench in its shortest form: it measures a real gateway, says what it found, and leaves nothing behind.

No figure is asked to be good here: deadlines are ten times the budgets, since tests share their machine.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import machine, talk
from bench.measures import soak, start, version
from bench.rig import folder, world
from bench.rows import Plan, Row, percentile
from hermes.hosting import processes
from hermes.hosting.loop_lag import sampling

SHORT = Plan(short=True)


async def test_the_version_is_told_within_ten_times_its_budget() -> None:
    (row,) = await version.measure(SHORT)
    assert row.unit == "ms"
    assert 0 < row.value < 10 * version.CPU_MILLISECONDS


@pytest.mark.slow
async def test_a_gateway_is_measured_from_start_to_answer_and_is_gone_afterwards() -> None:
    async with folder() as place:
        async with world(place / "home") as here:
            met = await talk.bursts(here, range(1000, 1003), 1)
            tree = here.gateway.processes
        assert len(tree) >= 2
        assert not any(processes.is_alive(pid, "") for pid in (*tree, here.model.pid))
    assert not place.exists()
    assert (met.count, len(met.waits)) == (3, 3)
    assert 0 < met.cpu_each < 0.1
    assert all(0 < wait < 10 * start.HEALTH_SECONDS for wait in met.waits)


@pytest.mark.slow
@pytest.mark.timeout(600)  # less than a minute on a machine that has nothing else to do
async def test_five_thousand_one_shot_sessions_leave_less_than_two_megabytes() -> None:
    async with folder() as place, world(place / "home") as here:
        before, after = await soak.one_shots_leave(here)
    assert (after.resident - before.resident) / machine.MEGABYTE < soak.ONE_SHOT_MEGABYTES
    assert after.files - before.files <= soak.LEVEL_FILES
    assert after.threads - before.threads <= soak.LEVEL_THREADS
    assert after.tasks - before.tasks <= soak.LEVEL_TASKS


@pytest.mark.slow
async def test_a_mixed_load_is_answered_as_expected_and_leaves_no_task_behind() -> None:
    figures = {row.what: row for row in await soak.measure(SHORT)}
    assert figures["soak: requests answered in a way that was not expected"].value == 0
    for what in ("descriptors", "threads", "tasks"):
        assert figures[f"soak: {what}, second half against first"].is_met


def test_every_measurement_is_listed_with_what_it_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(bench.MEASURES)
    assert all(len(line.split()) > 4 for line in lines)


def test_a_figure_is_shown_with_its_budget_and_its_load(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [Row("quick", 1.5, "ms", 2.0), Row("slow", 3.25, "ms", 2.0), Row("free", 7, "MB")]
    bench.print_table([bench.Measured("any", 1.25, rows), bench.Measured("broken", 0.5, [], "BenchError: no answer")])
    told = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert told[1] == ["quick", "1.50", "ms", "≤", "2", "ms", "✓", "1.2"]
    assert told[2] == ["slow", "3.25", "ms", "≤", "2", "ms", "✗", "1.2"]
    assert told[3] == ["free", "7", "MB", "1.2"]
    assert told[4] == ["broken", "not", "measured", "✗", "0.5", "BenchError:", "no", "answer"]


def test_percentiles_are_of_the_nearest_rank() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 50), percentile(values, 99), percentile([], 99)) == (51.0, 100.0, 0.0)


async def test_the_loop_says_how_late_it_was(tmp_path: Path) -> None:
    file = tmp_path / "lag.txt"
    async with sampling({"HERMES_TEST_LAG": str(file)}):
        await asyncio.sleep(0.02)
        time.sleep(0.05)  # noqa: ASYNC251 - the very thing that is to be seen
        await asyncio.sleep(0.02)
    assert max(float(line.split()[1]) for line in file.read_text().splitlines()) > 0.03


async def test_without_being_asked_no_timer_runs() -> None:
    before = asyncio.all_tasks()
    async with sampling({}):
        assert asyncio.all_tasks() == before
