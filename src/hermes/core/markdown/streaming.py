"""Close half-open Markdown of a text that is still streaming."""

from __future__ import annotations

import re

from hermes.core.messages import TextUnit
from hermes.core.text import length, open_fence, trim

CURSOR = " ▌"
_ROOM_FOR_CLOSING = 24
_LOOKED_AT = 4000  # marks that were opened longer ago than this are no marks
_TICKS = re.compile(r"`+")
_HALF_LINK = re.compile(r"!?\[[^\[\]\n]*(?:\]\([^()\s]*)?$")
_OPENS_ITALIC = re.compile(r"(?<![\w*\\])\*(?=[^\s*])")
_CLOSES_ITALIC = re.compile(r"(?<=[^\s*\\])\*(?!\*)")


def preview(text: str, limit: int, unit: TextUnit) -> str:
    """Return what can be shown of it so far, at most ``limit`` long; '' while there is nothing."""
    if not text.strip():
        return ""
    cut = trim(text.rstrip(), limit - length(CURSOR, unit) - _ROOM_FOR_CLOSING, unit)
    marker = open_fence(cut)
    return _in_code(cut, marker) if marker else _in_words(cut)


def _in_code(text: str, marker: str) -> str:
    head, _, last = text.rpartition("\n")
    if last.strip().startswith(marker):  # the block has only been opened
        return _in_words(head.rstrip()) if head.strip() else ""
    if last.strip() and not last.strip().strip(marker[0]):  # the closing fence has only been begun
        text = head
    return f"{text}{CURSOR}\n{marker}"


def _in_words(text: str) -> str:
    """Close what the last paragraph has open, and leave out what cannot be closed yet."""
    text = _without_begun_table(text)
    if not text:
        return ""
    last = text.rpartition("\n")[2].strip()
    if last.startswith(("```", "~~~", "|")):  # a cursor would belong to the code block or the table
        return f"{text}\n{CURSOR}"
    start = max(text.rfind("\n\n") + 1, len(text) - _LOOKED_AT, 0)
    head, tail = text[:start], text[start:]
    return f"{head}{_closed(tail)}{CURSOR}" if tail.strip() else f"{text}{CURSOR}"


def _without_begun_table(text: str) -> str:
    lines = text.split("\n")
    start = len(lines)
    while start and lines[start - 1].lstrip().startswith("|"):
        start -= 1
    rows = lines[start:]
    if rows and not rows[-1].rstrip().endswith("|"):
        rows.pop()
    if len(rows) == 1 or (len(rows) > 1 and not set(rows[1]) <= set("|:- \t")):
        rows = []  # the line below the heads makes it a table
    return "\n".join([*lines[:start], *rows]).rstrip()


def _closed(text: str) -> str:
    bare, tick = _without_code(text)
    if tick:
        return f"{text}{tick}" if not text.endswith("`") else text.rstrip("`").rstrip()
    link = _HALF_LINK.search(bare)
    if link is not None:  # as long as the text itself, so that places agree
        text, bare = text[: link.start()].rstrip(), bare[: link.start()]
    return _closed_styles(text, bare)


def _without_code(text: str) -> tuple[str, str]:
    """Return the text with its code spans blanked out, and the ticks of one that is still open."""
    kept: list[str] = []
    at = 0
    runs = list(_TICKS.finditer(text))
    number = 0
    while number < len(runs):
        opening = runs[number]
        closing = next((n for n in range(number + 1, len(runs)) if len(runs[n][0]) == len(opening[0])), None)
        if closing is None:
            return "".join(kept) + text[at:], opening[0]
        kept.append(text[at : opening.start()])
        kept.append("x" * (runs[closing].end() - opening.start()))
        at = runs[closing].end()
        number = closing + 1
    return "".join(kept) + text[at:], ""


def _closed_styles(text: str, bare: str) -> str:
    for mark in ("**", "~~"):
        if bare.count(mark) % 2 == 0:
            continue
        if text.endswith(mark):  # opened, and nothing in it yet
            text = text.removesuffix(mark).rstrip()
        else:
            half = mark[0] if text.endswith(mark[0]) else ""  # the first half of its closing mark
            text = f"{text.removesuffix(half).rstrip()}{mark}" if half else f"{text}{mark}"
        bare = bare.replace(mark, "xx")
    bare = bare.replace("**", "xx")
    opened = [found.start() for found in _OPENS_ITALIC.finditer(bare)]
    closed = [found.start() for found in _CLOSES_ITALIC.finditer(bare)]
    if opened and (not closed or closed[-1] <= opened[-1]) and not text.endswith("*"):
        text += "*"
    return text
