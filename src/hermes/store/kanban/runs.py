"""Runs of tasks by the agent: begun under a limit, ended once."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.core.entries.kanban import AGENT, AfterRun, BlockReason, RunOutcome, TaskState, place_of_ready
from hermes.store.db import Tx
from hermes.store.kanban import tasks
from hermes.store.kanban.tasks import COLUMNS, Task

BY_GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class TaskRun:
    id: str
    task_id: int
    attempt: int
    event_id: str
    state: str
    reason: str
    result: str
    started_at: float
    deadline: float
    ended_at: float | None


RUN_COLUMNS = "id, task_id, attempt, event_id, state, reason, result, started_at, deadline, ended_at"


def ready(tx: Tx, *, now: float, limit: int) -> list[Task]:
    """Tasks of the agent that may begin, most urgent first: ready, or scheduled for a time that has come."""
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM tasks
        WHERE state IN ('ready', 'scheduled') AND assignee = :agent AND (not_before IS NULL OR not_before <= :now)
            AND NOT EXISTS (
                SELECT 1 FROM task_needs JOIN tasks AS needed ON needed.id = task_needs.needs_id
                WHERE task_needs.task_id = tasks.id AND needed.state NOT IN ('done', 'archived'))
        ORDER BY priority DESC, rank, id LIMIT :limit
        """,
        tasks._task,
        agent=AGENT,
        now=now,
        limit=limit,
    )


def next_at(tx: Tx) -> float | None:
    """When the next scheduled task of the agent is due."""
    found = tx.value(
        "SELECT MIN(not_before) FROM tasks WHERE state IN ('ready', 'scheduled') AND assignee = :agent", agent=AGENT
    )
    return None if found is None else float(found)


def begin(tx: Tx, task: Task, run_id: str, *, most: int, seconds: float, now: float) -> TaskRun | None:
    """Begin a run of a task: task ``running`` and a row for the run. None when the task moved or enough run."""
    if tx.dialect.name == "postgres":
        tx.run("LOCK TABLE task_runs IN SHARE ROW EXCLUSIVE MODE")  # two nodes count the open runs one after the other
    if count_open(tx) >= most:
        return None
    if not tasks.move(tx, task, TaskState.RUNNING, actor=BY_GATEWAY, now=now):
        return None
    tx.run("UPDATE tasks SET attempts = attempts + 1 WHERE id = :id", id=task.id)
    run = TaskRun(run_id, task.id, task.attempts + 1, f"ev_{run_id}", "running", "", "", now, now + seconds, None)
    tx.run(
        """
        INSERT INTO task_runs (id, task_id, attempt, event_id, state, started_at, deadline)
        VALUES (:id, :task_id, :attempt, :event_id, :state, :now, :deadline)
        """,
        id=run.id,
        task_id=run.task_id,
        attempt=run.attempt,
        event_id=run.event_id,
        state=run.state,
        now=now,
        deadline=run.deadline,
    )
    return run


def end(
    tx: Tx, run: TaskRun, outcome: RunOutcome, after: AfterRun, *, reason: str, result: str, session_id: str, now: float
) -> bool:
    """End a run and move its task on, unless a person has moved it meanwhile. False when the run has ended before."""
    ended = tx.run(
        """
        UPDATE task_runs SET state = :state, reason = :reason, result = :result, ended_at = :now
        WHERE id = :id AND ended_at IS NULL
        """,
        id=run.id,
        state=outcome.value,
        reason=reason,
        result=result,
        now=now,
    )
    if not ended:
        return False
    task = tasks.get(tx, run.task_id)
    if task is None:
        return True
    tx.run(
        "UPDATE tasks SET session_id = :session, result = :result WHERE id = :id",
        session=session_id or task.session_id,
        result=result or task.result,
        id=task.id,
    )
    if task.state is TaskState.RUNNING:
        later = now + after.wait_seconds if after.wait_seconds else None
        tasks.move(
            tx, task, after.state, actor=BY_GATEWAY, now=now, blocked_by=after.reason, reason=reason, not_before=later
        )
        if after.state is TaskState.DONE:
            free_dependents(tx, task.id, now=now)
    return True


def free_dependents(tx: Tx, needs_id: int, *, now: float) -> None:
    """Make tasks ready that waited for ``needs_id`` and now wait for no other."""
    for task in tasks.dependents(tx, needs_id):
        if task.blocked_by == BlockReason.DEPENDENCY and not tasks.open_needs(tx, task.id):
            place = place_of_ready(open_needs=(), not_before=task.not_before, now=now)
            tasks.move(tx, task, place.state, actor=BY_GATEWAY, now=now, not_before=task.not_before)


def open_runs(tx: Tx, *, limit: int = 500) -> list[TaskRun]:
    sql = f"SELECT {RUN_COLUMNS} FROM task_runs WHERE ended_at IS NULL ORDER BY started_at LIMIT :limit"
    return tx.all(sql, TaskRun, limit=limit)


def count_open(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM task_runs WHERE ended_at IS NULL"))


def of_task(tx: Tx, task_id: int) -> list[TaskRun]:
    sql = f"SELECT {RUN_COLUMNS} FROM task_runs WHERE task_id = :task ORDER BY attempt, started_at"
    return tx.all(sql, TaskRun, task=task_id)
