"""skill_view: read a skill."""

from __future__ import annotations

import asyncio

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import FILE_NAME, SkillError
from hermes.agent.skills.render import view
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError

MAX_LINES = 1000


@tool(toolset="skills", is_at_hand=True, is_personal=False)
async def skill_view(ctx: ToolContext, name: str, file: str = "", first_line: int = 1) -> str:
    """Read a skill (written know-how) before work it fits; `file` reads one of its further files."""
    if first_line < 1:
        raise ToolError("'first_line' starts at 1.")
    library = ctx.parts.get(SkillLibrary)
    try:
        return await asyncio.to_thread(_read, library, name, file, first_line, ctx.session_key.platform)
    except SkillError as error:
        raise ToolError(str(error)) from None


def _read(library: SkillLibrary, name: str, file: str, first_line: int, platform: str) -> str:
    library.refresh()
    skill = library.get(name, platform)
    text = view(library, skill) if file in {"", FILE_NAME} else library.read(skill, file)
    lines = text.split("\n")
    chosen = "\n".join(lines[first_line - 1 : first_line - 1 + MAX_LINES])
    if len(lines) >= first_line + MAX_LINES:
        chosen += f"\n[More lines follow: call again with first_line={first_line + MAX_LINES}.]"
    return chosen
