"""Render neutral Markdown as MarkdownV2: headings become bold lines, lists bullets, tables aligned text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.markdown.blocks import Block, Rows, Span, Style, Token, is_formatted, parse, render_line, write

_RESERVED = {ord(character): f"\\{character}" for character in "_*[]()~`>#+-=|{}.!\\"}
_RESERVED_IN_CODE = {ord(character): f"\\{character}" for character in "`\\"}
_RESERVED_IN_ADDRESS = {ord(character): f"\\{character}" for character in ")\\"}
_ADDRESS = re.compile(r"(?:https?|ftp|tg|mailto|tel):", re.IGNORECASE)
_BETWEEN_ITALICS = "**"  # an empty bold: two marks of italic side by side would be read as one of underline


@dataclass(frozen=True, slots=True)
class Rendered:
    """``text`` is MarkdownV2, ``shown`` what a reader sees; not ``is_formatted``: the source has no markup."""

    text: str
    shown: str
    is_formatted: bool


class _PlainText(Style):
    spans_lines = True

    def __init__(self, is_narrow: bool) -> None:
        self._is_narrow = is_narrow

    def table(self, rows: Rows) -> str:
        return self.code_block("\n".join(map("|".join, rows)), "") if self._is_narrow else super().table(rows)

    def cell(self, text: str) -> str:
        return render_line(text, _PlainText(self._is_narrow))

    def link(self, words: str, span: Span) -> str:
        return words if _ADDRESS.match(span.address) else super().link(words, span)

    def item(self, block: Block) -> str:
        return f"{block.indent}{block.number} " if block.number else super().item(block)


class _MarkdownV2(_PlainText):
    bold, italic, strike, quote = "*", "_", "~", ">"

    def text(self, text: str) -> str:
        return text.translate(_RESERVED)

    def code(self, span: Span) -> str:
        return f"`{span.text.translate(_RESERVED_IN_CODE)}`"

    def code_block(self, text: str, info: str) -> str:
        language = info.split(maxsplit=1)[0] if info else ""
        return f"```{language.translate(_RESERVED_IN_CODE)}\n{text.translate(_RESERVED_IN_CODE)}\n```"

    def item(self, block: Block) -> str:
        return self.text(super().item(block))

    def link(self, words: str, span: Span) -> str:
        if not _ADDRESS.match(span.address):  # Telegram would show the words and drop where they lead
            return words if span.text == span.address else f"{words}{self.text(f' ({span.address})')}"
        return f"[{words}]({span.address.translate(_RESERVED_IN_ADDRESS)})"

    def join(self, tokens: Sequence[Token]) -> str:
        written: list[str] = []
        ends_italic = False
        for text, role in tokens:
            is_mark = role in ("opens", "closes")
            if is_mark and ends_italic and text[:1] == "_":
                written.append(_BETWEEN_ITALICS)
            if text:
                ends_italic = is_mark and text[-1] == "_"
            written.append(text)
        return "".join(written)


def render(source: str, *, is_narrow: bool = False) -> Rendered:
    """``is_narrow``: columns of tables are not aligned, so that what is shown is no longer than the source."""
    style = _MarkdownV2(is_narrow)
    blocks = parse(source, style)
    return Rendered(write(blocks, style), write(blocks, _PlainText(is_narrow)), is_formatted(blocks))
