"""/reasoning: how hard the model thinks in this chat."""

from __future__ import annotations

from hermes.services.commands.base import CommandContext, command
from hermes.services.commands.model import NOT_YOURS, may_choose
from hermes.store import choices

MEANING = {
    "low": "a little thinking, quick answers",
    "medium": "some thinking",
    "high": "as much thinking as it takes, slower and dearer",
    "off": "no thinking, where the model can leave it",
}


@command("reasoning", summary="How hard I think", usage="/reasoning [low|medium|high|off|default]")
async def reasoning(ctx: CommandContext) -> str:
    chosen = ctx.rest.strip().lower()
    if chosen in ("", "show"):
        kept = (await ctx.db.read(choices.of_lane, ctx.lane)).reasoning
        now = f"{kept}: {MEANING.get(kept, 'chosen for this chat')}" if kept else "as the model likes"
        return f"Thinking here is {now}. Others: {', '.join(level for level in MEANING if level != kept)}."
    if chosen not in MEANING and chosen != "default":
        return f"There is no {chosen[:40]!r}. Choose one: {', '.join(MEANING)}, default."
    if not may_choose(ctx):
        return NOT_YOURS
    await ctx.db.write(choices.choose_reasoning, ctx.lane, "" if chosen == "default" else chosen)
    if chosen == "default":
        return "Thinking here is as the model likes again."
    return f"{chosen}: {MEANING[chosen]}. It counts from the next message on."
