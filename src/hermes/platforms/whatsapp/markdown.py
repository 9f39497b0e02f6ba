"""Neutral Markdown as WhatsApp writes it: the few marks, lists of its own, and no link behind words."""

from __future__ import annotations

from hermes.core.markdown import blocks
from hermes.core.markdown.basic import FewMarks


class _WhatsApp(FewMarks):
    bullets = ("- ", "- ☐ ", "- ☑ ")
    finds_addresses = True


def render(source: str) -> str:
    return blocks.render(source, _WHATSAPP)


_WHATSAPP = _WhatsApp()
