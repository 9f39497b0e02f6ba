"""/kanban: the board of tasks from a chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes.agent.entries import BoardAccess
from hermes.core.entries.kanban import AGENT, TaskState, parse_task_number
from hermes.services.commands.base import CommandContext, command

if TYPE_CHECKING:
    from hermes.agent.kanban import Actor, Board
    from hermes.store.kanban.tasks import Task

MAX_LISTED = 40

_MOVES = {
    "ready": TaskState.READY,
    "todo": TaskState.TODO,
    "done": TaskState.DONE,
    "complete": TaskState.DONE,
    "block": TaskState.BLOCKED,
    "unblock": TaskState.READY,
    "review": TaskState.REVIEW,
    "archive": TaskState.ARCHIVED,
}


@command(
    "kanban",
    summary="The board of tasks",
    usage="/kanban [add TITLE | do TITLE | show N | ready N | done N | block N WHY | comment N TEXT | archive N]",
)
async def kanban(ctx: CommandContext) -> str:
    from hermes.agent.kanban import BoardError  # loaded when the board is first used

    verb, _, rest = ctx.rest.strip().partition(" ")
    verb, rest = verb.lower() or "list", rest.strip()
    try:
        if verb == "list":
            return await _list(ctx, rest)
        if verb in ("add", "do"):
            return await _add(ctx, rest, for_agent=verb == "do")
        return await _about_task(ctx, verb, rest)
    except BoardError as error:
        return str(error)


async def _list(ctx: CommandContext, board: str) -> str:
    found = await _board(ctx).tasks(_actor(ctx), board or "main", limit=MAX_LISTED)
    found = [task for task in found if task.state is not TaskState.DONE]
    if not found:
        return ctx.words.KANBAN_EMPTY
    columns: dict[TaskState, list[Task]] = {}
    for task in found:
        columns.setdefault(task.state, []).append(task)
    lines: list[str] = []
    for state in TaskState:
        if tasks := columns.get(state):
            lines += [f"**{state.value}**", *(_line(task) for task in tasks)]
    return "\n".join(lines)


async def _add(ctx: CommandContext, title: str, *, for_agent: bool) -> str:
    from hermes.store.kanban.tasks import NewTask

    if not title:
        return ctx.words.KANBAN_USAGE
    first, _, body = title.partition("\n")
    new = NewTask(
        first,
        body.strip(),
        assignee=AGENT if for_agent else "",
        made_by=ctx.person.id,
        made_by_role=ctx.role.value,
        asked_in=ctx.lane,
        dedupe_key=f"chat:{ctx.event_id}",
    )
    task = await _board(ctx).make(_actor(ctx), new, ready=for_agent)
    form = ctx.words.KANBAN_BEGUN if for_agent else ctx.words.KANBAN_ADDED
    return form.format(task=_line(task), number=task.id)


async def _about_task(ctx: CommandContext, verb: str, rest: str) -> str:
    word, _, text = rest.partition(" ")
    number = parse_task_number(word)
    if number is None or verb not in {*_MOVES, "show", "comment", "assign", "wait"}:
        return ctx.words.KANBAN_USAGE
    board, actor, text = _board(ctx), _actor(ctx), text.strip()
    if verb == "show":
        return await _show(ctx, number)
    if verb in _MOVES:
        return _line(await board.move(actor, number, _MOVES[verb], text))
    others: dict[str, Callable[[], Awaitable[Task]]] = {
        "comment": lambda: board.comment(actor, number, text),
        "assign": lambda: board.change(actor, number, {"assignee": text}),
        "wait": lambda: board.need(actor, number, parse_task_number(text) or 0),
    }
    return _line(await others[verb]())


async def _show(ctx: CommandContext, number: int) -> str:
    found = await _board(ctx).show(_actor(ctx), number)
    parts = [_line(found.task), found.task.body, found.task.reason]
    parts += [ctx.words.KANBAN_WAITS.format(task=_line(needed)) for needed in found.needs]
    parts += [f"{comment.author}: {comment.body}" for comment in found.comments]
    parts += [found.task.result]
    return "\n\n".join(part for part in parts if part)


def _board(ctx: CommandContext) -> Board:
    return ctx.parts.get(BoardAccess).open()


def _actor(ctx: CommandContext) -> Actor:
    from hermes.agent.kanban import Actor

    return Actor(ctx.person.name or ctx.person.id, ctx.person.id, ctx.role, ctx.lane)


def _line(task: Task) -> str:
    from hermes.agent.kanban import describe_task

    return describe_task(task)
