"""/reasoning: choose the model's reasoning effort in this chat."""

from __future__ import annotations

from hermes.core.i18n.en import Texts
from hermes.services.commands.base import CommandContext, command
from hermes.services.commands.settings.model import may_choose
from hermes.store import chat_settings

LEVELS = ("low", "medium", "high", "off")


@command("reasoning", summary="How much I think before I answer", usage="/reasoning [low|medium|high|off|default]")
async def reasoning(ctx: CommandContext) -> str:
    words = ctx.words
    chosen = ctx.rest.strip().lower()
    if chosen in ("", "show"):
        kept = (await ctx.services.db.read(chat_settings.of_lane, ctx.lane)).reasoning
        others = ", ".join(level for level in LEVELS if level != kept)
        if not kept:
            return words.REASONING_FREE.format(others=others)
        return words.REASONING_NOW.format(level=kept, meaning=meaning(words, kept), others=others)
    if chosen not in LEVELS and chosen != "default":
        return words.REASONING_UNKNOWN.format(word=chosen[:40], levels=", ".join(LEVELS))
    if not may_choose(ctx):
        return words.MODEL_NOT_YOURS
    await ctx.services.db.write(chat_settings.choose, ctx.lane, "reasoning", "" if chosen == "default" else chosen)
    if chosen == "default":
        return words.REASONING_DEFAULT
    return words.REASONING_SET.format(level=chosen, meaning=meaning(words, chosen))


def meaning(words: Texts, level: str) -> str:
    meanings = {
        "low": words.REASONING_LOW,
        "medium": words.REASONING_MEDIUM,
        "high": words.REASONING_HIGH,
        "off": words.REASONING_OFF,
    }
    return meanings.get(level, words.REASONING_CHOSEN)
