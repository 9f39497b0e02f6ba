"""delegate_task: run parts of a task in subtasks with their own context."""

from __future__ import annotations

from hermes.agent.delegation import Delegation, Subtask
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError

MAX_SECONDS = 1700.0
MAX_TASKS = 5
MAX_DEPTH = 2


@tool(toolset="delegation", seconds=MAX_SECONDS)
async def delegate_task(ctx: ToolContext, tasks: list[str]) -> str:
    """Have independent parts of a task done at the same time, each by an agent of its own with your tools.

    They see nothing of this conversation: write into each task everything it needs, and what to report back.
    """
    delegation = ctx.parts.get(Delegation)
    wanted = [task.strip() for task in tasks]
    if not wanted or not all(wanted):
        raise ToolError("Give at least one task, and no empty ones.")
    if len(wanted) > MAX_TASKS:
        raise ToolError(f"At most {MAX_TASKS} tasks at a time; you gave {len(wanted)}. Join or leave out some.")
    if ctx.depth >= MAX_DEPTH:
        raise ToolError("This task was itself handed on, as deep as that goes. Do it yourself, step by step.")
    subtasks = [
        Subtask(f"{ctx.call_id}.{number}", task, ctx.person_id, ctx.origin, ctx.depth + 1, ctx.role)
        for number, task in enumerate(wanted)
    ]
    ends = await delegation.run(subtasks)
    return "\n\n".join(
        f"Task {number}, {'done' if end.is_done else f'not done ({end.state})'}:\n{end.text}"
        for number, end in enumerate(ends, 1)
    )
