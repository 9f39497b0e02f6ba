"""Neutral Markdown as WhatsApp writes it: the few marks, lists of its own, and no link behind words."""

from __future__ import annotations

import re

from hermes.core.markdown import basic
from hermes.core.markdown.basic import Keep, Style


def render(source: str) -> str:
    return basic.render(source, _WHATSAPP)


def _link(words: str, address: str, keep: Keep) -> str:
    shown = keep(address)
    return shown if not words or words == address else f"{words} ({shown})"


_WHATSAPP = Style(
    bare=re.compile(r"<?((?:https?|mailto|tel):[^\s<>]+)>?", re.IGNORECASE),
    address=str,
    link=_link,
    bullets=("- ", "- ☐ ", "- ☑ "),
)
