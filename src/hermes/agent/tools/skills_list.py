"""skills_list: list skills."""

from __future__ import annotations

import asyncio

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import same_name
from hermes.agent.skills.render import listed
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool


@tool(toolset="skills", is_personal=False)
async def skills_list(ctx: ToolContext, category: str = "") -> str:
    """List the skills there are, with what each is for; `category` narrows it down.

    A skill is written know-how for a kind of work. Read one with skill_view before you begin such work.
    """
    library = ctx.parts.get(SkillLibrary)
    await asyncio.to_thread(library.refresh)
    offered = library.offered(ctx.session_key.platform)
    wanted = [skill for skill in offered if not category or same_name(skill.category) == same_name(category)]
    if not wanted and category:
        known = ", ".join(sorted({skill.category for skill in offered if skill.category}))
        return f"There is no skill in the category {category!r}. Categories: {known or 'none'}."
    return listed(wanted) or "There are no skills."
