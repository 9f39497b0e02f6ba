"""Render neutral Markdown for QQ, or plain text where it is refused."""

from __future__ import annotations

import re

from hermes.core.markdown import blocks
from hermes.core.markdown.blocks import Span, Style

_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(([^()\s]+)\)")
_URL = re.compile(r"(?i)\b(?:https?|ftp)://\S+|\b(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:/\S*)?")


class _Plain(Style):
    bullets = ("• ", "• [ ] ", "• [x] ")
    has_tables = False

    def escaped(self, span: Span) -> str:
        return span.source

    def code(self, span: Span) -> str:
        return span.source.strip("`")

    def link(self, words: str, span: Span) -> str:
        return span.source if span.source[0] == "<" else super().link(words, span)


def has_marks(text: str) -> bool:
    return plain(text) != text


def plain(text: str) -> str:
    """The words alone: for captions, and for a bot that may not send Markdown."""
    return blocks.render(text, _PLAIN)


def without_addresses(text: str) -> str:
    """Addresses that cannot be followed, for a bot whose list does not name them: ``example[.]com/page``."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})", text)
    return _URL.sub(lambda url: re.sub(r"(?i)^(?:https?|ftp)://", "", url[0]).replace(".", "[.]"), text)


_PLAIN = _Plain()
