"""Styled lines: pieces of text with the names of their styles, measured and wrapped by columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

UNLIMITED = 1_000_000
"""The width of a pipe."""

TAB = 4
_NOT_FIRST = frozenset("，。、；：？！）」』】》〉”’…,.;:?!)]}%")
"""Signs that do not begin a row."""


class StyledText(NamedTuple):
    """``style`` holds names of the theme, parted by blanks; ``link`` is the address behind the text."""

    text: str
    style: str = ""
    link: str = ""


Line = tuple[StyledText, ...]
EMPTY: Line = ()

_WIDE_RANGES = (
    "\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    "\U00020000-\U0003fffd"
)
_WIDE = re.compile(f"[{_WIDE_RANGES}]")
# A run of blanks, a wide character (a row may end on either side of each), or a word.
_ATOM = re.compile(f"[ \u3000]+|[{_WIDE_RANGES}]|[^ \u3000{_WIDE_RANGES}]+")
_BLANKS = frozenset(" \u3000")


def width_of(text: str) -> int:
    """Count the columns of a cleaned text: two for Chinese and most emoji, none for joiners."""
    return len(text) if text.isascii() else _wide_width(text)


@lru_cache(maxsize=4096)
def _wide_width(text: str) -> int:
    from wcwidth import wcswidth

    return max(0, int(wcswidth(text)))


def line_width(line: Iterable[StyledText]) -> int:
    return sum(width_of(piece.text) for piece in line)


def text_of(line: Iterable[StyledText]) -> str:
    return "".join(piece.text for piece in line)


def plain(text: str, style: str = "") -> Line:
    return (StyledText(text, style),) if text else EMPTY


def cut(line: Line, width: int) -> Line:
    """Shorten a line to ``width`` columns, ending in … where something was cut."""
    if line_width(line) <= width:
        return line
    kept: list[StyledText] = []
    room = width - 1
    for piece in line:
        head = _fitting(piece.text, room)
        kept.append(piece._replace(text=head))
        room -= width_of(head)
        if len(head) < len(piece.text):
            break
    return (*kept, StyledText("…", kept[-1].style if kept else ""))


def wrap(line: Line, width: int, first: Line = EMPTY, others: Line = EMPTY) -> list[Line]:
    """Break a line between words into rows of at most ``width`` columns; ``first`` and ``others`` begin the rows."""
    if width >= UNLIMITED:
        return [_joined([*first, *line])]
    rows: list[Line] = []
    row: list[StyledText] = []
    head = first
    room = max(2, width - line_width(head))
    used = 0
    for word in _words(line):
        size = sum(width_of(piece.text) for piece in word)
        is_blank = word[0].text[0] in _BLANKS
        if used + size <= room or (is_blank and used == 0 and not rows):
            row += word
            used += size
            continue
        if is_blank:  # the row ends here, and its last blanks are not shown
            rows.append(_joined([*head, *row]))
            head, row, used = others, [], 0
            room = max(2, width - line_width(head))
            continue
        if used:
            rows.append(_joined([*head, *_stripped(row)]))
            head, row, used = others, [], 0
            room = max(2, width - line_width(head))
        for piece in word:  # a word longer than the row is cut inside
            text = piece.text
            while width_of(text) > room - used:
                part = _fitting(text, room - used)
                if not part and not used:
                    part = text[:1]
                row.append(piece._replace(text=part))
                rows.append(_joined([*head, *row]))
                head, row, used, text = others, [], 0, text[len(part) :]
                room = max(2, width - line_width(head))
            if text:
                row.append(piece._replace(text=text))
                used += width_of(text)
    if row or not rows:
        rows.append(_joined([*head, *_stripped(row)]))
    return rows


def _words(line: Line) -> Iterator[list[StyledText]]:
    """The parts between which a row may end. Pieces that touch within a word stay together."""
    word: list[StyledText] = []
    last = ""
    for piece in line:
        for atom in _ATOM.findall(piece.text):
            breaks = last != "" and (atom[0] in _BLANKS) != (last in _BLANKS)
            is_wide = _WIDE.match(atom) is not None or (last != "" and _WIDE.match(last) is not None)
            if (breaks or is_wide) and word and atom[0] not in _NOT_FIRST:
                yield word
                word = []
            word.append(piece._replace(text=atom))
            last = atom[-1]
    if word:
        yield word


def _fitting(text: str, room: int) -> str:
    """The longest beginning of a text that takes at most ``room`` columns."""
    if room <= 0:
        return ""
    if text.isascii():
        return text[:room]
    low, high = 0, min(len(text), room * 4)
    while low < high:
        middle = (low + high + 1) // 2
        if width_of(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _stripped(row: Sequence[StyledText]) -> list[StyledText]:
    kept = list(row)
    while kept and not kept[-1].text.strip(" \u3000") and len(kept) > 1:
        kept.pop()
    return kept


def _joined(pieces: Iterable[StyledText]) -> Line:
    """Neighbours of one style become one piece."""
    joined: list[StyledText] = []
    for piece in pieces:
        if joined and joined[-1].style == piece.style and joined[-1].link == piece.link:
            joined[-1] = piece._replace(text=joined[-1].text + piece.text)
        elif piece.text:
            joined.append(piece)
    return tuple(joined)
