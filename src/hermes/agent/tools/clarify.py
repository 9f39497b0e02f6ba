"""clarify: ask the person a question and end the turn."""

from __future__ import annotations

from hermes.agent.toolkit.context import ToolContext, ToolOutput
from hermes.agent.toolkit.schema import tool
from hermes.core.errors import ToolError
from hermes.core.lane import DOORS
from hermes.core.roles import PersonRole

MAX_CHOICES = 6
QUESTION_CHARACTERS = 2000
CHOICE_CHARACTERS = 300


@tool(toolset="talk", role=PersonRole.GUEST, is_personal=False)
async def clarify(ctx: ToolContext, question: str, choices: list[str] | None = None) -> ToolOutput:
    """Ask the user one question, with up to 6 choices, and end your turn; their next message is the answer.

    Use it only when you cannot go on well without the answer.
    """
    if ctx.session_key.platform in DOORS:
        raise ToolError("Nobody can answer here. Decide yourself, go on, and say in your answer what you assumed.")
    wanted = " ".join(question.split("\0")).strip()
    offered = [choice.strip() for choice in choices or [] if choice.strip()]
    if not wanted or len(wanted) > QUESTION_CHARACTERS:
        raise ToolError(f"'question' is one question of 1 to {QUESTION_CHARACTERS} characters.")
    if len(offered) > MAX_CHOICES or any(len(choice) > CHOICE_CHARACTERS for choice in offered):
        raise ToolError(f"At most {MAX_CHOICES} choices, each of at most {CHOICE_CHARACTERS} characters.")
    if not offered:
        return ToolOutput(wanted, asks=True)
    numbered = [f"{number}. {choice}" for number, choice in enumerate(offered, 1)]
    return ToolOutput("\n".join([wanted, *numbered, "", ctx.words.CLARIFY]), asks=True)
