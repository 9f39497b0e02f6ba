"""/new and /stop: end the session or the running turn."""

from __future__ import annotations

from hermes.core.i18n.en import Texts
from hermes.services.commands.base import CommandContext, command
from hermes.services.turns import StopReason
from hermes.services.turns.lanes import Stopped
from hermes.store.sessions import sessions


@command("new", summary="Start a fresh session in this chat", also=("reset",))
async def new(ctx: CommandContext) -> str:
    stopped = await ctx.services.lanes.stop(ctx.lane, StopReason.RENEWED, up_to=ctx.seq)
    await ctx.services.db.write(sessions.leave, ctx.lane, reason="/new", now=ctx.services.clock.now())
    return ctx.words.FRESH_SESSION + _what_stopped(ctx.words, stopped)


@command("stop", summary="Stop what I am doing now")
async def stop(ctx: CommandContext) -> str:
    stopped = await ctx.services.lanes.stop(ctx.lane, up_to=ctx.seq)
    if not stopped.turn_id and not stopped.set_aside:
        return ctx.words.NOTHING_RUNNING
    return ctx.words.STOPPED + _what_stopped(ctx.words, stopped)


def _what_stopped(words: Texts, stopped: Stopped) -> str:
    text = words.STOPPED_TURN if stopped.turn_id else ""
    if stopped.set_aside:
        form = words.STOPPED_ONE if stopped.set_aside == 1 else words.STOPPED_MANY
        text += form.format(count=stopped.set_aside)
    return text
