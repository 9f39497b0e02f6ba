"""/owner: say whether you are the owner, while nobody is."""

from __future__ import annotations

from hermes.services.commands.base import CommandContext, command

_ANSWERS = {"yes": True, "y": True, "是": True, "no": False, "n": False, "否": False, "不是": False}


@command("owner", summary="Tell me whether you are the owner", usage="/owner [yes|no]")
async def owner(ctx: CommandContext) -> str:
    owners, choice = ctx.services.owners, ctx.rest.strip().casefold()
    if not choice:
        return owners.question(ctx.session_key, ctx.sender_id, ctx.person, ctx.words)
    if choice not in _ANSWERS or ctx.is_edit:
        return ctx.words.OWNER_USAGE
    answer = await owners.answer(ctx.session_key, ctx.sender_id, ctx.words, is_owner=_ANSWERS[choice])
    return answer.text
