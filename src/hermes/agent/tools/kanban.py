"""kanban_*: keep the board of tasks."""

from __future__ import annotations

from typing import Literal

from hermes.agent.entries import BoardAccess
from hermes.agent.kanban import Actor, Board, describe_task
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.entries.kanban import AGENT, DEFAULT_BOARD, TaskState
from hermes.core.errors import ToolError
from hermes.store.kanban.tasks import NewTask

MAX_LISTED = 50

Column = Literal["triage", "todo", "ready", "blocked", "review", "done", "archived"]


@tool(toolset="kanban")
async def kanban_create(
    ctx: ToolContext,
    title: str,
    body: str = "",
    assign_to_agent: bool = False,
    needs: list[int] | None = None,
    priority: int = 0,
    board: str = DEFAULT_BOARD,
) -> str:
    """Add a task to the board. With `assign_to_agent` the gateway works on it by itself as soon as it may.

    `needs` are the numbers of tasks that must be done first. A higher `priority` goes first. Write everything that is
    needed into `body`: whoever does the task sees nothing of this conversation. The result is told in this chat.
    """
    new = NewTask(
        title,
        body,
        board,
        priority=priority,
        assignee=AGENT if assign_to_agent else "",
        made_by=ctx.person_id,
        made_by_role=ctx.role.value,
        asked_in=str(ctx.origin),
        dedupe_key=ctx.call_id or None,
    )
    task = await _of(ctx).make(_actor(ctx), new, needs=tuple(needs or ()), ready=assign_to_agent)
    return f"Added {describe_task(task)}"


@tool(toolset="kanban")
async def kanban_list(ctx: ToolContext, board: str = DEFAULT_BOARD, state: Column | None = None) -> str:
    """List the tasks of a board, most urgent first in each column."""
    states = (TaskState(state),) if state else ()
    found = await _of(ctx).tasks(_actor(ctx), board, states=states, limit=MAX_LISTED)
    return "\n".join(describe_task(task) for task in found) or "No tasks."


@tool(toolset="kanban")
async def kanban_show(ctx: ToolContext, task: int) -> str:
    """Show a task: its text, what it waits for, comments, links and its result."""
    found = await _of(ctx).show(_actor(ctx), task)
    parts = [describe_task(found.task), found.task.body]
    parts += [f"Waits for {describe_task(needed)}" for needed in found.needs]
    parts += [f"{comment.author}: {comment.body}" for comment in found.comments]
    parts += [f"Link: {url} {title}".rstrip() for url, title in found.links]
    parts += [f"Result: {found.task.result}"] if found.task.result else []
    return "\n\n".join(part for part in parts if part)


@tool(toolset="kanban")
async def kanban_move(ctx: ToolContext, task: int, state: Column, reason: str = "") -> str:
    """Move a task to another column. `ready` lets the gateway begin with a task of the agent."""
    return describe_task(await _of(ctx).move(_actor(ctx), task, TaskState(state), reason))


@tool(toolset="kanban")
async def kanban_comment(ctx: ToolContext, task: int, text: str) -> str:
    """Write a comment below a task."""
    return f"Commented on {describe_task(await _of(ctx).comment(_actor(ctx), task, text))}"


@tool(toolset="kanban")
async def kanban_block(ctx: ToolContext, task: int, reason: str) -> str:
    """Say that a task cannot go on until a person answers or decides something; `reason` says what is missing."""
    if not reason.strip():
        raise ToolError("Say in `reason` what is missing.")
    return describe_task(await _of(ctx).move(_actor(ctx), task, TaskState.BLOCKED, reason))


def _of(ctx: ToolContext) -> Board:
    return ctx.parts.get(BoardAccess).open()


def _actor(ctx: ToolContext) -> Actor:
    return Actor(AGENT, ctx.person_id, ctx.role, str(ctx.origin))
