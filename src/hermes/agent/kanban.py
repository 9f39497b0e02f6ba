"""The verbs of the board, for chats, tools, the command line and the API. Each is one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from hermes.core.dataclasses import dataclass
from hermes.core.entries.kanban import (
    DEFAULT_BOARD,
    MAX_BODY,
    MAX_TITLE,
    BlockReason,
    TaskState,
    closes_circle,
    is_board_name,
    place_of_ready,
    refusal_of_move,
)
from hermes.core.errors import GatewayError, StoreIsDownError, ToolError
from hermes.core.ports import Clock
from hermes.core.roles import Action, PersonRole, at_least, may
from hermes.core.text import one_line
from hermes.store.db import Database, OnTrouble, StoreLimits, Tx
from hermes.store.ids import new_id
from hermes.store.kanban import runs, tasks
from hermes.store.kanban.open import open_board
from hermes.store.kanban.runs import TaskRun
from hermes.store.kanban.tasks import Comment, NewTask, Task, TaskEvent

P = ParamSpec("P")
T = TypeVar("T")

READERS = 1
MAX_LISTED = 500
SHOWN_TITLE = 100


class BoardError(ToolError):
    """A request that the board refuses, or cannot carry out now, in a sentence for whoever asked."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who changes the board. ``lane`` is the chat in which they asked, '' for none."""

    name: str
    person_id: str
    role: PersonRole
    lane: str = ""

    @property
    def sees_all(self) -> bool:
        return may(self.role, Action.READ_ALL)


def describe_task(task: Task) -> str:
    """One line: number, title, column, what blocks it, assignee."""
    notes = [task.state.value, *(note for note in (task.blocked_by, task.assignee) if note)]
    return f"#{task.id} {one_line(task.title, SHOWN_TITLE)} ({', '.join(notes)})"


def event_to_dict(event: TaskEvent) -> dict[str, Any]:
    return {
        "id": event.id,
        "task": event.task_id,
        "board": event.board,
        "kind": event.kind,
        "actor": event.actor,
        "detail": event.detail,
        "created_at": event.created_at,
    }


def task_to_dict(task: Task) -> dict[str, Any]:
    return {
        "object": "task",
        "id": task.id,
        "board": task.board,
        "title": task.title,
        "body": task.body,
        "state": task.state.value,
        "priority": task.priority,
        "rank": task.rank,
        "assignee": task.assignee or None,
        "blocked_by": task.blocked_by or None,
        "reason": task.reason or None,
        "result": task.result or None,
        "attempts": task.attempts,
        "not_before": task.not_before,
        "session_id": task.session_id,
        "created_at": task.created_at,
        "updated_at": task.updated_at,
        "done_at": task.done_at,
    }


@dataclass(frozen=True, slots=True)
class TaskDetails:
    task: Task
    needs: tuple[Task, ...]
    comments: tuple[Comment, ...]
    links: tuple[tuple[str, str], ...]
    history: tuple[TaskEvent, ...]
    runs: tuple[TaskRun, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            **task_to_dict(self.task),
            "needs": [{"id": task.id, "title": task.title, "state": task.state.value} for task in self.needs],
            "comments": [
                {"author": comment.author, "body": comment.body, "created_at": comment.created_at}
                for comment in self.comments
            ],
            "links": [{"url": url, "title": title} for url, title in self.links],
            "history": [event_to_dict(event) for event in self.history],
            "runs": [
                {
                    "id": run.id,
                    "attempt": run.attempt,
                    "state": run.state,
                    "event_id": run.event_id,
                    "reason": run.reason,
                    "started_at": run.started_at,
                    "ended_at": run.ended_at,
                }
                for run in self.runs
            ],
        }


class Board:
    def __init__(self, main: Database, home: Path, clock: Clock, on_trouble: OnTrouble) -> None:
        self._main = main
        self._home = home
        self._clock = clock
        self._on_trouble = on_trouble
        self._db: Database | None = None
        self._opening = asyncio.Lock()
        self._stack = AsyncExitStack()
        self.on_change: Callable[[], None] = lambda: None
        """Called after every change; dispatch looks at the board then."""

    async def db(self) -> Database:
        """The open store. One that could not be opened is tried again with every call; BoardError says why."""
        async with self._opening:
            if self._db is None:
                opening = open_board(
                    self._main, self._home, on_trouble=self._on_trouble, limits=StoreLimits(readers=READERS)
                )
                try:
                    db = await self._stack.enter_async_context(opening)
                    await db.write(tasks.make_board, DEFAULT_BOARD, "Main", now=self._clock.now())
                except GatewayError as error:
                    raise BoardError(f"The board cannot be opened: {error}") from error
                self._db = db
            return self._db

    @property
    def exists(self) -> bool:
        """Whether anybody has used the board: its file is made by the first use."""
        return self._db is not None or (self._home / "kanban.db").exists() or self._main.dialect.name != "sqlite"

    async def close(self) -> None:
        self._db = None
        await self._stack.aclose()

    # Changing

    async def make(self, actor: Actor, new: NewTask, *, needs: tuple[int, ...] = (), ready: bool = False) -> Task:
        """Make a task; ``ready`` lets it begin as soon as it may."""
        if not at_least(actor.role, PersonRole.USER):
            raise BoardError("Guests cannot add tasks.")
        title = new.title.strip()
        if not title or len(title) > MAX_TITLE:
            raise BoardError(f"A task needs a title of 1 to {MAX_TITLE} characters.")
        if len(new.body) > MAX_BODY:
            raise BoardError(f"The text of a task has at most {MAX_BODY:,} characters; this one has {len(new.body):,}.")
        if not is_board_name(new.board):
            raise BoardError(f"{new.board!r} is no name of a board: small letters, digits and hyphens.")
        task = await self._write(_make, actor, new, needs, ready, now=self._clock.now())
        self.on_change()
        return task

    async def move(self, actor: Actor, number: int, state: TaskState, reason: str = "") -> Task:
        """Move a task to another column. A running task that is moved away is stopped."""
        task = await self._write(_move, actor, number, state, reason, now=self._clock.now())
        self.on_change()
        return task

    async def change(self, actor: Actor, number: int, changes: dict[str, object]) -> Task:
        task = await self._write(_change, actor, number, changes, now=self._clock.now())
        self.on_change()
        return task

    async def comment(self, actor: Actor, number: int, body: str) -> Task:
        if not body.strip() or len(body) > MAX_BODY:
            raise BoardError(f"A comment has 1 to {MAX_BODY:,} characters.")
        return await self._write(_comment, actor, number, body, new_id("c"), now=self._clock.now())

    async def link(self, actor: Actor, number: int, url: str, title: str = "") -> Task:
        if not url.startswith(("https://", "http://")):
            raise BoardError("A link begins with https:// or http://.")
        return await self._write(_link, actor, number, url, title, now=self._clock.now())

    async def need(self, actor: Actor, number: int, needs: int, *, remove: bool = False) -> Task:
        """Let a task wait for another, or no longer."""
        task = await self._write(_need, actor, number, needs, remove, now=self._clock.now())
        self.on_change()
        return task

    # Reading

    async def show(self, actor: Actor, number: int) -> TaskDetails:
        return await self._read(_details, actor, number)

    async def tasks(
        self,
        actor: Actor,
        board: str = DEFAULT_BOARD,
        *,
        states: tuple[TaskState, ...] = (),
        assignee: str = "",
        limit: int = MAX_LISTED,
        offset: int = 0,
    ) -> list[Task]:
        """Tasks of a board. Who may not see everything sees the tasks they made."""
        made_by = "" if actor.sees_all else actor.person_id or "nobody"
        return await self._read(
            tasks.of_board, board, states=states, assignee=assignee, made_by=made_by, limit=limit, offset=offset
        )

    async def counts(self, board: str = "") -> dict[TaskState, int]:
        return await self._read(tasks.counts, board)

    async def events_after(self, number: int, board: str = "") -> list[TaskEvent]:
        return await self._read(tasks.events_after, number, board=board)

    async def _read(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Read from the board. A board that is down is no reason to take the messages' store for down."""
        db = await self.db()
        try:
            return await db.read(fn, *args, **kwargs)
        except StoreIsDownError as error:
            raise BoardError(f"The board cannot be read: {error}") from error

    async def _write(self, fn: Callable[Concatenate[Tx, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        db = await self.db()
        try:
            return await db.write(fn, *args, **kwargs)
        except StoreIsDownError as error:
            raise BoardError(f"The board cannot be changed: {error}") from error


def _find(tx: Tx, actor: Actor, number: int) -> Task:
    task = tasks.get(tx, number)
    if task is None or not (actor.sees_all or task.made_by == actor.person_id):
        raise BoardError(f"There is no task #{number}.")
    return task


def _make(tx: Tx, actor: Actor, new: NewTask, needs: tuple[int, ...], ready: bool, *, now: float) -> Task:
    if (known := tasks.made_with(tx, new.dedupe_key)) is not None:
        return _find(tx, actor, known)  # asked for again: it may run already, or be done
    for needed in needs:
        _find(tx, actor, needed)
    tasks.make_board(tx, new.board, new.board, now=now)
    number = tasks.make(tx, new, actor=actor.name, now=now)
    task = _find(tx, actor, number)
    for needed in needs:
        tasks.add_need(tx, task, needed, actor=actor.name, now=now)
    return _make_ready(tx, actor, task, now=now) if ready else task


def _make_ready(tx: Tx, actor: Actor, task: Task, *, now: float) -> Task:
    place = place_of_ready(open_needs=tasks.open_needs(tx, task.id), not_before=task.not_before, now=now)
    tasks.move(tx, task, place.state, actor=actor.name, now=now, blocked_by=place.reason, not_before=task.not_before)
    return _find(tx, actor, task.id)


def _move(tx: Tx, actor: Actor, number: int, state: TaskState, reason: str, *, now: float) -> Task:
    task = _find(tx, actor, number)
    if refusal := refusal_of_move(task.state, state, has_open_needs=bool(tasks.open_needs(tx, number))):
        raise BoardError(refusal)
    if state is TaskState.READY:
        return _make_ready(tx, actor, task, now=now)
    if reason:
        tasks.cap_role(tx, task, actor.role.value)
    blocked_by = BlockReason.INPUT if state is TaskState.BLOCKED else None
    tasks.move(tx, task, state, actor=actor.name, now=now, blocked_by=blocked_by, reason=reason)
    if state is TaskState.DONE:
        runs.free_dependents(tx, number, now=now)
    return _find(tx, actor, number)


def _change(tx: Tx, actor: Actor, number: int, changes: dict[str, object], *, now: float) -> Task:
    task = _find(tx, actor, number)
    tasks.change(tx, task, changes, actor=actor.name, now=now)
    tasks.cap_role(tx, task, actor.role.value)
    return _find(tx, actor, number)


def _comment(tx: Tx, actor: Actor, number: int, body: str, comment_id: str, *, now: float) -> Task:
    task = _find(tx, actor, number)
    tasks.comment(tx, task, comment_id, body, actor=actor.name, now=now)
    tasks.cap_role(tx, task, actor.role.value)
    return task


def _link(tx: Tx, actor: Actor, number: int, url: str, title: str, *, now: float) -> Task:
    task = _find(tx, actor, number)
    tasks.link(tx, task, url, title, actor=actor.name, now=now)
    return task


def _need(tx: Tx, actor: Actor, number: int, needs: int, remove: bool, *, now: float) -> Task:
    task, needed = _find(tx, actor, number), _find(tx, actor, needs)
    if remove:
        tasks.remove_need(tx, task, needed.id, actor=actor.name, now=now)
        if task.blocked_by == BlockReason.DEPENDENCY and not tasks.open_needs(tx, number):
            return _make_ready(tx, actor, task, now=now)
        return _find(tx, actor, number)
    known: dict[int, list[int]] = {}
    for needing, other in tasks.needs(tx):
        known.setdefault(needing, []).append(other)
    if closes_circle(task.id, needed.id, known):
        raise BoardError(f"#{number} cannot wait for #{needs}: #{needs} waits for #{number}.")
    tasks.add_need(tx, task, needed.id, actor=actor.name, now=now)
    if task.state in (TaskState.READY, TaskState.SCHEDULED):
        return _make_ready(tx, actor, _find(tx, actor, number), now=now)
    return _find(tx, actor, number)


def _details(tx: Tx, actor: Actor, number: int) -> TaskDetails:
    task = _find(tx, actor, number)
    return TaskDetails(
        task,
        tuple(tasks.needed_by(tx, number)),
        tuple(tasks.comments(tx, number)),
        tuple(tasks.links(tx, number)),
        tuple(tasks.history(tx, number)),
        tuple(runs.of_task(tx, number)),
    )
