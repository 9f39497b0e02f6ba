"""/tools: what this person can have done in this chat."""

from __future__ import annotations

from hermes.agent.toolkit import Toolbox
from hermes.agent.toolsets import FINDING, GROUPS
from hermes.core.keys import SessionKey
from hermes.core.people import PersonRole
from hermes.services.commands.base import CommandContext, command

NONE = "We can talk; there are no tools for you here."


@command("tools", summary="What I can use for you in this chat", role=PersonRole.GUEST)
async def tools(ctx: CommandContext) -> str:
    toolbox, here = ctx.parts.get(Toolbox), SessionKey.parse(ctx.lane)
    groups: dict[str, list[str]] = {}
    for tool in toolbox.allowed(here, ctx.role):
        if tool.group != FINDING:
            groups.setdefault(tool.group, []).append(tool.name)
    if not groups:
        return NONE
    lines = [f"{_about(group)}: {', '.join(names)}" for group, names in sorted(groups.items())]
    return f"Toolset {toolbox.access(here).name}, as {ctx.role}:\n" + "\n".join(lines)


def _about(group: str) -> str:
    known = GROUPS.get(group)
    return f"{group} ({known.about})" if known else group
