"""/busy, /queue and /steer: what a new message does while I work."""

from __future__ import annotations

from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.lane import BusyMode
from hermes.services.commands.base import CommandContext, command
from hermes.store.turns import lanes


@command("busy", summary="What a new message does while I work", usage="/busy [interrupt|queue|steer]")
async def busy(ctx: CommandContext) -> str:
    chosen = ctx.rest.lower()
    if chosen in list(BusyMode):
        await ctx.services.db.write(lanes.set_busy_mode, ctx.lane, chosen)
        return ctx.words.BUSY_SET.format(mode=chosen, meaning=meaning(ctx.words, BusyMode(chosen)))
    now = ctx.services.lanes.mode_of(SessionKey.parse(ctx.lane), await ctx.services.db.read(lanes.busy_mode, ctx.lane))
    others = [mode.value for mode in BusyMode if mode is not now]
    return ctx.words.BUSY_NOW.format(
        mode=now, meaning=meaning(ctx.words, now), others=", ".join(others), first=others[0]
    )


def meaning(words: Texts, mode: BusyMode) -> str:
    meanings = {
        BusyMode.INTERRUPT: words.BUSY_INTERRUPT,
        BusyMode.QUEUE: words.BUSY_QUEUE,
        BusyMode.STEER: words.BUSY_STEER,
    }
    return meanings[mode]


@command("queue", summary="Write something for after my current work", usage="/queue TEXT")
async def queue(ctx: CommandContext) -> str:
    """With a text it is a message, which the intake has taken as such: only the bare word comes here."""
    return ctx.words.QUEUE_USAGE


@command("steer", summary="Write something for my current work", usage="/steer TEXT")
async def steer(ctx: CommandContext) -> str:
    return ctx.words.STEER_USAGE
