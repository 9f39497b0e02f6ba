"""Neutral Markdown as Slack's mrkdwn: the few marks, links behind words, and three letters to be escaped."""

from __future__ import annotations

import re

from hermes.core.markdown import basic
from hermes.core.markdown.basic import Keep, Style

_ADDRESS = re.compile(r"(?:https?|mailto|tel|slack):", re.IGNORECASE)


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def render(source: str) -> str:
    return basic.render(source, _MRKDWN)


def _link(words: str, address: str, keep: Keep) -> str:
    if not _ADDRESS.match(address):
        return f"{words} ({address})" if words else address
    shown = escape(words).replace("|", "¦")
    return keep(f"<{_target(address)}|{shown}>" if shown else f"<{_target(address)}>")


def _target(address: str) -> str:
    return escape(address).replace("|", "%7C")


_MRKDWN = Style(
    bare=re.compile(r"<(https?://[^\s<>]+)>"),
    address=lambda address: f"<{_target(address)}>",
    link=_link,
    bullets=("• ", "☐ ", "☑ "),
    escape=escape,
)
