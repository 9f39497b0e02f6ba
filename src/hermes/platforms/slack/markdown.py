"""Render neutral Markdown as Slack's mrkdwn."""

from __future__ import annotations

import re

from hermes.core.markdown import blocks
from hermes.core.markdown.basic import FewMarks
from hermes.core.markdown.blocks import Span

_ADDRESS = re.compile(r"(?:https?|mailto|tel|slack):", re.IGNORECASE)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Mrkdwn(FewMarks):
    def text(self, text: str) -> str:
        return escape(text)

    def link(self, words: str, span: Span) -> str:
        address = escape(span.address)
        if not _ADDRESS.match(span.address):
            return address if span.text == span.address else f"{words} ({address})"
        address = address.replace("|", "%7C")
        return f"<{address}>" if span.text == span.address else f"<{address}|{escape(span.text).replace('|', '¦')}>"


def render(source: str) -> str:
    return blocks.render(source, _MRKDWN)


_MRKDWN = _Mrkdwn()
