"""skill_manage: write the owner's own skills."""

from __future__ import annotations

import asyncio
from typing import Literal

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import SkillError
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole

Action = Literal["create", "edit", "write_file", "delete", "restore"]


def ask_first(
    ctx: ToolContext,
    action: Action,
    name: str,
    content: str = "",
    category: str = "own",  # noqa: ARG001 - a rule takes what its tool takes
    file: str = "",
) -> ApprovalNeed | None:
    """Ask before every change of a skill: later conversations read it, so an injected text would stay."""
    from hermes.agent.skills.scan import scan_text  # 5 ms of patterns that most days nobody needs

    report = scan_text(file or "SKILL.md", content)
    if report.refusals:
        raise ToolError("This text cannot be a skill: " + "; ".join(map(str, report.refusals[:3])))
    odd = "".join(f"\n! {warning}" for warning in report.warnings[:5])
    subject = "write:skills" if not report.warnings else ""
    return ApprovalNeed(ctx.words.ASK_SKILL.format(action=action, name=name) + odd, subject=subject)


@tool(toolset="skills", approval=ask_first, role=PersonRole.ADMIN)
async def skill_manage(
    ctx: ToolContext, action: Action, name: str, content: str = "", category: str = "own", file: str = ""
) -> str:
    """Write down know-how as a skill, or change one: after work that was hard to find out and will come again.

    `create` and `edit` take the whole SKILL.md as `content`: front matter with `name` and `description` (when to use
    it, in one line), then the steps. `write_file` adds a file such as `references/limits.md`. `delete` is undone by
    `restore`.
    """
    from hermes.agent.skills.edit import SkillWriter  # it knows archives and git: 10 ms

    library = ctx.parts.get(SkillLibrary)
    writer = SkillWriter(library)
    try:
        match action:
            case "create":
                done = await asyncio.to_thread(writer.create, name, content, category)
            case "edit":
                done = await asyncio.to_thread(writer.edit, name, content)
            case "write_file":
                done = await asyncio.to_thread(writer.write_file, name, file, content)
            case "delete":
                done = await asyncio.to_thread(writer.delete, name)
            case "restore":
                done = await asyncio.to_thread(writer.restore, name)
    except SkillError as error:
        raise ToolError(str(error)) from None
    return done
