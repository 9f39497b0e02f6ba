"""/verbose: choose how much of the tools' work this chat shows."""

from __future__ import annotations

from hermes.config.agent_settings import ToolProgressMode
from hermes.core.i18n.en import Texts
from hermes.services.commands.base import CommandContext, command
from hermes.services.outbound import tool_progress
from hermes.services.outbound.presenter import Presenter
from hermes.store import chat_settings

USAGE = "/verbose [off|new|all|verbose|default]"
DEFAULT = "default"


@command("verbose", summary="What you see of my tools at work", usage=USAGE)
async def verbose(ctx: CommandContext) -> str:
    configured = ctx.services.config().agent.tool_progress
    chosen = ctx.rest.strip().lower()
    if chosen == DEFAULT or chosen in list(ToolProgressMode):
        own = "" if chosen == DEFAULT else chosen
        await ctx.services.db.write(chat_settings.choose, ctx.lane, "tool_progress", own)
        mode = tool_progress.mode_of(chosen, configured)
        ctx.parts.get(Presenter).set_mode(ctx.lane, mode)
        return describe_mode(ctx.words, mode)
    if chosen:
        return ctx.words.TOOL_PROGRESS_UNKNOWN.format(word=chosen[:40], usage=USAGE)
    kept = (await ctx.services.db.read(chat_settings.of_lane, ctx.lane)).tool_progress
    mode = tool_progress.mode_of(kept, configured)
    others = ", ".join(f"/verbose {each}" for each in ToolProgressMode if each is not mode)
    return ctx.words.TOOL_PROGRESS_NOW.format(now=describe_mode(ctx.words, mode), others=others)


def describe_mode(words: Texts, mode: ToolProgressMode) -> str:
    meaning = {
        ToolProgressMode.OFF: words.TOOL_PROGRESS_OFF,
        ToolProgressMode.NEW: words.TOOL_PROGRESS_NEW,
        ToolProgressMode.ALL: words.TOOL_PROGRESS_ALL,
        ToolProgressMode.VERBOSE: words.TOOL_PROGRESS_VERBOSE,
    }
    return meaning[mode]
