"""/rollback: list the tools' file changes in this chat, and undo them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.workspace.checkpoints import UNDO, Checkpoints
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import localize
from hermes.core.i18n.en import Texts
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.time_zone import zone_of
from hermes.store.checkpoints import ABSENT, Checkpoint

USAGE = "/rollback [last | N] [force]"
PATH_CHARACTERS = 120


@command("rollback", summary="List my changes in files, or undo them", usage=USAGE)
async def rollback(ctx: CommandContext) -> str:
    which, _, more = ctx.rest.strip().lower().partition(" ")
    if not which:
        return await _list(ctx)
    if (which != "last" and not (which.isascii() and which.isdigit())) or more.strip() not in ("", "force"):
        return ctx.words.ROLLBACK_UNREAD.format(usage=USAGE)
    number = None if which == "last" else int(which[:15])
    tools = _tools(ctx)
    try:
        undone = await ctx.parts.get(Checkpoints).undo(tools, number, force=bool(more.strip()))
    except ToolError as refused:
        return localize(refused, ctx.words)
    form = ctx.words.ROLLBACK_REMOVED if undone.before == ABSENT else ctx.words.ROLLBACK_RESTORED
    return form.format(number=undone.number, name=_name(tools, undone))


def _tools(ctx: CommandContext) -> ToolContext:
    """The person's own reach: what a tool of theirs could not write now is not written by a command either."""
    return ctx.reach(f"command:{ctx.event_id}")


async def _list(ctx: CommandContext) -> str:
    words = ctx.words
    changes = await ctx.parts.get(Checkpoints).listed(ctx.lane, ctx.person.id)
    if not changes:
        return words.ROLLBACK_NOTHING
    tools = _tools(ctx)
    zone = zone_of(ctx.services.config().timezone)
    today = datetime.fromtimestamp(ctx.services.clock.now(), zone).date()
    lines = [words.ROLLBACK_LIST]
    for change in changes:
        at = datetime.fromtimestamp(change.created_at, zone)
        when = f"{at:%H:%M}" if at.date() == today else at.strftime(words.ROLLBACK_DAY)
        lines.append(f"{change.number} · {when} · {change.tool} · {_name(tools, change)}{_note(words, change)}")
    return "\n".join([*lines, words.ROLLBACK_HOW])


def _name(tools: ToolContext, change: Checkpoint) -> str:
    return one_line(tools.relative_path(Path(change.path)), PATH_CHARACTERS)


def _note(words: Texts, change: Checkpoint) -> str:
    if change.undone_at is not None:
        return words.ROLLBACK_TAKEN_BACK
    if change.before == ABSENT:
        return words.ROLLBACK_NEW
    return words.ROLLBACK_GONE if change.tool == UNDO and change.after == ABSENT else ""
