"""/busy: what a new message does while I work."""

from __future__ import annotations

from hermes.core.lane import BusyMode
from hermes.services.commands.base import CommandContext, command
from hermes.store import turns

MEANING = {
    BusyMode.INTERRUPT: "a new message stops what I do and comes next",
    BusyMode.QUEUE: "each message waits its turn",
    BusyMode.STEER: "a new message is handed to me after the current tool call",
}


@command("busy", summary="What a new message does while I work", usage="/busy [interrupt|queue|steer]")
async def busy(ctx: CommandContext) -> str:
    chosen = ctx.rest.lower()
    if chosen in list(BusyMode):
        await ctx.db.write(turns.set_busy_mode, ctx.lane, chosen)
        return f"{chosen}: {MEANING[BusyMode(chosen)]}."
    now = ctx.lanes.mode_of(ctx.session_key, await ctx.db.read(turns.busy_mode, ctx.lane))
    others = ", ".join(mode for mode in BusyMode if mode is not now)
    return f"{now}: {MEANING[now]}. Others: {others} (/busy {others.split(', ')[0]})."
