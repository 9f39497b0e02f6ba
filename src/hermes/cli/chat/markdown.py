"""Render Markdown as styled lines, as it streams: a finished block is rendered once, the last one again and again.

Pure: text and width in, lines out. A whole text takes the same way as a stream, so both look the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.cli.chat.highlight import Highlighter
from hermes.cli.chat.lines import EMPTY, TAB, UNLIMITED, Line, StyledText, line_width, plain, width_of, wrap
from hermes.core.markdown.blocks import (
    FENCE,
    MARK_STYLES,
    Block,
    Span,
    Style,
    is_table,
    parse,
    spans_of,
)
from hermes.core.markdown.streaming import CURSOR, preview
from hermes.core.messages import TextUnit
from hermes.core.printable import printable

MAX_DEPTH = 6  # of quotes in quotes
MAX_RULE = 100
LIVE_TABLE_ROWS = 30  # of a table that grows
MIN_COLUMN = 4
MAX_FENCE_INDENT = 12  # code in a list stands below the words of its item
CODE_INDENT = "  "

_SAFE = re.compile(r"(?:https?://|mailto:)[!-~\u00a1-\uffff]+", re.IGNORECASE)
_LOOKS_LIKE_ADDRESS = re.compile(r"\s*(?:\w+://|www\.|\S+\.(?:com|org|net|io|de|cn|dev|ai)\b)", re.IGNORECASE)
_ONLY_MARKS = re.compile(r"\s*(?:#{1,6}|>[>\s]*|[-*+_=]{1,3}|\d{1,3}[.)]?|`{1,}[^`]*|~{3,}.*)?\s*$")
_LEADING = re.compile(r"[ \t]*")
_NAMES = {"bold": "strong", "italic": "emphasis", "strike": "struck"}


class _LineStyle(Style):
    finds_addresses = True

    def cell(self, text: str) -> str:
        return text  # with its marks: a cell is shown with styles


_STYLE = _LineStyle()


def render(source: str, width: int = UNLIMITED, *, has_links: bool = False) -> list[Line]:
    """Render a whole text. Rows are at most ``width`` columns wide, but for lines of code."""
    stream = MarkdownStream(width, has_links=has_links)
    stream.feed(source)
    return stream.end()


class MarkdownStream:
    """``feed`` pieces of a text, ``take`` the lines that are finished, show ``live`` below them, ``end`` it."""

    def __init__(self, width: int = UNLIMITED, *, has_links: bool = False) -> None:
        """``has_links``: the terminal shows hyperlinks; otherwise an address stands behind its words."""
        self.width = width
        self._has_links = has_links
        self._tail = ""  # the last line, while its end has not come
        self._table: list[str] = []  # lines that are a table, or may become one
        self._fence = ""
        self._indent = 0
        self._code: Highlighter | None = None
        self._new_code: list[str] = []
        self._finished: list[Line] = []
        self._has_begun = False
        self._gap = False  # a blank line, which is shown only before another line

    def feed(self, text: str) -> None:
        whole = self._tail + text
        held = "\r" if whole.endswith("\r") else ""  # its line feed may come with the next piece
        *lines, self._tail = whole.removesuffix("\r").split("\n")
        self._tail += held
        for line in lines:
            self._take_line(printable(line.removesuffix("\r")))

    def take(self) -> list[Line]:
        """Return the lines finished since the last call."""
        self._colour()
        finished, self._finished = self._finished, []
        return finished

    def end(self) -> list[Line]:
        """Return all that is left."""
        if self._tail:
            tail, self._tail = self._tail, ""
            self._take_line(printable(tail.removesuffix("\r")))
        self._end_table()
        finished = self.take()
        self._fence, self._code, self._gap = "", None, False
        return finished

    def live(self) -> list[Line]:
        """Return the rows of the block that is not finished, at the width of now."""
        tail = printable(self._tail.removesuffix("\r"))
        if self._code is not None:
            if not tail.strip().strip(self._fence[0]):  # a closing fence, or the beginning of one
                return []
            (line,) = self._code.peek([*self._new_code, self._bare_code(tail)])[-1:]
            return _hard_wrapped((StyledText(self._margin), *line), self.width)
        rows: list[Line] = []
        if len(self._table) > 1:
            rows = self._table_lines([*self._table[:2], *self._table[2:][-LIVE_TABLE_ROWS:]])
        if tail and "|" not in tail and not _ONLY_MARKS.match(tail):
            shown = preview(tail, len(tail) + 100, TextUnit.CHARACTERS).removesuffix(CURSOR)
            lead = _LEADING.match(tail)
            rows += self._line((lead[0] if lead else "") + shown.lstrip(" \t"))
        return [EMPTY, *rows] if self._gap and self._has_begun and rows else rows

    # Blocks

    def _take_line(self, line: str) -> None:
        if self._code is not None:
            if _closes(line, self._fence):
                self._colour()
                self._code, self._fence = None, ""
            else:
                self._new_code.append(self._bare_code(line))
            return
        if self._table:
            if len(self._table) == 1 and not is_table([*self._table, line], 0):
                self._end_table()
            elif "|" in line:
                self._table.append(line)
                return
            else:
                self._end_table()
        indent = len(line) - len(line.lstrip(" "))
        if indent <= MAX_FENCE_INDENT and (fence := FENCE.match(line[indent:])):
            self._fence, self._code, self._indent = fence[1], Highlighter(fence[2]), indent
            self._show([])
            return
        if "|" in line and not line.lstrip().startswith(("`", "~")):
            self._table = [line]
            return
        self._show(self._line(line) if line.strip() else None)

    def _show(self, lines: list[Line] | None) -> None:
        """Add finished lines; None is a blank line. Of blank lines that follow each other one is shown."""
        if lines is None:
            self._gap = True
            return
        if self._gap and self._has_begun:
            self._finished.append(EMPTY)
        self._gap, self._has_begun = False, True
        self._finished += lines

    def _colour(self) -> None:
        """Colour the code that came since the last call, all of it at once."""
        if self._code is None or not self._new_code:
            return
        lines, self._new_code = self._new_code, []
        self._show([(StyledText(self._margin), *line) if line else EMPTY for line in self._code.add(lines)])

    def _bare_code(self, line: str) -> str:
        """A line of code without the indentation of its fence."""
        text = line.expandtabs(TAB)
        return text[min(self._indent, len(text) - len(text.lstrip(" "))) :]

    @property
    def _margin(self) -> str:
        return " " * self._indent + CODE_INDENT

    def _end_table(self) -> None:
        lines, self._table = self._table, []
        if len(lines) > 1:
            self._show(self._table_lines(lines))
        elif lines:
            self._show(self._line(lines[0]))

    # One line of the source

    def _line(self, line: str, depth: int = 0) -> list[Line]:
        block = parse(line, _STYLE)[0]
        match block.kind:
            case "heading":
                style = "heading" if block.level < 3 else "subheading"
                return wrap(self._inline(block.spans, style), self.width)
            case "rule":
                return [plain("─" * min(self.width, MAX_RULE), "rule")]
            case "quote":
                return self._quote(block, depth)
            case "item":
                indent = block.indent.expandtabs(TAB)[: max(0, min(self.width // 2, 40))]
                mark = block.head.strip() + " " if block.number else _STYLE.bullets[block.level]
                first = (StyledText(indent), StyledText(mark, "bullet"))
                others = (StyledText(" " * (len(indent) + width_of(mark))),)
                return wrap(self._inline(block.spans), self.width, first, others)
        text = line.expandtabs(TAB)
        indent = text[: len(text) - len(text.lstrip(" "))][: max(0, min(self.width // 2, 40))]
        lead = plain(indent)
        return wrap(self._inline(spans_of(text.strip(" "), _STYLE)), self.width, lead, lead)

    def _quote(self, block: Block, depth: int) -> list[Line]:
        bar = (StyledText("│ ", "quote"),)
        if depth >= MAX_DEPTH or self.width < 10:
            return wrap(plain(block.text, "quote"), self.width, bar, bar)
        before = self.width
        if before < UNLIMITED:
            self.width = before - 2
        inner = self._line(block.text, depth + 1) if block.text.strip() else [EMPTY]
        self.width = before
        return [(*bar, *(piece._replace(style=f"quote {piece.style}".strip()) for piece in row)) for row in inner]

    # Tables

    def _table_lines(self, lines: Sequence[str]) -> list[Line]:
        block = parse("\n".join(lines), _STYLE)[0]
        rows = [[self._inline(spans_of(cell, _STYLE)) for cell in row] for row in block.rows]
        columns = max(len(row) for row in rows)
        rows = [[*row, *[EMPTY] * (columns - len(row))] for row in rows]
        heads, *others = rows
        widths = [max(1, *(line_width(row[column]) for row in rows)) for column in range(columns)]
        room = self.width - 3 * (columns - 1)
        if room < columns * MIN_COLUMN:
            return self._listed(heads, others)
        widths = _shrunk(widths, room)
        shown = self._row(heads, widths, "head")
        shown.append(plain("─┼─".join("─" * width for width in widths), "rule"))
        for row in others:
            shown += self._row(row, widths)
        return shown

    def _row(self, cells: Sequence[Line], widths: Sequence[int], style: str = "") -> list[Line]:
        if style:
            cells = [tuple(p._replace(style=f"{style} {p.style}".strip()) for p in cell) for cell in cells]
        wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
        shown: list[Line] = []
        for number in range(max(map(len, wrapped))):
            row: list[StyledText] = []
            for column, rows in enumerate(wrapped):
                cell = rows[number] if number < len(rows) else EMPTY
                if column:
                    row.append(StyledText(" │ ", "rule"))
                row += cell
                if column < len(wrapped) - 1:
                    row.append(StyledText(" " * (widths[column] - line_width(cell))))
            shown.append(tuple(row))
        return shown

    def _listed(self, heads: Sequence[Line], rows: Sequence[Sequence[Line]]) -> list[Line]:
        """A table that is too wide for the window: each row as a list of its cells."""
        shown: list[Line] = []
        for number, row in enumerate(rows):
            if number:
                shown.append(EMPTY)
            for head, cell in zip(heads, row, strict=True):
                name = tuple(piece._replace(style=f"head {piece.style}".strip()) for piece in head)
                shown += wrap((*name, StyledText(": "), *cell), self.width, EMPTY, plain("  "))
        return shown or wrap(tuple(p for head in heads for p in (*head, StyledText("  "))), self.width)

    # Spans

    def _inline(self, spans: Sequence[Span], style: str = "") -> Line:
        pieces: list[StyledText] = []
        names: list[str] = [style] if style else []
        for number, span in enumerate(spans):
            now = " ".join(names)
            match span.kind:
                case "text" | "escaped":
                    pieces.append(StyledText(span.text, now))
                case "code":
                    pieces.append(StyledText(span.text, f"{now} code".strip()))
                case "link":
                    pieces += self._link(span, now)
                case _ if span.partner > number:
                    names += [_NAMES[name] for name in MARK_STYLES[span.text]]
                case _:
                    for name in MARK_STYLES[span.text]:
                        if _NAMES[name] in names:
                            names.remove(_NAMES[name])
        return tuple(pieces)

    def _link(self, span: Span, style: str) -> list[StyledText]:
        """The words as a hyperlink. Whatever could mislead is shown with its address."""
        address = span.address
        is_bare = span.text == address
        words = span.text or address
        if not is_bare:
            words = "".join(one.text for one in spans_of(span.text, _STYLE) if one.kind != "mark") or address
        if not _SAFE.fullmatch(address):
            return [StyledText(words if is_bare else f"{words} ({address})", style)]
        linked = StyledText(words, f"{style} link".strip(), address)
        if is_bare or (self._has_links and not _LOOKS_LIKE_ADDRESS.match(words)):
            return [linked]
        return [
            linked,
            StyledText(" (", style),
            StyledText(address, f"{style} dim".strip(), address),
            StyledText(")", style),
        ]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _shrunk(widths: list[int], room: int) -> list[int]:
    """Make the widest columns narrower until all fit."""
    widths = list(widths)
    while (excess := sum(widths) - room) > 0:
        widest = max(widths)
        next_widest = max((width for width in widths if width < widest), default=MIN_COLUMN - 1)
        many = [column for column, width in enumerate(widths) if width == widest]
        step = max(1, min(widest - max(next_widest, MIN_COLUMN), -(-excess // len(many))))
        for column in many:
            widths[column] = max(MIN_COLUMN, widest - step)
        if widest <= MIN_COLUMN:
            break
    return widths


def _hard_wrapped(line: Line, width: int) -> list[Line]:
    """Break where the terminal would: of code every blank counts."""
    rows: list[Line] = []
    row: list[StyledText] = []
    used = 0
    for piece in line:
        for character in piece.text:
            size = width_of(character)
            if used + size > width:
                rows.append(tuple(row))
                row, used = [], 0
            row.append(piece._replace(text=character))
            used += size
    rows.append(tuple(row))
    return rows
