"""Blocks of Markdown that most platforms cannot show as they are: where they end, and a table as aligned text.

The marks inside a line are each platform's own; these are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
"""Opens a block of code: its marker, and the language that it names."""

RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
RULE_SHOWN = "———"

# Of a line without the blanks around it: with them, a long run of blanks could be read in too many ways.
_TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")


def end_of_code(lines: Sequence[str], at: int, marker: str) -> int:
    """The line that closes the code opened at this one; behind the last line where nothing does."""
    end = at + 1
    while end < len(lines):
        bare = lines[end].strip()
        if len(bare) >= len(marker) and not bare.strip(marker[0]):
            break
        end += 1
    return end


def is_table(lines: Sequence[str], at: int) -> bool:
    """Whether a table begins here: the line below its heads makes it one."""
    if "|" not in lines[at] or at + 1 == len(lines) or "|" not in lines[at + 1]:
        return False
    return _TABLE_RULE.match(lines[at + 1].strip(" \t")) is not None


def table_rows(lines: Sequence[str], at: int, plain: Callable[[str], str]) -> tuple[list[list[str]], int]:
    """The cells of the table that begins here, heads first, without their marks; and the line behind it."""
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return [_cells(line, plain) for number, line in enumerate(lines[at:end]) if number != 1], end


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table as text in which every letter is as wide as the next."""
    columns = max(len(row) for row in rows)
    widths = [max(_width(row[column]) if column < len(row) else 0 for row in rows) for column in range(columns)]
    heads, *others = (
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )
    return [heads, "  ".join("─" * width for width in widths), *others]


def _cells(line: str, plain: Callable[[str], str]) -> list[str]:
    return [plain(cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _width(text: str) -> int:
    """In columns: Chinese and its like take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
