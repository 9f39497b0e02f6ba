"""Lay out tables for a terminal; the last column is cut at the window's edge."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence

GAP = "  "
PIPED_COLUMNS = 160  # nobody sees an edge there
MIN_TEXT_COLUMNS = 8  # a last column with less room than this says nothing
ELLIPSIS = "…"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None = None) -> list[str]:
    """Lay out rows under a header. The last column is text of any length: cut to fit, left out where it cannot."""
    columns = columns or (shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPED_COLUMNS)
    lines = [header, *rows]
    widths = [max(display_width(line[place]) for line in lines) for place in range(len(header) - 1)]
    room = columns - sum(widths) - len(GAP) * len(widths)
    return [_line(line, widths, room) for line in lines]


def display_width(text: str) -> int:
    """Measure the columns of a text: wide characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def fit(text: str, columns: int) -> str:
    """Cut a text to so many columns, ending in ``…`` where something was cut."""
    if display_width(text) <= columns:
        return text
    kept, used = "", 1  # the ellipsis
    for character in text:
        used += _width(character)
        if used > columns:
            break
        kept += character
    return kept.rstrip() + ELLIPSIS


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _line(cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    padded = [cell + " " * (width - display_width(cell)) for cell, width in zip(cells, widths, strict=False)]
    last = [fit(cells[-1], room)] if room >= MIN_TEXT_COLUMNS else []
    return GAP.join([*padded, *last]).rstrip()
