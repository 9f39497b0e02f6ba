"""The board on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.kanban import AGENT, AfterRun, BlockReason, RunOutcome, TaskState
from hermes.store.db import Database
from hermes.store.kanban import runs, tasks
from hermes.store.kanban.open import open_board
from hermes.store.kanban.tasks import NewTask, Task

NOW = 1_000.0


@pytest.fixture
async def board(database: Database, tmp_path: Path) -> AsyncIterator[Database]:
    async with open_board(database, tmp_path) as opened:
        await opened.write(tasks.make_board, "main", "Main", now=NOW)
        yield opened


async def make(board: Database, title: str, **more: object) -> Task:
    new = NewTask(title, assignee=AGENT, state=TaskState.READY, **more)  # type: ignore[arg-type]
    number = await board.write(tasks.make, new, actor="ann", now=NOW)
    task = await board.read(tasks.get, number)
    assert task is not None
    return task


async def test_numbers_grow_and_a_dedupe_key_makes_one_task(board: Database) -> None:
    first, second = await make(board, "a", dedupe_key="k"), await make(board, "b", dedupe_key="k")
    third = await make(board, "c")
    assert (first.id, second.id, third.id) == (1, 1, 2)


async def test_tasks_made_at_the_same_time_have_different_numbers(board: Database) -> None:
    made = await asyncio.gather(*(make(board, f"task {number}") for number in range(20)))
    assert sorted(task.id for task in made) == list(range(1, 21))


async def test_a_task_moves_only_from_the_column_in_which_it_was_read(board: Database) -> None:
    task = await make(board, "a")
    assert await board.write(tasks.move, task, TaskState.DONE, actor="ann", now=NOW)
    assert not await board.write(tasks.move, task, TaskState.BLOCKED, actor="bob", now=NOW)
    history = await board.read(tasks.history, task.id)
    assert [event.kind for event in history] == ["made", "moved"]


async def test_a_field_that_is_no_field_is_refused(board: Database) -> None:
    task = await make(board, "a")
    with pytest.raises(ValueError, match="state"):
        await board.write(tasks.change, task, {"state": "done"}, actor="ann", now=NOW)


async def test_no_more_runs_begin_than_allowed(board: Database) -> None:
    ready = [await make(board, title) for title in "abc"]
    begun = await asyncio.gather(
        *(board.write(runs.begin, task, f"run_{task.id}", most=2, seconds=60, now=NOW) for task in ready)
    )
    assert sum(run is not None for run in begun) == 2


async def test_a_task_begins_once(board: Database) -> None:
    task = await make(board, "a")
    both = [await board.write(runs.begin, task, name, most=9, seconds=60, now=NOW) for name in ("run_1", "run_2")]
    assert [run is not None for run in both] == [True, False]


async def test_a_run_ends_once_and_frees_the_tasks_that_waited(board: Database) -> None:
    task, waiting = await make(board, "first"), await make(board, "second")
    await board.write(tasks.add_need, waiting, task.id, actor="ann", now=NOW)
    await board.write(tasks.move, waiting, TaskState.BLOCKED, actor="ann", now=NOW, blocked_by=BlockReason.DEPENDENCY)
    run = await board.write(runs.begin, task, "run_1", most=1, seconds=60, now=NOW)
    assert run is not None
    end: dict[str, Any] = {"reason": "", "result": "42", "session_id": "s_1", "now": NOW + 1}
    after = AfterRun(TaskState.DONE)
    assert await board.write(runs.end, run, RunOutcome.ANSWERED, after, **end)
    assert not await board.write(runs.end, run, RunOutcome.FAILED, after, **end)
    done, freed = await board.read(tasks.get, task.id), await board.read(tasks.get, waiting.id)
    assert done is not None
    assert freed is not None
    assert (done.state, done.result, done.session_id) == (TaskState.DONE, "42", "s_1")
    assert freed.state is TaskState.READY


async def test_a_task_that_a_person_moved_stays_where_it_is_when_its_run_ends(board: Database) -> None:
    task = await make(board, "a")
    run = await board.write(runs.begin, task, "run_1", most=1, seconds=60, now=NOW)
    assert run is not None
    running = await board.read(tasks.get, task.id)
    assert running is not None
    await board.write(tasks.move, running, TaskState.BLOCKED, actor="ann", now=NOW, blocked_by=BlockReason.INPUT)
    end: dict[str, Any] = {"reason": "stopped", "result": "", "session_id": "", "now": NOW + 1}
    await board.write(runs.end, run, RunOutcome.STOPPED, AfterRun(TaskState.DONE), **end)
    left = await board.read(tasks.get, task.id)
    assert left is not None
    assert left.state is TaskState.BLOCKED


async def test_ready_tasks_come_by_priority_and_not_before_their_time(board: Database) -> None:
    await make(board, "later", not_before=NOW + 100)
    await make(board, "low")
    await make(board, "high", priority=5)
    assert [task.title for task in await board.read(runs.ready, now=NOW, limit=10)] == ["high", "low"]
    assert await board.read(runs.next_at) == NOW + 100
