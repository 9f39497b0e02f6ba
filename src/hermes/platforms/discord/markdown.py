"""Render neutral Markdown as Discord's: three headings, no tables, pictures or rules; ``__`` and ``||`` escaped."""

from __future__ import annotations

import re

from hermes.core.markdown import blocks
from hermes.core.markdown.blocks import Block, Span, Style, fenced

_LANGUAGE = re.compile(r"[\w+#.-]{0,30}")
_SMALL = re.compile(r"^([ \t]*)-#(?=[ \t])")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


class _Discord(Style):
    bold, italic, strike, quote = "**", "*", "~~", "> "
    bullets = ("", "- ☐ ", "- ☑ ")
    headings = 3
    flattens_quotes = True

    def text(self, text: str) -> str:
        small = _SMALL.sub(r"\1\\-#", text) if "-#" in text else text
        return small.replace("||", "\\|\\|")

    def escaped(self, span: Span) -> str:
        return span.source

    def code(self, span: Span) -> str:
        return span.source

    def code_block(self, text: str, info: str) -> str:
        """``info`` is the language, or else the first line: Discord would not show it."""
        return fenced(text, info) if _LANGUAGE.fullmatch(info) else fenced(f"{info}\n{text}")

    def item(self, block: Block) -> str:
        return super().item(block) if block.level else block.head

    def link(self, words: str, span: Span) -> str:
        """Discord shows a link behind words for web addresses only, and not where the words are one themselves."""
        if span.text == span.address:
            return span.source if span.source[0] == "<" else span.address  # <…> shows no preview
        if not _ADDRESS.match(span.address) or _ADDRESS.search(span.text):
            return f"{words} ({span.address})"
        return f"[{words}]({span.address})"


def render(source: str) -> str:
    return blocks.render(source, _DISCORD)


_DISCORD = _Discord()
