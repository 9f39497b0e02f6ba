"""find_tools: find tools that are not offered with every request."""

from __future__ import annotations

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.toolkit.search import best_matches, line_of
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.agent.toolkit.toolsets import FINDING
from hermes.core.roles import PersonRole


@tool(toolset=FINDING, role=PersonRole.GUEST, is_personal=False)
async def find_tools(ctx: ToolContext, need: str) -> str:
    """Find further tools by need, in English; they can be used from your next step on."""
    others = ctx.parts.get(Toolbox).further(ctx.origin, ctx.role)
    found = best_matches(need, others)
    if found:
        return "\n".join(map(line_of, found))
    if not others:
        return "There are no further tools for this person here. Do with what you have."
    groups: dict[str, list[str]] = {}
    for other in others:
        groups.setdefault(other.group, []).append(other.name)
    listed = "\n".join(f"{group}: {', '.join(names)}" for group, names in groups.items())
    return f"Nothing fits {need[:80]!r}. Name one of these to use it:\n{listed}"
