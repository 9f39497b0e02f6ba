"""/model: which model answers in this chat."""

from __future__ import annotations

from hermes.config import Config
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.people import PersonRole, at_least
from hermes.services.commands.base import CommandContext, command
from hermes.services.models import is_there, meant, ready
from hermes.store import choices

NOT_YOURS = (
    "In this chat only an admin or the owner chooses the model. "
    "Owner: `model.users_may_choose: true` lets users choose in their own chats."
)


@command("model", summary="Which model answers here", usage="/model [list|use NAME|default]")
async def model(ctx: CommandContext) -> str:
    verb, _, name = ctx.rest.strip().partition(" ")
    match verb.lower():
        case "" | "show":
            return await _shown(ctx)
        case "list":
            return await _listed(ctx)
        case "default":
            return await _chosen(ctx, "")
        case "use":
            return await _chosen(ctx, name.strip()) if name.strip() else "Which one? /model list shows what there is."
        case _:
            return await _chosen(ctx, ctx.rest.strip())


def may_choose(ctx: CommandContext) -> bool:
    """Admins anywhere; users in a chat of their own, where the owner allows it."""
    if at_least(ctx.role, PersonRole.ADMIN):
        return True
    lane = SessionKey.parse(ctx.lane)
    return ctx.config().model.users_may_choose and (lane.kind is ChatKind.DM or bool(lane.person))


async def _shown(ctx: CommandContext) -> str:
    config = ctx.config()
    kept = await ctx.db.read(choices.of_lane, ctx.lane)
    if kept.model and is_there(kept.model, config):
        told = f"{kept.model}, chosen for this chat. The default is {_default(config)}: /model default goes back."
    elif kept.model:
        told = f"{_default(config)}, since {kept.model}, chosen for this chat, is not configured any more."
    else:
        told = f"{_default(config)}, the default."
    thinking = f" It thinks: {kept.reasoning} (/reasoning)." if kept.reasoning else ""
    change = " /model list shows others." if may_choose(ctx) else ""
    return f"{told}{thinking}{change}"


async def _listed(ctx: CommandContext) -> str:
    loaded = ctx.loaded()
    config = loaded.config
    lines = [f"{_default(config)} (the default)"]
    for provider in ready(loaded):
        name = f"{provider.name}/{provider.default_model or '…'}"
        if provider.name != config.model.provider:
            lines.append(name)
    lines += [f"{name} → {route}" for name, route in config.model_routes.items()]
    how = "/model use NAME; any model of these providers, as provider/model." if may_choose(ctx) else NOT_YOURS
    return "\n".join([*dict.fromkeys(lines), how])


async def _chosen(ctx: CommandContext, name: str) -> str:
    if not may_choose(ctx):
        return NOT_YOURS
    chosen = meant(name, ctx.loaded()) if name else ""
    await ctx.db.write(choices.choose_model, ctx.lane, chosen)
    if not chosen:
        return f"This chat uses the default again: {_default(ctx.config())}."
    return f"This chat uses {chosen} from the next message on. /model default goes back."


def _default(config: Config) -> str:
    model = config.model.default
    return model if model.startswith(f"{config.model.provider}/") else f"{config.model.provider}/{model}"
