"""Write the card that asks about a tool call: whole, as an excerpt, or as a text file."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.markdown import call_text
from hermes.core.markdown.call_text import CallPart, literal, reveal
from hermes.core.messages import Capabilities
from hermes.core.text import length, one_line, visible

SHOWN_WHOLE = 4000
"""Characters of a card that shows all; what is longer is read in a file, whatever a platform takes."""
MAX_ARGUMENTS = 12 * SHOWN_WHOLE
"""JSON that is longer holds more than a card shows, even if every letter of it is escaped."""
SHOWN_HEAD, SHOWN_TAIL = 600, 250
SHOWN_QUESTION = 300
SHOWN_WHERE = 200


@dataclass(frozen=True, slots=True)
class Card:
    """What a question is about, as text: to the byte, with nothing hidden and nothing out of sight."""

    words: Texts
    tool: str
    arguments: str
    question: str
    where: str

    @property
    def blocks(self) -> list[CallPart]:
        return call_text.blocks_of(self.tool, self.arguments)

    def whole(self) -> str:
        """Show all of it, as Markdown."""
        return self._written(call_text.as_markdown(self.blocks), reveal(self.question), reveal(self.where))

    def excerpt(self) -> str:
        """Show how it begins and how it ends; the same while it waits and afterwards."""
        blocks = self.blocks
        text = "\n\n".join(f"{block.label}:\n{block.text}" if block.label else block.text for block in blocks)
        more = len(text) - SHOWN_HEAD - SHOWN_TAIL
        if more > 0:
            # Only the ends are spelled out: of megabytes that would take seconds.
            head, tail = reveal(text[: 4 * SHOWN_HEAD])[:SHOWN_HEAD], reveal(text[-4 * SHOWN_TAIL :])[-SHOWN_TAIL:]
            text = f"{head}\n{self.words.APPROVAL_CUT.format(more=more)}\n{tail}"
        else:
            text = reveal(text)
        excerpt = call_text.fenced(call_text.fewer_lines(text))
        return self._written(excerpt, one_line(self.question, SHOWN_QUESTION), one_line(self.where, SHOWN_WHERE))

    def file_text(self, last_line: str) -> str:
        """Write all of it for a text file. Its last line is how it is approved."""
        title = f"{visible(self.tool)} {reveal(self.where)}".strip()
        return "\n\n".join((title, call_text.as_plain_text(self.blocks), reveal(self.question), last_line)) + "\n"

    def count(self) -> int:
        return sum(len(block.text) for block in self.blocks)

    def fits(self, how: str, limits: Capabilities) -> bool:
        """Tell whether one message shows all of it, together with how to answer."""
        if len(self.arguments) > MAX_ARGUMENTS:
            return False
        text = f"{self.whole()}\n{how}"
        room = min(limits.text_limit, SHOWN_WHOLE)
        return text.count("\n") <= call_text.MAX_LINES and length(text, limits.text_unit) <= room

    def _written(self, action: str, question: str, where: str) -> str:
        form = self.words.APPROVAL_WHERE if where else self.words.APPROVAL
        name = visible(self.tool).replace("`", "\u02cb")
        return form.format(name=name, where=literal(where), what=action, question=literal(question))
