"""/voice: choose when this chat gets voice messages."""

from __future__ import annotations

from hermes.core.i18n.en import Texts
from hermes.services.commands.base import CommandContext, command
from hermes.store import chat_settings

DEFAULT = "only-when-asked"
MODES = ("on", "off", DEFAULT)


@command("voice", summary="When I speak aloud", usage="/voice [on|off|only-when-asked]")
async def voice(ctx: CommandContext) -> str:
    chosen = ctx.rest.strip().lower()
    if chosen in MODES:
        await ctx.services.db.write(chat_settings.choose, ctx.lane, "voice", chosen)
        return describe_mode(ctx.words, chosen)
    now = (await ctx.services.db.read(chat_settings.of_lane, ctx.lane)).voice or DEFAULT
    others = ", ".join(f"/voice {mode}" for mode in MODES if mode != now)
    return ctx.words.VOICE_NOW.format(now=describe_mode(ctx.words, now), others=others)


def describe_mode(words: Texts, mode: str) -> str:
    meaning = {"on": words.VOICE_ON, "off": words.VOICE_OFF, DEFAULT: words.VOICE_ONLY_WHEN_ASKED}
    return meaning.get(mode, words.VOICE_ONLY_WHEN_ASKED)
