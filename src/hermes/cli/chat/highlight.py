"""Colour code with Pygments, which is imported with the first block of code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hermes.cli.chat.lines import Line, StyledText

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

ANCHOR_LINES = 200
"""Code is read again from the last multiple of this, so that a long block costs no more for each of its lines."""

MAX_LINE = 500  # a longer line is data, and patterns may take long for it

_STYLES = {
    "Comment": "comment",
    "Keyword": "keyword",
    "Literal.String": "string",
    "Literal.Number": "number",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Decorator": "name",
    "Name.Tag": "name",
    "Name.Builtin": "builtin",
    "Generic.Deleted": "bad",
    "Generic.Inserted": "good",
    "Generic.Heading": "strong",
    "Generic.Subheading": "strong",
}


class Highlighter:
    """Colours the lines of one block of code in the order in which they come."""

    def __init__(self, language: str) -> None:
        self._lexer = _lexer(language)
        self._lines: list[str] = []
        self._count = 0

    def add(self, lines: Sequence[str]) -> list[Line]:
        """Take lines that are complete and return them coloured."""
        shown = self.peek(lines)
        self._lines += lines
        self._count += len(lines)
        if self._count >= ANCHOR_LINES:
            self._lines, self._count = [], 0
        return shown

    def peek(self, lines: Sequence[str]) -> list[Line]:
        """Colour lines that follow, without keeping them."""
        if self._lexer is None or any(len(line) > MAX_LINE for line in (*self._lines, *lines)):
            return [(StyledText(line, "block"),) if line else () for line in lines]
        source = "\n".join([*self._lines, *lines])
        coloured = list(_split(self._lexer, source))[len(self._lines) :]
        coloured += [()] * (len(lines) - len(coloured))
        return coloured[: len(lines)]


def _lexer(language: str) -> Lexer | None:
    if not language or len(language) > 40:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language.casefold(), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _split(lexer: Lexer, source: str) -> Iterator[Line]:
    """The tokens of a source, line by line."""
    row: list[StyledText] = []
    for kind, text in lexer.get_tokens(source):
        style = f"block {name}" if (name := _style(kind)) else "block"
        first, *others = text.split("\n")
        if first:
            row.append(StyledText(first, style))
        for part in others:
            yield tuple(row)
            row = [StyledText(part, style)] if part else []
    yield tuple(row)


def _style(kind: _TokenType) -> str:
    name = str(kind).removeprefix("Token.")
    while name:
        if name in _STYLES:
            return _STYLES[name]
        name = name.rpartition(".")[0]
    return ""
