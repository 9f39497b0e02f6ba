"""/tools: list the tools that this person may use in this chat."""

from __future__ import annotations

from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.toolkit.toolsets import FINDING, GROUPS
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.roles import PersonRole
from hermes.services.commands.base import CommandContext, command


@command("tools", summary="What I can use for you in this chat", role=PersonRole.GUEST)
async def tools(ctx: CommandContext) -> str:
    toolbox, here = ctx.parts.get(Toolbox), SessionKey.parse(ctx.lane)
    await toolbox.ready()
    groups: dict[str, list[str]] = {}
    for tool in toolbox.allowed(here, ctx.role):
        if tool.group != FINDING:
            groups.setdefault(tool.group, []).append(tool.name)
    if not groups:
        return ctx.words.TOOLS_NONE
    head = ctx.words.TOOLS_LIST.format(toolset=toolbox.access(here).name, role=ctx.words.role(ctx.role))
    return "\n".join([head, *(_line(ctx.words, group, names) for group, names in sorted(groups.items()))])


def _line(words: Texts, group: str, names: list[str]) -> str:
    known = GROUPS.get(group)
    form = words.TOOLS_GROUP if known else words.TOOLS_OTHER
    return form.format(group=group, about=words.group(group, known.about if known else ""), names=", ".join(names))
