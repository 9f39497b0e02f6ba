"""Measure, split, trim and clean text as platforms count it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from hermes.core.dataclasses import dataclass
from hermes.core.messages import TextUnit

SMALLEST_LIMIT = 4  # the longest character takes four bytes
_ELLIPSIS = "…"
_ROOM_FOR_FENCES = 120

_GAP, _AFTER_NAME = re.compile(r"\s*"), re.compile(r"[\s,:]*")
_FENCE = re.compile(r"^ {0,3}(`{3,10}|~{3,10})[ \t]*([^\s`]{0,30})[^`\n]*$")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]]*(?=\s)|[。！？]")
# What a person cannot see but a machine reads: controls, zero width, direction changes, fillers, tags.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)


def length(text: str, unit: TextUnit) -> int:
    """Return the length of a text in ``unit``."""
    if unit is TextUnit.CHARACTERS or text.isascii():
        return len(text)
    if unit is TextUnit.UTF16:
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def storable(text: str) -> str:
    """Make text that every database and JSON encoder takes: no NUL, no half of a surrogate pair."""
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Halves that belong together become one character, lonely ones the replacement character.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def visible(text: str) -> str:
    """Spell out what could hide in a text that a person is asked to judge: ``‹U+202E›``."""
    return _HIDDEN.sub(lambda match: f"‹U+{ord(match[0]):04X}›", text)


def one_line(text: str, limit: int) -> str:
    """Return a text for a list or a log: one line, nothing hidden, at most ``limit`` characters."""
    # Only the part that can be shown is looked at, so that a text of megabytes costs no more than a short one.
    return trim(visible(" ".join(text[: limit * 4 + 100].split())), limit, TextUnit.CHARACTERS)


def trim(text: str, limit: int, unit: TextUnit) -> str:
    """Cut to ``limit``, ending in ``…`` where something was cut."""
    if len(text) <= limit and length(text, unit) <= limit:
        return text
    room = limit - length(_ELLIPSIS, unit)
    if room < 0:
        return ""
    return text[: _whole(text, 0, _reach(text, 0, room, unit, least=0))].rstrip() + _ELLIPSIS


def split(text: str, limit: int, unit: TextUnit) -> list[str]:
    """Cut a long text into parts of at most ``limit``, at the kindest place that fits.

    Between paragraphs, else lines, else sentences, else words; only a single longer word is cut inside.
    A code block that is cut is closed in one part and opened again in the next, with its language; the
    fences are counted. Nothing but white space at the cuts is lost. Blank text has no parts.
    """
    if limit < SMALLEST_LIMIT:
        raise ValueError(f"a text cannot be split into parts of {limit}")
    if not text.strip():
        return []
    if len(text) <= limit and length(text, unit) <= limit:
        return [text]
    return [part for part in _parts(text, limit, unit) if part.strip()]


def without_name(text: str, name: re.Pattern[str]) -> str:
    """Strip a mention (``<…>``) from both ends of a text. Linear: strangers write these texts."""
    start, end = 0, len(text)
    while found := name.match(text, _end_of(_GAP, text, start)):
        start = _end_of(_AFTER_NAME, text, found.end())
    last = _before_space(text, start, end)
    while (begin := text.rfind("<", start, last)) >= 0 and name.fullmatch(text, begin, last):
        end = last = _before_space(text, start, begin)
    return text[start:end]


def open_fence(text: str) -> str:
    """Return the mark of the code block that is still open at the end of a text, '' where none is."""
    fence = _open_at_end(text, None)
    return fence.marker if fence is not None else ""


@dataclass(frozen=True, slots=True)
class _Fence:
    marker: str
    language: str = ""

    @property
    def opening(self) -> str:
        return f"{self.marker}{self.language}\n"

    @property
    def closing(self) -> str:
        return f"\n{self.marker}"

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.marker) and not bare.strip(self.marker[0])


def _parts(text: str, limit: int, unit: TextUnit) -> Iterator[str]:
    at = 0
    fence: _Fence | None = None
    while at < len(text):
        opening = fence.opening if fence else ""
        room = limit - length(opening, unit)
        end, after = _cut(text, at, room, fence, unit)
        piece = text[at:end]
        # Fences beside a few characters would leave no room for the text itself.
        fence = _open_at_end(piece, fence) if limit >= _ROOM_FOR_FENCES else None
        yield f"{opening}{piece}{fence.closing if fence else ''}"
        at, fence = _swallow_closing(text, after, fence) if fence else (after, None)


def _cut(text: str, at: int, room: int, fence: _Fence | None, unit: TextUnit) -> tuple[int, int]:
    """Return where this part ends and where the next begins."""
    end = _reach(text, at, room, unit)
    # Reserve room to close a code block that is open where the part ends.
    piece = text[at:end]
    markers = [fence.marker] if fence else []
    if _has_fence(piece):
        markers += [match[1] for line in piece.split("\n") if (match := _FENCE.match(line))]
    reserve = max((length(marker, unit) + 1 for marker in markers), default=0)
    if end == len(text) and (not reserve or _open_at_end(text[at:end], fence) is None):
        return end, end
    if reserve and room > reserve:
        end = _reach(text, at, room - reserve, unit)
    end, after = _kind_cut(text, at, end, in_code=_open_at_end(text[at:end], fence) is not None)
    # Do not leave the opening of a code block at the end of a part with nothing in it.
    start = text.rfind("\n", at, end) + 1
    if start <= at or not _FENCE.match(text[start:end]):
        return end, after
    if _open_at_end(text[at:start], fence) is not None or not text[at:start].strip():
        return end, after
    return start - 1, start


def _has_fence(piece: str) -> bool:
    return "```" in piece or "~~~" in piece


def _kind_cut(text: str, at: int, end: int, *, in_code: bool) -> tuple[int, int]:
    least = at + (end - at) // 3  # a kinder place is not worth a part that is nearly empty
    if not in_code:
        blank = text.rfind("\n\n", least, end)
        if blank > at:
            return blank, _past(text, blank, "\n")
    line = text.rfind("\n", at if in_code else least, end + 1)
    if line > at:
        return line, line + 1
    if not in_code:
        sentences = [match.end() for match in _SENTENCE_END.finditer(text, least, end + 1) if match.end() <= end]
        if sentences:
            return sentences[-1], _past(text, sentences[-1], " \n")
        space = text.rfind(" ", at, end + 1)
        if space > at and text[at:space].strip():
            return space, _past(text, space, " \n")
    end = _whole(text, at, end)
    return end, end


def _swallow_closing(text: str, after: int, fence: _Fence) -> tuple[int, _Fence | None]:
    """Take a closing fence right behind a part into that part."""
    line_end = text.find("\n", after)
    line_end = len(text) if line_end < 0 else line_end
    if fence.is_closed_by(text[after:line_end]) and text[after - 1 : after] == "\n":
        return min(line_end + 1, len(text)), None
    return after, fence


def _open_at_end(piece: str, fence: _Fence | None) -> _Fence | None:
    """Return the code block that is still open behind ``piece``, given the one open before it."""
    if not _has_fence(piece):
        return fence
    for line in piece.split("\n"):
        if fence is None:
            if match := _FENCE.match(line):
                fence = _Fence(match[1], match[2])
        elif fence.is_closed_by(line):
            fence = None
    return fence


def _reach(text: str, at: int, room: int, unit: TextUnit, *, least: int = 1) -> int:
    """The furthest index such that ``text[at:index]`` takes at most ``room`` units; ``least`` keeps a split going."""
    window = text[at : at + room]
    if unit is TextUnit.CHARACTERS or window.isascii():
        return at + max(len(window), least)
    used = 0
    for count, character in enumerate(window):
        used += _weight(character, unit)
        if used > room:
            return at + max(count, least)
    return at + len(window)


def _weight(character: str, unit: TextUnit) -> int:
    code = ord(character)
    if unit is TextUnit.UTF16:
        return 1 if code < 0x10000 else 2
    return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4


def _end_of(run: re.Pattern[str], text: str, at: int) -> int:
    found = run.match(text, at)
    return found.end() if found else at


def _before_space(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1].isspace():
        end -= 1
    return end


def _past(text: str, at: int, characters: str) -> int:
    while at < len(text) and text[at] in characters:
        at += 1
    return at


def _whole(text: str, start: int, end: int) -> int:
    """Move a cut back so that it does not fall inside what a reader sees as one character."""
    cut = end
    while start < cut < len(text) and end - cut < 40:
        if not _belong_together(text, cut):
            return cut
        cut -= 1
    return end


def _belong_together(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if before < "\u0300" and after < "\u0300":
        return before == "\r" and after == "\n"
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if _is_flag_letter(before) and _is_flag_letter(after):
        run = at
        while run > 0 and at - run < 40 and _is_flag_letter(text[run - 1]):
            run -= 1
        return (at - run) % 2 == 1
    return (
        before == "\u200d"
        or after == "\u200d"
        or "\ufe00" <= after <= "\ufe0f"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or "\U000e0020" <= after <= "\U000e007f"
        or unicodedata.category(after) in {"Mn", "Me", "Mc"}
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
