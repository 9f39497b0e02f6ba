"""Kanban rules: the states of a task, who may move it where, when the agent may begin, what follows a run."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import StrEnum

from hermes.core.dataclasses import dataclass

AGENT = "agent"
"""The assignee whose ready tasks the gateway runs."""

DEFAULT_BOARD = "main"
MAX_TITLE = 200
MAX_BODY = 100_000
MAX_ATTEMPTS = 3
RETRY_SECONDS = (30.0, 300.0)
_BOARD_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_TASK_NUMBER = re.compile(r"#?(\d{1,15})")


class TaskState(StrEnum):
    TRIAGE = "triage"
    TODO = "todo"
    SCHEDULED = "scheduled"
    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    REVIEW = "review"
    DONE = "done"
    ARCHIVED = "archived"


CLOSED = frozenset({TaskState.DONE, TaskState.ARCHIVED})


class BlockReason(StrEnum):
    """Why a task is blocked: what has to happen before it goes on."""

    DEPENDENCY = "dependency"
    INPUT = "input"
    APPROVAL = "approval"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"
    REFUSED = "refused"


class RunOutcome(StrEnum):
    """How the turn of a run ended."""

    ANSWERED = "answered"
    BLOCKED_ITSELF = "blocked"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class AfterRun:
    """Where a task goes after a run; ``wait_seconds`` is the pause before the next attempt."""

    state: TaskState
    reason: BlockReason | None = None
    wait_seconds: float = 0.0


def parse_task_number(text: str) -> int | None:
    """Read ``12`` or ``#12``; None for anything else."""
    found = _TASK_NUMBER.fullmatch(text.strip())
    return int(found[1]) if found else None


def is_board_name(text: str) -> bool:
    return _BOARD_NAME.fullmatch(text) is not None


def refusal_of_move(old: TaskState, new: TaskState, *, has_open_needs: bool) -> str:
    """Say why a person or a tool may not move a task from ``old`` to ``new``; '' when it may.

    Only dispatch moves a task to ``running``; moving a running task away stops its run.
    """
    if new is TaskState.RUNNING and old is not TaskState.RUNNING:
        return "A task starts running by itself once it is ready and assigned to the agent: move it to ready."
    if old is TaskState.ARCHIVED and new not in (TaskState.TODO, TaskState.TRIAGE, TaskState.ARCHIVED):
        return "An archived task comes back as todo or triage."
    if new is TaskState.DONE and has_open_needs:
        return "The task waits for others that are not done. Complete those first, or remove the dependency."
    return ""


@dataclass(frozen=True, slots=True)
class Place:
    """A column of the board, with the reason of ``blocked``."""

    state: TaskState
    reason: BlockReason | None = None


def place_of_ready(*, open_needs: Collection[int], not_before: float | None, now: float) -> Place:
    """Where a task goes that shall be ready: blocked while it waits for others, scheduled until its time."""
    if open_needs:
        return Place(TaskState.BLOCKED, BlockReason.DEPENDENCY)
    return Place(TaskState.SCHEDULED if not_before is not None and not_before > now else TaskState.READY)


def after_run(outcome: RunOutcome, *, attempts: int, max_attempts: int, needs_review: bool) -> AfterRun:
    """Where a task goes when its run has ended. A failure is tried again, later each time, up to ``max_attempts``."""
    match outcome:
        case RunOutcome.ANSWERED:
            return AfterRun(TaskState.REVIEW if needs_review else TaskState.DONE)
        case RunOutcome.BLOCKED_ITSELF:
            return AfterRun(TaskState.BLOCKED, BlockReason.INPUT)
        case RunOutcome.STOPPED:
            return AfterRun(TaskState.BLOCKED, BlockReason.STOPPED)
        case RunOutcome.FAILED | RunOutcome.TIMED_OUT:
            if attempts < max_attempts:
                pause = RETRY_SECONDS[min(attempts, len(RETRY_SECONDS)) - 1] if attempts else RETRY_SECONDS[0]
                return AfterRun(TaskState.SCHEDULED, wait_seconds=pause)
            timed_out = outcome is RunOutcome.TIMED_OUT
            return AfterRun(TaskState.BLOCKED, BlockReason.TIMED_OUT if timed_out else BlockReason.FAILED)


def closes_circle(task: int, needs: int, needs_of: Mapping[int, Collection[int]]) -> bool:
    """Tell whether ``task`` waiting for ``needs`` would make it wait for itself."""
    seen: set[int] = set()
    waiting = [needs]
    while waiting:
        number = waiting.pop()
        if number == task:
            return True
        if number not in seen:
            seen.add(number)
            waiting.extend(needs_of.get(number, ()))
    return False
