"""Exact replacements in a text: each fits one place or nothing is changed, and what does not fit is explained."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from hermes.core.errors import ToolError

SHOWN_LINES = 12
SHOWN_CHARACTERS = 200
COMPARED_LINES = 20_000
CANDIDATES = 20
LIKE_ENOUGH = 0.5


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


def apply(text: str, edits: Sequence[Edit], *, where: str) -> str:
    """The text after all edits, one after the other. ToolError when one of them does not fit: then none counts."""
    ends = ends_of(text)  # of the text as it was: an edit may take the last one away
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number}" if len(edits) > 1 else "The edit"
        text = _apply_one(text, edit, ends, name, where)
    return text


def _apply_one(text: str, edit: Edit, ends: Ends, name: str, where: str) -> str:
    if not edit.old:
        raise ToolError(f"{name} has no 'old' text. To make or replace a whole file, use write_file.")
    if edit.old == edit.new:
        raise ToolError(f"{name} changes nothing: 'old' and 'new' are the same.")
    fitting = with_ends(text, edit, ends)
    places = positions(text, fitting.old)
    if not places:
        raise ToolError(
            f"{name} does not fit: its 'old' text is not in {where}. Nothing was written.{hint(text, edit)}"
        )
    if len(places) > 1 and not edit.all:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:SHOWN_LINES])
        more = ", …" if len(places) > SHOWN_LINES else ""
        raise ToolError(
            f"{name} is not clear: its 'old' text is in {where} {len(places)} times (lines {lines}{more}). "
            "Nothing was written. Add lines around it, or set 'all' to change every one."
        )
    return text.replace(fitting.old, fitting.new)


def positions(text: str, part: str) -> list[int]:
    """Where a text begins in another, places that overlap included: of those, too, one would have to be chosen."""
    found = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found


def ends_of(text: str) -> Ends:
    crlf = text.count("\r\n")
    if crlf == 0:
        return Ends.UNIX
    return Ends.WINDOWS if crlf == text.count("\n") else Ends.BOTH


def with_ends(text: str, edit: Edit, ends: Ends) -> Edit:
    """The edit with the line ends that the file has: a model reads lines and does not see how they end."""
    if ends is Ends.UNIX or (ends is Ends.BOTH and edit.old in text):
        return edit
    return Edit(_windows(edit.old), _windows(edit.new), edit.all)


def _windows(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


# What to say when nothing fits


def hint(text: str, edit: Edit) -> str:
    """The lines that come nearest, with their numbers; '' when nothing is like it."""
    lines = text.splitlines()[:COMPARED_LINES]
    wanted = edit.old.strip("\r\n").splitlines() or [edit.old]
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
    """Where a block like the wanted one begins. Its most telling line is looked for first: that is cheap."""
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
        likeness = _likeness(lines[start : start + len(wanted)], wanted)
        if likeness > best:
            best, best_start = likeness, start
    return best_start


def _likeness(block: Sequence[str], wanted: Sequence[str]) -> float:
    one, other = ("\n".join(part[:SHOWN_CHARACTERS] for part in lines[:SHOWN_LINES]) for lines in (block, wanted))
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _numbered(lines: Sequence[str], start: int, count: int) -> str:
    shown = lines[start : start + min(count, SHOWN_LINES)]
    return "\n".join(f"{number}\t{line[:SHOWN_CHARACTERS]}" for number, line in enumerate(shown, start + 1))
