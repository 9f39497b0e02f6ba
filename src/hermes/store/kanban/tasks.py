"""Tasks of the board: made once, moved with a line in their history, found by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hermes.core.dataclasses import dataclass
from hermes.core.entries.kanban import DEFAULT_BOARD, BlockReason, TaskState
from hermes.core.roles import capped
from hermes.store.db import Tx

Counter = Literal["task", "event"]


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be made. ``asked_in`` is the lane of the chat that its result is told in, '' for none.

    ``made_by`` is a person's id and ``made_by_role`` the role in which they asked: its runs never have more rights.
    """

    title: str
    body: str = ""
    board: str = DEFAULT_BOARD
    state: TaskState = TaskState.TODO
    priority: int = 0
    assignee: str = ""
    made_by: str = ""
    made_by_role: str = ""
    asked_in: str = ""
    workdir: str = ""
    limit_seconds: int = 0
    max_attempts: int = 0
    not_before: float | None = None
    dedupe_key: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    id: int
    board: str
    title: str
    body: str
    state: TaskState
    priority: int
    rank: float
    assignee: str
    made_by: str
    made_by_role: str
    asked_in: str
    workdir: str
    limit_seconds: int
    max_attempts: int
    attempts: int
    not_before: float | None
    blocked_by: str
    reason: str
    result: str
    created_at: float
    updated_at: float
    done_at: float | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class TaskEvent:
    id: int
    task_id: int
    board: str
    kind: str
    actor: str
    detail: str
    created_at: float


@dataclass(frozen=True, slots=True)
class Comment:
    id: str
    author: str
    body: str
    created_at: float


COLUMNS = (
    "id, board, title, body, state, priority, rank, assignee, made_by, made_by_role, asked_in, workdir, limit_seconds,"
    " max_attempts, attempts, not_before, blocked_by, reason, result, created_at, updated_at, done_at, session_id"
)
EVENT_COLUMNS = "id, task_id, board, kind, actor, detail, created_at"
CHANGEABLE = frozenset(
    {"title", "body", "priority", "rank", "assignee", "workdir", "limit_seconds", "max_attempts", "not_before", "board"}
)


def _task(*row: object) -> Task:
    return Task(*row[:4], TaskState(str(row[4])), *row[5:])  # type: ignore[arg-type, call-arg] # as in COLUMNS


# Boards


def make_board(tx: Tx, name: str, title: str, *, now: float) -> bool:
    """Make a board. False when it exists."""
    made = tx.run(
        "INSERT INTO boards (name, title, created_at) VALUES (:name, :title, :now) ON CONFLICT (name) DO NOTHING",
        name=name,
        title=title,
        now=now,
    )
    return made == 1


def boards(tx: Tx) -> list[tuple[str, str]]:
    """Name and title of every board that is not archived."""
    return tx.all("SELECT name, title FROM boards WHERE archived_at IS NULL ORDER BY created_at", lambda *row: row)


# Making and changing


def make(tx: Tx, new: NewTask, *, actor: str, now: float) -> int:
    """Make a task at the end of its column and return its number. A dedupe key that was used returns its task."""
    if (known := made_with(tx, new.dedupe_key)) is not None:
        return known
    number = _next(tx, "task")
    tx.run(
        """
        INSERT INTO tasks (id, board, title, body, state, priority, rank, assignee, made_by, made_by_role, asked_in,
            workdir, limit_seconds, max_attempts, not_before, dedupe_key, created_at, updated_at)
        VALUES (:id, :board, :title, :body, :state, :priority, :id, :assignee, :made_by, :made_by_role, :asked_in,
            :workdir, :limit_seconds, :max_attempts, :not_before, :dedupe_key, :now, :now)
        """,
        id=number,
        board=new.board,
        title=new.title,
        body=new.body,
        state=new.state.value,
        priority=new.priority,
        assignee=new.assignee,
        made_by=new.made_by,
        made_by_role=new.made_by_role,
        asked_in=new.asked_in,
        workdir=new.workdir,
        limit_seconds=new.limit_seconds,
        max_attempts=new.max_attempts,
        not_before=new.not_before,
        dedupe_key=new.dedupe_key,
        now=now,
    )
    note(tx, number, new.board, "made", actor, new.state.value, now=now)
    return number


def made_with(tx: Tx, dedupe_key: str | None) -> int | None:
    """Return the number of the task that was made with this key."""
    if dedupe_key is None:
        return None
    known = tx.value("SELECT id FROM tasks WHERE dedupe_key = :key", key=dedupe_key)
    return None if known is None else int(known)


def change(tx: Tx, task: Task, changes: dict[str, object], *, actor: str, now: float) -> None:
    """Change fields of a task (those of ``CHANGEABLE``) and note which."""
    unknown = changes.keys() - CHANGEABLE
    if unknown:
        raise ValueError(f"not a field of a task that may be changed: {', '.join(sorted(unknown))}")
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    tx.run(f"UPDATE tasks SET {assignments}, updated_at = :now WHERE id = :id", id=task.id, now=now, **changes)
    note(tx, task.id, str(changes.get("board", task.board)), "changed", actor, ", ".join(sorted(changes)), now=now)


def move(
    tx: Tx,
    task: Task,
    state: TaskState,
    *,
    actor: str,
    now: float,
    blocked_by: BlockReason | None = None,
    reason: str = "",
    not_before: float | None = None,
) -> bool:
    """Move a task to another column. False when it is not in the column any more in which it was read."""
    moved = tx.run(
        """
        UPDATE tasks SET state = :state, blocked_by = :blocked_by, reason = :reason, not_before = :not_before,
            updated_at = :now, done_at = CASE WHEN :state = 'done' THEN :now ELSE NULL END
        WHERE id = :id AND state = :old
        """,
        id=task.id,
        old=task.state.value,
        state=state.value,
        blocked_by=blocked_by.value if blocked_by else "",
        reason=reason,
        not_before=not_before,
        now=now,
    )
    if moved:
        detail = f"{task.state.value} → {state.value}" + (f": {reason}" if reason else "")
        note(tx, task.id, task.board, "moved", actor, detail, now=now)
    return moved == 1


def cap_role(tx: Tx, task: Task, role: str) -> None:
    """Lower the rights of a task's runs to those of somebody who wrote into it. Nothing raises them again."""
    lowest = capped(task.made_by_role, role)
    if lowest != task.made_by_role:
        tx.run("UPDATE tasks SET made_by_role = :role WHERE id = :id", role=lowest, id=task.id)


def note(tx: Tx, task_id: int, board: str, kind: str, actor: str, detail: str, *, now: float) -> int:
    """Add a line to the history of a task and return its number."""
    number = _next(tx, "event")
    tx.run(
        """
        INSERT INTO task_events (id, task_id, board, kind, actor, detail, created_at)
        VALUES (:id, :task_id, :board, :kind, :actor, :detail, :now)
        """,
        id=number,
        task_id=task_id,
        board=board,
        kind=kind,
        actor=actor,
        detail=detail,
        now=now,
    )
    return number


def comment(tx: Tx, task: Task, comment_id: str, body: str, *, actor: str, now: float) -> None:
    tx.run(
        "INSERT INTO task_comments (id, task_id, author, body, created_at) VALUES (:id, :task, :author, :body, :now)",
        id=comment_id,
        task=task.id,
        author=actor,
        body=body,
        now=now,
    )
    note(tx, task.id, task.board, "commented", actor, "", now=now)


def link(tx: Tx, task: Task, url: str, title: str, *, actor: str, now: float) -> bool:
    """Attach an address to a task. False when it is there already."""
    added = tx.run(
        """
        INSERT INTO task_links (task_id, url, title, created_at) VALUES (:task, :url, :title, :now)
        ON CONFLICT (task_id, url) DO NOTHING
        """,
        task=task.id,
        url=url,
        title=title,
        now=now,
    )
    if added:
        note(tx, task.id, task.board, "linked", actor, url, now=now)
    return added == 1


# Dependencies


def add_need(tx: Tx, task: Task, needs_id: int, *, actor: str, now: float) -> None:
    added = tx.run(
        "INSERT INTO task_needs (task_id, needs_id) VALUES (:task, :needs) ON CONFLICT (task_id, needs_id) DO NOTHING",
        task=task.id,
        needs=needs_id,
    )
    if added:
        note(tx, task.id, task.board, "needs", actor, f"#{needs_id}", now=now)


def remove_need(tx: Tx, task: Task, needs_id: int, *, actor: str, now: float) -> bool:
    removed = tx.run("DELETE FROM task_needs WHERE task_id = :task AND needs_id = :needs", task=task.id, needs=needs_id)
    if removed:
        note(tx, task.id, task.board, "needs no more", actor, f"#{needs_id}", now=now)
    return removed == 1


def needs(tx: Tx) -> list[tuple[int, int]]:
    """Every dependency: a task and the task it waits for."""
    return tx.all("SELECT task_id, needs_id FROM task_needs", lambda *row: row)


def open_needs(tx: Tx, task_id: int) -> list[int]:
    """The numbers of the tasks that ``task_id`` still waits for."""
    return tx.all(
        """
        SELECT needs_id FROM task_needs JOIN tasks ON tasks.id = task_needs.needs_id
        WHERE task_id = :task AND tasks.state NOT IN ('done', 'archived') ORDER BY needs_id
        """,
        int,
        task=task_id,
    )


def dependents(tx: Tx, needs_id: int) -> list[Task]:
    """The tasks that wait for ``needs_id``."""
    return tx.all(
        f"SELECT {COLUMNS} FROM tasks WHERE id IN (SELECT task_id FROM task_needs WHERE needs_id = :needs)",
        _task,
        needs=needs_id,
    )


def needed_by(tx: Tx, task_id: int) -> list[Task]:
    """The tasks that ``task_id`` builds on, done or not."""
    return tx.all(
        f"SELECT {COLUMNS} FROM tasks WHERE id IN (SELECT needs_id FROM task_needs WHERE task_id = :task) ORDER BY id",
        _task,
        task=task_id,
    )


# Reading


def get(tx: Tx, task_id: int) -> Task | None:
    return tx.one(f"SELECT {COLUMNS} FROM tasks WHERE id = :id", _task, id=task_id)


def of_board(
    tx: Tx,
    board: str,
    *,
    states: Sequence[TaskState] = (),
    assignee: str = "",
    made_by: str = "",
    limit: int = 200,
    offset: int = 0,
) -> list[Task]:
    """Tasks of a board by column, priority (highest first) and rank. Without ``states``: all but archived ones."""
    wanted = [state.value for state in states or [state for state in TaskState if state is not TaskState.ARCHIVED]]
    names = {f"state_{number}": value for number, value in enumerate(wanted)}
    return tx.all(
        f"""
        SELECT {COLUMNS} FROM tasks
        WHERE board = :board AND state IN ({", ".join(f":{name}" for name in names)})
            AND (:assignee = '' OR assignee = :assignee) AND (:made_by = '' OR made_by = :made_by)
        ORDER BY state, priority DESC, rank, id LIMIT :limit OFFSET :offset
        """,
        _task,
        board=board,
        assignee=assignee,
        made_by=made_by,
        limit=limit,
        offset=offset,
        **names,
    )


def counts(tx: Tx, board: str = "") -> dict[TaskState, int]:
    """How many tasks each column holds, of one board or of all."""
    sql = "SELECT state, COUNT(*) FROM tasks WHERE :board = '' OR board = :board GROUP BY state"
    return {TaskState(state): int(count) for state, count in tx.all(sql, lambda *row: row, board=board)}


def comments(tx: Tx, task_id: int) -> list[Comment]:
    sql = "SELECT id, author, body, created_at FROM task_comments WHERE task_id = :task ORDER BY created_at, id"
    return tx.all(sql, Comment, task=task_id)


def links(tx: Tx, task_id: int) -> list[tuple[str, str]]:
    sql = "SELECT url, title FROM task_links WHERE task_id = :task ORDER BY created_at, url"
    return tx.all(sql, lambda *row: row, task=task_id)


def history(tx: Tx, task_id: int, *, limit: int = 200) -> list[TaskEvent]:
    sql = f"SELECT {EVENT_COLUMNS} FROM task_events WHERE task_id = :task ORDER BY id DESC LIMIT :limit"
    return tx.all(sql, TaskEvent, task=task_id, limit=limit)[::-1]


def events_after(tx: Tx, number: int, *, board: str = "", limit: int = 500) -> list[TaskEvent]:
    """What happened after event ``number``, oldest first: for whoever follows the board."""
    return tx.all(
        f"SELECT {EVENT_COLUMNS} FROM task_events WHERE id > :after AND (:board = '' OR board = :board)"
        " ORDER BY id LIMIT :limit",
        TaskEvent,
        after=number,
        board=board,
        limit=limit,
    )


def _next(tx: Tx, counter: Counter) -> int:
    return int(
        tx.value(
            """
            INSERT INTO kanban_counters (name, value) VALUES (:name, 1)
            ON CONFLICT (name) DO UPDATE SET value = kanban_counters.value + 1 RETURNING value
            """,
            name=counter,
        )
    )
