"""Hand ready tasks to the inbox and settle their runs. The inbox, not this module, runs them.

The board and the inbox are two files, so nothing here is atomic over both. A run is stored first and submitted second,
under the run's id; a run without an end is looked up in the inbox again and again until it has one. See ADR 27.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import StrEnum

from hermes.agent.kanban import Board
from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.entries.kanban import MAX_ATTEMPTS, AfterRun, RunOutcome, TaskState, after_run
from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import Clock
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import PersonRole, capped
from hermes.services.events import EventBus, TurnEnded
from hermes.services.requests.requests import Requests, RequestState
from hermes.services.requests.subtasks import PLATFORM, last_words
from hermes.store.db import Database, Tx
from hermes.store.ids import new_id
from hermes.store.kanban import runs, tasks
from hermes.store.kanban.runs import TaskRun
from hermes.store.kanban.tasks import Task

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
RETRY_SECONDS = 5.0
BRIEFING = (
    "You work on a task of the board, in the background, on your own. Nobody can answer questions here. If you cannot "
    "go on without an answer or a decision, call kanban_block with the reason and stop. Your last message is the "
    "result of the task: begin it with what you did or found."
)


class Activity(StrEnum):
    """What dispatch does, as a person reads it."""

    OFF = "off"
    IDLE = "idle"
    WORKING = "working"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class DispatchStatus:
    activity: Activity
    running: int = 0
    ready: int = 0
    reason: str = ""


class Dispatch:
    def __init__(
        self,
        board: Board,
        main: Database,
        requests: Requests,
        config: Callable[[], Config],
        clock: Clock,
        bus: EventBus,
    ) -> None:
        self._board = board
        self._main = main
        self._requests = requests
        self._config = config
        self._clock = clock
        self._bus = bus
        self._news = asyncio.Event()
        self._failure = ""

    def wake(self) -> None:
        """Look at the board soon: a task may have become ready."""
        self._news.set()

    async def run(self) -> None:
        """Begin and settle runs until cancelled."""
        with self._bus.watch_ends(self._saw):
            while True:
                self._news.clear()
                try:
                    pause = await self._look()
                    self._failure = ""
                except GatewayError as error:
                    self._failure, pause = str(error), RETRY_SECONDS
                    log.warning("Board cannot be worked on", extra={"reason": str(error)})
                try:
                    async with asyncio.timeout(pause):
                        await self._news.wait()
                except TimeoutError:
                    continue

    async def status(self) -> DispatchStatus:
        """Say whether dispatch is on, and why not or why nothing moves."""
        limits = self._config().kanban
        if not limits.dispatch:
            return DispatchStatus(Activity.OFF, reason="kanban.dispatch is off")
        if not self._board.exists:
            return DispatchStatus(Activity.IDLE)
        try:
            db = await self._board.db()
            running, ready = await db.read(_load, now=self._clock.now())
        except GatewayError as error:
            return DispatchStatus(Activity.STUCK, reason=str(error))
        if self._failure:
            return DispatchStatus(Activity.STUCK, running, ready, self._failure)
        return DispatchStatus(Activity.WORKING if running else Activity.IDLE, running, ready)

    def _saw(self, event: TurnEnded) -> None:
        if f":{PLATFORM}:" in event.lane:
            self.wake()

    async def _look(self) -> float:
        """Settle what has ended, begin what may begin; return the seconds until the next look."""
        if not self._board.exists:
            return LOOK_SECONDS  # nobody has used it: no file is made for nothing
        db = await self._board.db()
        for run in await db.read(runs.open_runs):
            await self._tend(db, run)
        limits = self._config().kanban
        if limits.dispatch:
            for task in await db.read(runs.ready, now=self._clock.now(), limit=limits.max_running):
                seconds = task.limit_seconds or limits.task_seconds
                begun = await db.write(
                    runs.begin,
                    task,
                    new_id("run"),
                    most=limits.max_running,
                    seconds=seconds,
                    now=self._clock.now(),
                )
                if begun is not None:
                    await self._submit(db, begun)
        due = await db.read(runs.next_at)
        deadlines = [run.deadline for run in await db.read(runs.open_runs)]
        return max(0.05, min([LOOK_SECONDS, *(at - self._clock.now() for at in (due, *deadlines) if at is not None)]))

    async def _tend(self, db: Database, run: TaskRun) -> None:
        """Submit a run that the inbox does not know, stop one that is late or was taken away, settle one that ended."""
        state = await self._requests.state_of(run.event_id)
        task = await db.read(tasks.get, run.task_id)
        if state is None:
            await self._submit(db, run)
            return
        is_late = self._clock.now() >= run.deadline
        is_unwanted = task is None or task.state is not TaskState.RUNNING
        if state.status in ("queued", "running", "waiting_approval"):
            if not is_late and not is_unwanted:
                return
            state = await self._requests.stop(run.event_id) or state
            if state.status in ("queued", "running", "waiting_approval"):
                return  # it is ending; the next look finds it ended
        outcome = _outcome(state, is_late=is_late)
        answer = await self._main.read(last_words, state.turn) if state.turn is not None else ""
        reason = "" if outcome is RunOutcome.ANSWERED else (state.turn.reason if state.turn else state.row.reason)
        after = _after(outcome, run, task, needs_review=self._config().kanban.review)
        session_id = state.turn.session_id if state.turn is not None else ""
        await db.write(
            runs.end, run, outcome, after, reason=reason, result=answer, session_id=session_id, now=self._clock.now()
        )

    async def _submit(self, db: Database, run: TaskRun) -> None:
        task = await db.read(tasks.get, run.task_id)
        if task is None:
            return
        prompt, role = await db.read(_prompt, task)
        request = AgentRequest(
            RequestKind.RUN,
            SessionKey(PLATFORM, ChatKind.DM, f"kanban-{task.id}"),
            task.made_by,
            (ChatMessage(Role.USER, prompt),),
            TurnOptions(instructions=BRIEFING, origin=task.asked_in, reports=bool(task.asked_in), folder=task.workdir),
            person_id=task.made_by,
        )
        try:
            await self._requests.submit(
                request, key=f"kanban:{run.id}", event_id=run.event_id, at_most=PersonRole(role or PersonRole.GUEST)
            )
        except StoreIsDownError as error:
            log.warning("Store is down", extra={"run": run.id, "reason": str(error)})


def _outcome(state: RequestState, *, is_late: bool) -> RunOutcome:
    if state.status == "completed":
        return RunOutcome.ANSWERED
    if is_late:
        return RunOutcome.TIMED_OUT
    return RunOutcome.STOPPED if state.status == "cancelled" else RunOutcome.FAILED


def _after(outcome: RunOutcome, run: TaskRun, task: Task | None, *, needs_review: bool) -> AfterRun:
    most = task.max_attempts if task is not None and task.max_attempts else MAX_ATTEMPTS
    return after_run(outcome, attempts=run.attempt, max_attempts=most, needs_review=needs_review)


def _load(tx: Tx, *, now: float) -> tuple[int, int]:
    return runs.count_open(tx), len(runs.ready(tx, now=now, limit=1000))


def _prompt(tx: Tx, task: Task) -> tuple[str, str]:
    """Return what the agent is given, and the lowest role of those whose words it holds.

    It is given the task, its comments, and the results that it builds on.
    """
    needed_tasks = [needed for needed in tasks.needed_by(tx, task.id) if needed.result]
    role = capped(task.made_by_role, *(needed.made_by_role for needed in needed_tasks))
    parts = [f"Task #{task.id}: {task.title}", task.body]
    parts.extend(f"Result of #{needed.id} ({needed.title}):\n{needed.result}" for needed in needed_tasks)
    parts.extend(f"Comment by {comment.author}:\n{comment.body}" for comment in tasks.comments(tx, task.id))
    if task.attempts > 1 and task.reason:
        parts.append(f"The attempt before this one ended so: {task.reason}")
    return "\n\n".join(part for part in parts if part), role
