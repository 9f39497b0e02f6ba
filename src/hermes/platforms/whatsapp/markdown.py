"""Render neutral Markdown as WhatsApp's."""

from __future__ import annotations

from hermes.core.markdown import blocks
from hermes.core.markdown.basic import FewMarks


class _WhatsApp(FewMarks):
    bullets = ("- ", "- ☐ ", "- ☑ ")
    finds_addresses = True


def render(source: str) -> str:
    return blocks.render(source, _WHATSAPP)


_WHATSAPP = _WhatsApp()
