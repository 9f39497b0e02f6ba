"""/verbose: what this chat is shown of tools at work."""

from __future__ import annotations

from hermes.config.schema import ToolProgress
from hermes.services import progress, words
from hermes.services.commands.base import CommandContext, command
from hermes.services.presenter import Presenter
from hermes.store import choices

USAGE = "/verbose [off|new|all|verbose|default]"
DEFAULT = "default"


@command("verbose", summary="What you see of my tools at work", usage=USAGE)
async def verbose(ctx: CommandContext) -> str:
    configured = ctx.config().agent.tool_progress
    chosen = ctx.rest.strip().lower()
    if chosen == DEFAULT or chosen in list(ToolProgress):
        await ctx.db.write(choices.choose_tool_progress, ctx.lane, "" if chosen == DEFAULT else chosen)
        mode = progress.mode_of(chosen, configured)
        ctx.parts.get(Presenter).set_mode(ctx.lane, mode)
        return words.TOOL_PROGRESS[mode]
    if chosen:
        return words.TOOL_PROGRESS_UNKNOWN.format(word=chosen[:40], usage=USAGE)
    kept = (await ctx.db.read(choices.of_lane, ctx.lane)).tool_progress
    mode = progress.mode_of(kept, configured)
    others = ", ".join(f"/verbose {each}" for each in ToolProgress if each is not mode)
    return words.TOOL_PROGRESS_NOW.format(now=words.TOOL_PROGRESS[mode], others=others)
