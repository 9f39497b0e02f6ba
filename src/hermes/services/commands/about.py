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
    lines = [f"{known.usage or '/' + name} — {known.summary}" for name, known in sorted(mine.items())]
    return "Just write to me. Commands:\n" + "\n".join(lines)


@command("status", summary="Whether I am busy, and what is connected")
async def status(ctx: CommandContext) -> str:
    turn = ctx.lanes.running_turn(ctx.lane)
    waiting = await ctx.approvals.pending(ctx.lane)
    if waiting:
        doing = f"I'm waiting for your answer: /approve {waiting[0].code} or /deny {waiting[0].code}."
    elif turn:
        doing = f"I'm here, working on your message ({turn})."
    else:
        doing = "I'm here, nothing running."
    snapshot = await ctx.status()
    chats = [platform["account"] for platform in snapshot["platforms"] if platform["state"] == "connected"]
    chosen = (await ctx.db.read(choices.of_lane, ctx.lane)).model
    model = f"{chosen}, chosen here" if chosen and is_there(chosen, ctx.config()) else snapshot["model"]["label"]
    return f"{doing} Chats: {', '.join(chats) or 'none'}. Model: {model}."


@command("whoami", summary="Who you are to me")
async def whoami(ctx: CommandContext) -> str:
    name = ctx.person.name or "you"
    return f"{name}: {ctx.session_key.platform} {ctx.sender_id}, role {ctx.role}. This chat is {ctx.lane}."


@command("version", summary="Which Hermes this is")
async def version(_: CommandContext) -> str:
    return f"Hermes {hermes.__version__}"
