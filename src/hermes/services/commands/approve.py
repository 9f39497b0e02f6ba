"""/approve and /deny: the typed answer to an approval."""

from __future__ import annotations

from hermes.services.approvals import Answer
from hermes.services.commands.base import CommandContext, command
from hermes.store.approvals import Approval


@command("approve", summary="Allow what I asked for", usage="/approve CODE")
async def approve(ctx: CommandContext) -> str:
    return await _answer(ctx, allow=True)


@command("deny", summary="Refuse what I asked for", usage="/deny CODE [reason]")
async def deny(ctx: CommandContext) -> str:
    return await _answer(ctx, allow=False)


async def _answer(ctx: CommandContext, *, allow: bool) -> str:
    word, _, rest = ctx.rest.partition(" ")
    approval = await ctx.approvals.find(word) if word else None
    reason = rest.strip() if approval else ctx.rest
    if approval is None:
        waiting = await ctx.approvals.pending(ctx.lane)
        if not waiting:
            return "Nothing is waiting for an answer here."
        if len(waiting) > 1 or (allow and word):
            return "Which one? " + _list(waiting)
        approval = waiting[0]
    answered = await ctx.approvals.answer(
        approval.id, allow=allow, platform=ctx.session_key.platform, sender_id=ctx.sender_id, reason=reason
    )
    if answered.answer is Answer.NOT_YOURS and approval.lane != ctx.lane:
        return "There is no such question here."  # a stranger to it learns nothing about it
    return answered.sentence(allow=allow)


def _list(waiting: list[Approval]) -> str:
    return "; ".join(f"{approval.code}: {approval.question}" for approval in waiting[:10])
