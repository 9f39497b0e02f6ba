"""Neutral Markdown as Telegram's MarkdownV2.

Telegram has no headings, lists or tables, so these become bold lines, bullets and aligned text. Every
pass is linear in the text: a model may write anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.markdown.blocks import FENCE, RULE, RULE_SHOWN, aligned, end_of_code, is_table, table_rows

_RESERVED = {ord(character): f"\\{character}" for character in "_*[]()~`>#+-=|{}.!\\"}
_RESERVED_IN_CODE = {ord(character): f"\\{character}" for character in "`\\"}
_RESERVED_IN_ADDRESS = {ord(character): f"\\{character}" for character in ")\\"}
_STYLES = {1: ("italic",), 2: ("bold",), 3: ("bold", "italic")}  # by the number of * or _
_CROSSED = -2  # an opening mark inside a pair that closed before it
_BETWEEN_ITALICS = "**"  # an empty bold: two marks of italic side by side would be read as one of underline
_MARKS = {"bold": "*", "italic": "_", "strike": "~"}

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?(.*)$")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_NUMBERED = re.compile(r"^([ \t]*)(\d{1,9}[.)])[ \t]+(.*)$")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_AUTOLINK = re.compile(r"<(https?://[^\s<>]+)>")
_ADDRESS = re.compile(r"(?:https?|ftp|tg|mailto|tel):", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_TOKEN = re.compile(r"\\[!-/:-@\[-`{-~]|`+|!?\[|<https?://|\*{1,3}|_{1,3}|~~")


@dataclass(frozen=True, slots=True)
class Rendered:
    """``text`` is MarkdownV2; ``shown`` is what a reader sees of it.

    ``is_formatted`` is False when the source holds no markup at all: it can then be sent as it is.
    """

    text: str
    shown: str
    is_formatted: bool


@dataclass(slots=True)
class _Page:
    """Collects the escaped text and the shown text side by side."""

    escaped: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    is_formatted: bool = False
    is_narrow: bool = False
    _ends_italic: bool = False

    def plain(self, text: str) -> None:
        self.escaped.append(text.translate(_RESERVED))
        self.shown.append(text)
        self._ends_italic = self._ends_italic and not text

    def mark(self, mark: str) -> None:
        if self._ends_italic and mark[:1] == "_":
            self.escaped.append(_BETWEEN_ITALICS)
        self.escaped.append(mark)
        self.is_formatted = True
        self._ends_italic = mark[-1:] == "_" or (self._ends_italic and not mark)

    def code(self, before: str, text: str, after: str) -> None:
        self._ends_italic = False
        self.escaped += (before, text.translate(_RESERVED_IN_CODE), after)
        self.shown.append(text)
        self.is_formatted = True


def render(source: str, *, is_narrow: bool = False) -> Rendered:
    """``is_narrow``: columns of tables are not aligned, so that what is shown is no longer than the source."""
    page = _Page(is_narrow=is_narrow)
    lines = source.split("\n")
    at = 0
    while at < len(lines):
        if at:
            page.plain("\n")
        at = _block(page, lines, at)
    return Rendered("".join(page.escaped), "".join(page.shown), page.is_formatted)


def _block(page: _Page, lines: list[str], at: int) -> int:
    """Write the block that begins at this line; say where the next one does."""
    line = lines[at]
    if fence := FENCE.match(line):
        return _code_block(page, lines, at, fence[1], fence[2])
    if is_table(lines, at):
        return _table(page, lines, at)
    if _starts_block(line):
        _one_line(page, line)
        return at + 1
    end = at + 1
    while line and end < len(lines) and lines[end] and not _interrupts(lines, end):
        end += 1
    _inline(page, "\n".join(lines[at:end]))
    return end


def _starts_block(line: str) -> bool:
    return any(kind.match(line) for kind in (_HEADING, RULE, _QUOTE, _BULLET, _NUMBERED))


def _interrupts(lines: list[str], at: int) -> bool:
    return FENCE.match(lines[at]) is not None or _starts_block(lines[at]) or is_table(lines, at)


def _one_line(page: _Page, line: str) -> None:
    if heading := _HEADING.match(line):
        if heading[1]:
            page.mark("*")
            _inline(page, heading[1], frozenset({"bold"}))
            page.mark("*")
    elif RULE.match(line):
        page.plain(RULE_SHOWN)
    elif quoted := _QUOTE.match(line):
        page.mark(">")
        _inline(page, quoted[1])
    elif bullet := _BULLET.match(line):
        page.is_formatted = True
        box = "" if bullet[2] is None else "☐ " if bullet[2] == " " else "☑ "
        page.plain(f"{bullet[1]}{box or '• '}")
        _inline(page, bullet[3])
    elif numbered := _NUMBERED.match(line):
        page.plain(f"{numbered[1]}{numbered[2]} ")
        _inline(page, numbered[3])


def _code_block(page: _Page, lines: list[str], at: int, marker: str, language: str) -> int:
    end = end_of_code(lines, at, marker)
    name = language.translate(_RESERVED_IN_CODE)
    page.code(f"```{name}\n", "\n".join(lines[at + 1 : end]), "\n```")
    return min(end + 1, len(lines))


def _table(page: _Page, lines: list[str], at: int) -> int:
    rows, end = table_rows(lines, at, _plain_text)
    shown = ["|".join(row) for row in rows] if page.is_narrow else aligned(rows)
    page.code("```\n", "\n".join(shown), "\n```")
    return end


def _plain_text(text: str) -> str:
    page = _Page()
    _inline(page, text)
    return "".join(page.shown)


@dataclass(slots=True)
class _Piece:
    """A stretch of a line: text, code, a link, or a mark that may open or close a style."""

    text: str
    kind: str = "text"
    address: str = ""
    opens: bool = False
    closes: bool = False
    partner: int = -1


def _inline(page: _Page, text: str, active: frozenset[str] = frozenset()) -> None:
    pieces = list(_pieces(text))
    _pair(pieces)
    _write(page, pieces, active)


def _pieces(text: str) -> Iterator[_Piece]:
    last_run = {len(run[0]): run.start() for run in _TICKS.finditer(text)}
    at = start = 0
    while match := _TOKEN.search(text, at):
        piece, end = _piece(text, match, last_run)
        at = end
        if piece is None:
            continue
        if match.start() > start:
            yield _Piece(text[start : match.start()])
        yield piece
        start = end
    if start < len(text):
        yield _Piece(text[start:])


def _piece(text: str, match: re.Match[str], last_run: dict[int, int]) -> tuple[_Piece | None, int]:
    """The piece that begins at this token and where it ends; None where the token is only text."""
    token, start, end = match[0], match.start(), match.end()
    if token[0] == "\\":
        return _Piece(token[1:], "escaped"), end
    if token[0] == "`":
        return _code_span(text, token, start, last_run)
    if token.endswith("[") or token[0] == "<":
        link = (_AUTOLINK if token[0] == "<" else _LINK).match(text, start)
        if link is None:
            return None, end
        address = link[link.lastindex or 1]
        return _Piece(link[1] or address, "link", address=address), link.end()
    return _style_mark(text, token, start, end), end


def _code_span(text: str, ticks: str, start: int, last_run: dict[int, int]) -> tuple[_Piece | None, int]:
    end = start + len(ticks)
    if last_run.get(len(ticks), -1) < end:
        return None, end  # known without searching, so that a thousand lonely ticks cost no more than one
    close = next(run for run in _TICKS.finditer(text, end) if len(run[0]) == len(ticks))
    inside = text[end : close.start()]
    if len(inside) > 2 and inside[0] == inside[-1] == " " and inside.strip():
        inside = inside[1:-1]
    return _Piece(inside, "code"), close.end()


def _style_mark(text: str, token: str, start: int, end: int) -> _Piece | None:
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    opens = not after.isspace()
    closes = not before.isspace()
    if token[0] == "_":  # snake_case is not emphasis
        opens = opens and not before.isalnum()
        closes = closes and not after.isalnum()
    if not opens and not closes:
        return None
    return _Piece(token, "mark", opens=opens, closes=closes)


def _pair(pieces: list[_Piece]) -> None:
    """Find for each closing mark the nearest equal opening one; marks that find none stay text."""
    waiting: dict[str, list[int]] = {}
    order: list[int] = []
    for number, piece in enumerate(pieces):
        if piece.kind != "mark":
            continue
        openers = waiting.setdefault(piece.text, [])
        while openers and pieces[openers[-1]].partner == _CROSSED:
            openers.pop()
        if piece.closes and openers and openers[-1] < number - 1:
            opener = openers.pop()
            piece.partner, pieces[opener].partner = opener, number
            while order[-1] != opener:
                pieces[order.pop()].partner = _CROSSED
            order.pop()
        elif piece.opens:
            openers.append(number)
            order.append(number)


def _write(page: _Page, pieces: list[_Piece], active: frozenset[str]) -> None:
    opened: dict[int, tuple[str, ...]] = {}
    styles = set(active)
    for number, piece in enumerate(pieces):
        if piece.kind == "code":
            page.code("`", piece.text, "`")
        elif piece.kind == "link":
            _write_link(page, piece, frozenset(styles))
        elif piece.kind == "mark" and piece.partner > number:
            wanted = ("strike",) if piece.text[0] == "~" else _STYLES[len(piece.text)]
            opened[number] = tuple(style for style in wanted if style not in styles)
            styles.update(opened[number])
            page.mark("".join(_MARKS[style] for style in opened[number]))
        elif piece.kind == "mark" and piece.partner >= 0:
            closing = opened[piece.partner]
            styles.difference_update(closing)
            page.mark("".join(_MARKS[style] for style in reversed(closing)))
        else:
            page.is_formatted = page.is_formatted or piece.kind == "escaped"
            page.plain(piece.text)


def _write_link(page: _Page, link: _Piece, active: frozenset[str]) -> None:
    pieces = list(_pieces(link.text))
    for piece in pieces:
        if piece.kind == "link":
            piece.kind = "text"
    _pair(pieces)
    if not _ADDRESS.match(link.address):  # Telegram would show the words and drop where they lead
        _write(page, [*pieces, _Piece(f" ({link.address})")], active)
        return
    page.mark("[")
    _write(page, pieces, active)
    page.mark(f"]({link.address.translate(_RESERVED_IN_ADDRESS)})")
