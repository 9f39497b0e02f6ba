"""/help, /status, /whoami, /version: what there is, and how it stands."""

from __future__ import annotations

import hermes
from hermes.core.people import at_least
from hermes.services.commands.base import CommandContext, command
from hermes.services.models import is_there
from hermes.store import choices


@command("help", summary="What you can say to me", also=("commands",))
async def help_(ctx: CommandContext) -> str:
    mine = {known.name: known for known in ctx.commands.values() if at_least(ctx.role, known.role)}
    lines = [
        f"{known.usage or '/' + name} — {ctx.words.summary(name, known.summary)}"
        for name, known in sorted(mine.items())
    ]
    return "\n".join([ctx.words.HELP, *lines])


@command("status", summary="Whether I am busy, and what is connected")
async def status(ctx: CommandContext) -> str:
    words = ctx.words
    turn = ctx.lanes.running_turn(ctx.lane)
    waiting = await ctx.approvals.pending(ctx.lane)
    if waiting:
        doing = words.STATUS_WAITING.format(code=waiting[0].code)
    elif turn:
        doing = words.STATUS_WORKING.format(turn=turn)
    else:
        doing = words.STATUS_QUIET
    snapshot = await ctx.status()
    chats = [platform["account"] for platform in snapshot["platforms"] if platform["state"] == "connected"]
    chosen = (await ctx.db.read(choices.of_lane, ctx.lane)).model
    model = snapshot["model"]["label"]
    if chosen and is_there(chosen, ctx.config()):
        model = words.STATUS_CHOSEN.format(model=chosen)
    return words.STATUS_REST.format(doing=doing, chats=", ".join(chats) or words.NONE, model=model)


@command("whoami", summary="Who you are to me")
async def whoami(ctx: CommandContext) -> str:
    return ctx.words.WHOAMI.format(
        name=ctx.person.name or ctx.words.WHOAMI_YOU,
        platform=ctx.session_key.platform,
        sender_id=ctx.sender_id,
        role=ctx.words.role(ctx.role),
        lane=ctx.lane,
    )


@command("version", summary="Which Hermes this is")
async def version(ctx: CommandContext) -> str:
    return ctx.words.VERSION.format(version=hermes.__version__)
