"""Render skills for the model and for the lists people read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.skills.parse import Skill, SkillError, parse
from hermes.core.messages import InboundMessage
from hermes.core.slash_command import read_command
from hermes.core.text import one_line
from hermes.store import codec
from hermes.store.inbox import InboxRow
from hermes.store.turns.prompts import Prompt

KIND = "skill"
"""The kind of an inbox row whose text calls a skill."""


def body_of(library: SkillLibrary, skill: Skill) -> str:
    """Return the instructions of a skill without its front matter. Blocks."""
    try:
        return parse(library.read(skill).encode()).body
    except SkillError as error:
        raise SkillError(f"The skill {skill.name} cannot be read: {error}") from None


def view(library: SkillLibrary, skill: Skill) -> str:
    """Return a skill as the model reads it: its text, then what belongs to it. Blocks."""
    lines = [f"# Skill: {skill.address}", "", body_of(library, skill)]
    if files := library.files(skill):
        lines.append(f"Files (read one with skill_view name={skill.name!r} file=…): {', '.join(files)}")
    if related := [name for name in skill.related if library.find(name) is not None]:
        lines.append(f"Related skills: {', '.join(related)}")
    return "\n".join([*lines, *missing_lines(library, skill)])


def missing_lines(library: SkillLibrary, skill: Skill) -> list[str]:
    """Return what to put into `.env`, to the letter, for the variables that a skill needs and that are not set."""
    return [
        f"{variable.name} is not set. The owner adds this line to {library.folder.parent / '.env'}:\n"
        f"{variable.name}=<{variable.help or 'value'}>"
        for variable in library.missing(skill)
    ]


def listed(skills: Sequence[Skill], limit: int = 200) -> str:
    """Names and descriptions by category."""
    lines: list[str] = []
    category = None
    for skill in skills:
        if skill.category != category:
            category = skill.category
            lines.append(f"{category or 'without a category'}:")
        lines.append(f"  {skill.name}: {one_line(skill.description, limit)}")
    return "\n".join(lines)


class SkillCalls:
    """Prepend the skill of ``/git-work undo my last commit``. Wraps the composer of prompts, in the store's thread."""

    def __init__(self, library: SkillLibrary, compose: Callable[[Sequence[InboxRow]], Prompt]) -> None:
        self._library = library
        self._compose = compose

    def compose(self, rows: Sequence[InboxRow]) -> Prompt:
        return self._compose([self._with_skill(row) if row.kind == KIND else row for row in rows])

    def _with_skill(self, row: InboxRow) -> InboxRow:
        message = codec.load_message(row.body)
        return replace(row, body=codec.dump(replace(message, text=self._loaded(message))))

    def _loaded(self, message: InboundMessage) -> str:
        line = read_command(message.text)
        skill = self._library.find(line.name, message.session_key.platform) if line is not None else None
        if line is None or skill is None:
            return message.text  # switched off or removed since it was called
        try:
            text = view(self._library, skill)
        except SkillError as error:
            return f"{message.text}\n[{error}]"
        request = line.rest or "(nothing more; begin, or ask what is wanted)"
        return f"[I call the skill {skill.name}. Work as it says.]\n{text}\n[End of the skill {skill.name}.]\n{request}"
