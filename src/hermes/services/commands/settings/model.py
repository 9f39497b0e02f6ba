"""/model: choose the model of this chat."""

from __future__ import annotations

from hermes.config import Config
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import PersonRole, at_least
from hermes.services.commands.base import CommandContext, command
from hermes.services.models import full_model_name, is_there, ready, route_of
from hermes.store import chat_settings


@command("model", summary="Which model answers here", usage="/model [list|use NAME|default]")
async def model(ctx: CommandContext) -> str:
    verb, _, name = ctx.rest.strip().partition(" ")
    match verb.lower():
        case "" | "show":
            return await _describe_model(ctx)
        case "list":
            return await _listed(ctx)
        case "default":
            return await _chosen(ctx, "")
        case "use":
            return await _chosen(ctx, name.strip()) if name.strip() else ctx.words.MODEL_WHICH
        case _:
            return await _chosen(ctx, ctx.rest.strip())


def may_choose(ctx: CommandContext) -> bool:
    """Admins anywhere; users in a chat of their own, where the owner allows it."""
    if at_least(ctx.role, PersonRole.ADMIN):
        return True
    lane = SessionKey.parse(ctx.lane)
    return ctx.services.config().model.users_may_choose and (lane.kind is ChatKind.DM or bool(lane.person))


async def _describe_model(ctx: CommandContext) -> str:
    config, words = ctx.services.config(), ctx.words
    kept = await ctx.services.db.read(chat_settings.of_lane, ctx.lane)
    settled = route_of(config, SessionKey.parse(ctx.lane))
    default = settled or _default(config)
    if kept.model and is_there(kept.model, config):
        text = words.MODEL_CHOSEN.format(model=kept.model, default=default)
    elif kept.model:
        text = words.MODEL_GONE.format(model=kept.model, default=default)
    else:
        text = (words.MODEL_SETTLED if settled else words.MODEL_DEFAULT).format(default=default)
    thinking = words.MODEL_THINKS.format(level=kept.reasoning) if kept.reasoning else ""
    change = words.MODEL_OTHERS if may_choose(ctx) else ""
    return f"{text}{thinking}{change}"


async def _listed(ctx: CommandContext) -> str:
    loaded = ctx.services.loaded()
    config = loaded.config
    lines = [ctx.words.MODEL_IS_DEFAULT.format(default=_default(config))]
    for provider in ready(loaded):
        name = f"{provider.name}/{provider.default_model or '…'}"
        if provider.name != config.model.provider:
            lines.append(name)
    lines += [f"{name} → {route}" for name, route in config.model_routes.items()]
    how = ctx.words.MODEL_HOW if may_choose(ctx) else ctx.words.MODEL_NOT_YOURS
    return "\n".join([*dict.fromkeys(lines), how])


async def _chosen(ctx: CommandContext, name: str) -> str:
    if not may_choose(ctx):
        return ctx.words.MODEL_NOT_YOURS
    chosen = full_model_name(name, ctx.services.loaded()) if name else ""
    await ctx.services.db.write(chat_settings.choose, ctx.lane, "model", chosen)
    if not chosen:
        default = route_of(ctx.services.config(), SessionKey.parse(ctx.lane)) or _default(ctx.services.config())
        return ctx.words.MODEL_BACK.format(default=default)
    return ctx.words.MODEL_FROM_NOW.format(model=chosen)


def _default(config: Config) -> str:
    model = config.model.default
    return model if model.startswith(f"{config.model.provider}/") else f"{config.model.provider}/{model}"
