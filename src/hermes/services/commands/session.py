"""/new and /stop: end what runs here."""

from __future__ import annotations

from hermes.services.commands.base import CommandContext, command
from hermes.services.lanes import Stopped
from hermes.services.turns import StopReason
from hermes.store import sessions


@command("new", summary="Start a fresh session in this chat", also=("reset",))
async def new(ctx: CommandContext) -> str:
    stopped = await ctx.lanes.stop(ctx.lane, StopReason.RENEWED, up_to=ctx.seq)
    await ctx.db.write(sessions.leave, ctx.lane, reason="/new", now=ctx.clock.now())
    return f"Fresh session.{_what_stopped(stopped)}"


@command("stop", summary="Stop what I am doing now")
async def stop(ctx: CommandContext) -> str:
    stopped = await ctx.lanes.stop(ctx.lane, up_to=ctx.seq)
    return f"Stopped.{_what_stopped(stopped)}" if stopped.turn_id or stopped.set_aside else "Nothing was running."


def _what_stopped(stopped: Stopped) -> str:
    told = " The turn that was running has been stopped." if stopped.turn_id else ""
    if stopped.set_aside:
        waiting = "message that was waiting is" if stopped.set_aside == 1 else "messages that were waiting are"
        told += f" {stopped.set_aside} {waiting} set aside."
    return told
