"""/rollback: see what tools changed in files here, and take it back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hermes.agent.checkpoints import UNDO, Checkpoints
from hermes.agent.toolkit import ToolContext
from hermes.core.errors import ToolError
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.time_zone import zone_of
from hermes.store.checkpoints import ABSENT, Checkpoint

USAGE = "/rollback [last | N] [force]"
PATH_CHARACTERS = 120


@command("rollback", summary="List what I changed in files, or take it back", usage=USAGE)
async def rollback(ctx: CommandContext) -> str:
    which, _, more = ctx.rest.strip().lower().partition(" ")
    if not which:
        return await _list(ctx)
    if (which != "last" and not (which.isascii() and which.isdigit())) or more.strip() not in ("", "force"):
        return f"I did not understand that. {USAGE}: /rollback alone shows the numbers."
    number = None if which == "last" else int(which[:15])
    tools = _tools(ctx)
    try:
        undone = await ctx.parts.get(Checkpoints).undo(tools, number, force=bool(more.strip()))
    except ToolError as refused:
        return str(refused)
    name = _name(tools, undone)
    what = f"{name} is removed again" if undone.before == ABSENT else f"{name} is as it was before"
    return f"Change {undone.number} is taken back: {what}. /rollback shows all; this one can be taken back too."


def _tools(ctx: CommandContext) -> ToolContext:
    """The person's own reach: what a tool of theirs could not write now is not written by a command either."""
    return ctx.reach(f"command:{ctx.event_id}")


async def _list(ctx: CommandContext) -> str:
    changes = await ctx.parts.get(Checkpoints).listed(ctx.lane, ctx.person.id)
    if not changes:
        return "I have changed no files of yours in this chat that I could bring back."
    tools = _tools(ctx)
    zone = zone_of(ctx.config().timezone)
    today = datetime.fromtimestamp(ctx.clock.now(), zone).date()
    lines = ["What I changed in files here, the newest first:"]
    for change in changes:
        at = datetime.fromtimestamp(change.created_at, zone)
        when = f"{at:%H:%M}" if at.date() == today else f"{at:%d %b %H:%M}"
        lines.append(f"{change.number} · {when} · {change.tool} · {_name(tools, change)}{_note(change)}")
    return "\n".join([*lines, "/rollback last takes back the newest, /rollback N that one."])


def _name(tools: ToolContext, change: Checkpoint) -> str:
    return one_line(tools.shown(Path(change.path)), PATH_CHARACTERS)


def _note(change: Checkpoint) -> str:
    if change.undone_at is not None:
        return " (taken back)"
    if change.before == ABSENT:
        return " (new)"
    return " (removed)" if change.tool == UNDO and change.after == ABSENT else ""
