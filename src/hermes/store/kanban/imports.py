"""Bring tasks of other boards in: each once, by its id there."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.entries.kanban import BlockReason, TaskState
from hermes.store.db import Tx
from hermes.store.kanban import tasks
from hermes.store.kanban.tasks import NewTask


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """``new.dedupe_key`` says where it came from. ``comments`` are author, text and time."""

    new: NewTask
    result: str
    reason: str
    created_at: float
    done_at: float | None
    comments: Sequence[tuple[str, str, float]]


def is_known(tx: Tx, dedupe_key: str) -> int | None:
    """The number of the task that came from there; None without one."""
    found = tx.value("SELECT id FROM tasks WHERE dedupe_key = :key", key=dedupe_key)
    return None if found is None else int(found)


def bring_in(tx: Tx, task: ImportedTask, *, actor: str, now: float) -> int:
    """Make a task with its comments, times and result, and return its number."""
    tasks.make_board(tx, task.new.board, task.new.board, now=now)
    number = tasks.make(tx, task.new, actor=actor, now=now)
    blocked = BlockReason.INPUT.value if task.new.state is TaskState.BLOCKED else ""
    tx.run(
        """
        UPDATE tasks SET result = :result, reason = :reason, blocked_by = :blocked, created_at = :created_at,
            done_at = :done_at WHERE id = :id
        """,
        id=number,
        result=task.result,
        reason=task.reason,
        blocked=blocked,
        created_at=task.created_at or now,
        done_at=task.done_at if task.new.state is TaskState.DONE else None,
    )
    for place, (author, body, at) in enumerate(task.comments):
        tx.run(
            """
            INSERT INTO task_comments (id, task_id, author, body, created_at)
            VALUES (:id, :task, :author, :body, :at) ON CONFLICT (id) DO NOTHING
            """,
            id=f"c_{number}_imported_{place}",
            task=number,
            author=author,
            body=body,
            at=at or now,
        )
    return number


def depend(tx: Tx, task_id: int, needs_id: int) -> None:
    """Let a task wait for another, as there."""
    tx.run(
        "INSERT INTO task_needs (task_id, needs_id) VALUES (:task, :needs) ON CONFLICT (task_id, needs_id) DO NOTHING",
        task=task_id,
        needs=needs_id,
    )
