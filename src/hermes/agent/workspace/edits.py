"""Apply exact replacements to a text, all or none; explain what does not fit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from enum import Enum
from itertools import islice

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

SHOWN_LINES = 12
SHOWN_CHARACTERS = 200
COMPARED_LINES = 20_000
COUNTED = 1000
CANDIDATES = 20
LIKE_ENOUGH = 0.5
MAX_TEXT_CHARS = 5_000_000


@dataclass(frozen=True, slots=True)
class Edit:
    """Put ``new`` in the place of ``old``, which must be there exactly once, or with ``all`` at least once."""

    old: str
    new: str
    all: bool = False


class Ends(Enum):
    """How the lines of a text end."""

    UNIX = "\n"
    WINDOWS = "\r\n"
    BOTH = "both"


def apply(text: str, edits: Sequence[Edit], *, where: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return the text after all edits, one after the other. ToolError when one of them does not fit: then none counts.

    Nor may one make it longer than ``most`` characters: ten that each write a letter ten times would fill the memory.
    """
    ends = ends_of(text)  # of the text as it was: an edit may take the last one away
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number}" if len(edits) > 1 else "The edit"
        text = _apply_one(text, edit, ends, name, where, most)
    return text


def _apply_one(text: str, edit: Edit, ends: Ends, name: str, where: str, most: int) -> str:
    if not edit.old:
        raise ToolError(f"{name} has no 'old' text. To make or replace a whole file, use write_file.")
    if edit.old == edit.new:
        raise ToolError(f"{name} changes nothing: 'old' and 'new' are the same.")
    places = positions(text, edit.old)
    if not places:
        raise ToolError(
            f"{name} does not fit: its 'old' text is not in {where}. Nothing was written.{hint(text, edit)}"
        )
    if len(places) > 1 and not edit.all:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:SHOWN_LINES])
        more = ", …" if len(places) > SHOWN_LINES else ""
        count = f"{len(places)} times" if len(places) < COUNTED else f"{COUNTED} times or more"
        raise ToolError(
            f"{name} is not clear: its 'old' text is in {where} {count} (lines {lines}{more}). "
            "Nothing was written. Add lines around it, or set 'all' to change every one."
        )

    size = len(text)

    def new(found: re.Match[str]) -> str:
        nonlocal size
        is_windows = ends is Ends.WINDOWS or (ends is Ends.BOTH and "\r\n" in found[0])
        written = _unix(edit.new).replace("\n", "\r\n") if is_windows else edit.new
        size += len(written) - len(found[0])
        if size > most:
            raise ToolError(f"{name} would make {where} too large (over {most:,} characters). Nothing was written.")
        return written

    return re.sub(_pattern(edit.old), new, text)


def positions(text: str, part: str) -> list[int]:
    """Return where a text begins in another, places that overlap included: of those, too, one would have to be chosen.

    Lines may end either way: whoever reads lines does not see how. Not more than COUNTED places.
    """
    found = re.finditer(f"(?={_pattern(part)})", text)
    return [match.start() for match in islice(found, COUNTED)]


def _pattern(part: str) -> str:
    return re.escape(_unix(part)).replace("\\\n", r"(?:\r\n|(?<!\r)\n)")


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def ends_of(text: str) -> Ends:
    crlf = text.count("\r\n")
    if crlf == 0:
        return Ends.UNIX
    return Ends.WINDOWS if crlf == text.count("\n") else Ends.BOTH


# What to say when nothing fits


def hint(text: str, edit: Edit) -> str:
    """Return the lines that come nearest, with their numbers; '' when nothing is like it."""
    lines = _unix(text).split("\n")[:COMPARED_LINES]  # as read_file counts them
    wanted = _unix(edit.old).strip("\n").split("\n")
    start = _same_but_for_space(lines, wanted)
    if start is not None:
        return f" It differs only in white space; the file has:\n{_numbered(lines, start, len(wanted))}"
    start = _nearest(lines, wanted)
    return "" if start is None else f" The nearest lines are:\n{_numbered(lines, start, len(wanted))}"


def _same_but_for_space(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    squeezed = ["".join(line.split()) for line in lines]
    looked_for = ["".join(line.split()) for line in wanted]
    if not any(looked_for):
        return None
    size = len(looked_for)
    starts = range(len(squeezed) - size + 1)
    return next((start for start in starts if squeezed[start : start + size] == looked_for), None)


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Return where a block like the wanted one begins. Its most telling line is looked for first: that is cheap."""
    telling = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    matcher = difflib.SequenceMatcher(b=wanted[telling].strip()[:SHOWN_CHARACTERS], autojunk=False)
    rough: list[tuple[float, int]] = []
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:SHOWN_CHARACTERS])
        likeness = matcher.real_quick_ratio()
        if likeness >= LIKE_ENOUGH:
            rough.append((matcher.quick_ratio(), index))
    best, best_start = LIKE_ENOUGH, None
    for _, index in sorted(rough, reverse=True)[:CANDIDATES]:
        start = max(0, index - telling)
        block = lines[start : start + len(wanted)]
        one, other = ("\n".join(part[:SHOWN_CHARACTERS] for part in lines[:SHOWN_LINES]) for lines in (block, wanted))
        likeness = difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
        if likeness > best:
            best, best_start = likeness, start
    return best_start


def _numbered(lines: Sequence[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, SHOWN_LINES)]
    return "\n".join(f"{number}\t{line[:SHOWN_CHARACTERS]}" for number, line in enumerate(shown, start + 1))
