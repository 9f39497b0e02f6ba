"""/personality: choose the agent's personality in this chat."""

from __future__ import annotations

from hermes.core.keys import ChatKind, SessionKey
from hermes.core.roles import PersonRole, at_least
from hermes.core.slash_command import nearest
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.store import chat_settings


@command("personality", summary="Who I am in this chat", usage="/personality [NAME|default]")
async def personality(ctx: CommandContext) -> str:
    wanted = ctx.rest.strip()
    if not wanted:
        config = ctx.services.config()
        chosen = (await ctx.services.db.read(chat_settings.of_lane, ctx.lane)).personality
        now = config.persona_for(SessionKey.parse(ctx.lane), chosen).name
        text = ctx.words.PERSONALITY_NOW.format(name=now) if now else ctx.words.PERSONALITY_OWN
        if not config.personalities:
            return f"{text} {ctx.words.PERSONALITY_NONE}"
        return f"{text} {ctx.words.PERSONALITY_OTHERS.format(names=_names(ctx))}"
    # What several people share is settled by those who look after it.
    lane = SessionKey.parse(ctx.lane)
    is_own = lane.kind is ChatKind.DM or bool(lane.person)
    if not (is_own or at_least(ctx.role, PersonRole.ADMIN)):
        return ctx.words.PERSONALITY_NOT_YOURS
    known = {name.casefold(): name for name in ctx.services.config().personalities}
    if wanted.casefold() in ("default", "none"):
        await ctx.services.db.write(chat_settings.choose, ctx.lane, "personality", "")
        return ctx.words.PERSONALITY_DEFAULT
    name = known.get(wanted.casefold())
    if name is None:
        guess = nearest(wanted.casefold(), known)
        form = ctx.words.PERSONALITY_NEAR if guess else ctx.words.PERSONALITY_UNKNOWN
        return form.format(name=one_line(wanted, 40), nearest=known.get(guess, ""), names=_names(ctx))
    await ctx.services.db.write(chat_settings.choose, ctx.lane, "personality", name)
    return ctx.words.PERSONALITY_CHOSEN.format(name=name)


def _names(ctx: CommandContext) -> str:
    return ", ".join(ctx.services.config().personalities) or "–"
