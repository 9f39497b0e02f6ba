"""Parse neutral Markdown into blocks and spans, and write them in the ``Style`` of a platform.

Blocks go by lines and keep the layout of the model: blank lines, indentation and numbers stay. Marks pair as people
write them, in Chinese too (docs/adr/0018). Every pass is linear in the text: a model may write anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from hermes.core.dataclasses import dataclass

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$")
"""Opens a block of code: its marker, and the language that it names."""

RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
RULE_SHOWN = "———"
GAP = "\u200b"  # zero width: parts a mark from the letter beside it

# Of a line without the blanks around it: with them, a long run of blanks could be read in too many ways.
_TABLE_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$")
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?")
_NESTED_QUOTE = re.compile(r"^ {0,3}>(?:[ \t]?>)*[ \t]?")
_ITEM = re.compile(r"^([ \t]*)(?:[-*+][ \t]+(?:\[([ xX])\][ \t]+)?|(\d{1,9}[.)])[ \t]+)")

_LINK = re.compile(r"!?\[([^\[\]]*)\]\(<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_ALONE = re.compile(r"<((?i:https?|mailto|tel):[^\s<>]+)>|((?i:https?|mailto|tel):[^\s<>]+)")
_TICKS = re.compile(r"`+")
_TOKENS = r"\\[!-/:-@\[-`{-~]|`+|!?\[|<https?://|\*{1,3}|_{1,3}|~~"
_TOKEN = re.compile(_TOKENS)
_TOKEN_OR_ADDRESS = re.compile(rf"{_TOKENS}|<?(?i:https?|mailto|tel):")
MARK_STYLES = {"*": ("italic",), "**": ("bold",), "***": ("bold", "italic"), "~~": ("strike",)}
MARK_STYLES |= {mark.replace("*", "_"): styles for mark, styles in MARK_STYLES.items()}
_CROSSED = -2  # an opening mark inside a pair that closed before it

Rows = Sequence[Sequence[str]]
Token = tuple[str, str]
"""A piece of a written line, and its role: "text", "opens" or "closes" a style, or "done" (code, a link)."""


@dataclass(slots=True)
class Span:
    """A stretch of a line: ``text``, ``code``, a ``link``, an ``escaped`` sign, or a ``mark`` that has a partner."""

    kind: str
    source: str
    text: str
    address: str = ""
    opens: bool = False
    closes: bool = False
    partner: int = -1


@dataclass(slots=True)
class Block:
    """``text``, a ``heading``, a ``rule``, a line of a ``quote``, an ``item`` of a list, ``code`` or a ``table``.

    ``head`` is what stands before the text: the mark of an item, or the words behind the marker of code. ``level`` is
    that of a heading; of an item, 1 means to do and 2 done.
    """

    kind: str
    text: str = ""
    head: str = ""
    level: int = 0
    indent: str = ""
    number: str = ""
    rows: Rows = ()
    spans: Sequence[Span] = ()


class Style:
    """How a platform writes Markdown. This style writes the words alone; a platform overrides what it can show."""

    bold = italic = strike = quote = ""
    bullets = ("• ", "☐ ", "☑ ")  # plain, to do, done
    headings = 0  # levels that the platform shows itself; the others become bold lines
    has_tables = True  # False: lines of a table are written like other lines
    flattens_quotes = False
    spans_lines = False  # whether a mark may close on a later line
    finds_addresses = False  # whether an address that stands in the text by itself is a link

    def text(self, text: str) -> str:
        return text

    def escaped(self, span: Span) -> str:
        return self.text(span.text)

    def code(self, span: Span) -> str:
        return span.text

    def link(self, words: str, span: Span) -> str:
        """Write a link whose words are written already."""
        return words if span.text == span.address else f"{words} ({span.address})"

    def code_block(self, text: str, _info: str) -> str:
        return text

    def table(self, rows: Rows) -> str:
        return self.code_block("\n".join(aligned(rows)), "")

    def cell(self, text: str) -> str:
        return render_line(text, _CELL)

    def item(self, block: Block) -> str:
        """Write the mark of an item."""
        return block.head if block.number else block.indent + self.bullets[block.level]

    def join(self, tokens: Sequence[Token]) -> str:
        return "".join(text for text, _ in tokens)


class _Cell(Style):
    def link(self, words: str, _span: Span) -> str:
        return words


def render(source: str, style: Style) -> str:
    return write(parse(source, style), style)


def render_line(text: str, style: Style) -> str:
    return _inline(spans_of(text, style), style)


def write(blocks: Iterable[Block], style: Style) -> str:
    return "\n".join(_written(block, style) for block in blocks)


def is_formatted(blocks: Iterable[Block]) -> bool:
    """Say whether the source shows marks that a reader should not see."""
    return any(
        block.kind in ("code", "table", "quote")
        or (block.kind == "heading" and block.text)
        or (block.kind == "item" and not block.number)
        or any(span.kind != "text" for span in block.spans)
        for block in blocks
    )


def fenced(code: str, info: str = "") -> str:
    """Write a block of code for a platform that ends it at any three ticks."""
    inside = code.replace("```", f"``{GAP}`")
    return f"```{info}\n{inside}\n```"


def _written(block: Block, style: Style) -> str:
    match block.kind:
        case "code":
            return style.code_block(block.text, block.head)
        case "table":
            return style.table(block.rows)
        case "rule":
            return style.text(RULE_SHOWN)
        case "heading" if block.level <= style.headings:
            return f"{'#' * block.level} {_inline(block.spans, style)}"
        case "heading":
            return f"{style.bold}{_inline(block.spans, style, {'bold'})}{style.bold}" if block.text else ""
        case "quote":
            return style.quote + _inline(block.spans, style)
        case "item":
            return style.item(block) + _inline(block.spans, style)
    return _inline(block.spans, style)


def _inline(spans: Sequence[Span], style: Style, active: Iterable[str] = ()) -> str:
    """Write the spans of a line. An ``active`` style is not opened again inside of itself."""
    if len(spans) == 1 and spans[0].kind == "text":
        return style.text(spans[0].text)
    tokens: list[Token] = []
    opened: dict[int, list[str]] = {}
    styles = set(active)
    for number, span in enumerate(spans):
        if span.kind == "text":
            tokens.append((style.text(span.text), "text"))
        elif span.kind == "code":
            tokens.append((style.code(span), "done"))
        elif span.kind == "escaped":
            tokens.append((style.escaped(span), "done"))
        elif span.kind == "link":
            words = spans_of(span.text, style) if span.text != span.address else [Span("text", span.text, span.text)]
            for word in words:
                word.kind = "text" if word.kind == "link" else word.kind  # a link holds no other
            tokens.append((style.link(_inline(words, style, styles), span), "done"))
        elif span.partner > number:
            opened[number] = [name for name in MARK_STYLES[span.text] if name not in styles]
            styles.update(opened[number])
            tokens.append(("".join(getattr(style, name) for name in opened[number]), "opens"))
        else:
            styles.difference_update(opened[span.partner])
            tokens.append(("".join(getattr(style, name) for name in reversed(opened[span.partner])), "closes"))
    return style.join(tokens)


# Blocks


def parse(source: str, style: Style) -> list[Block]:
    lines = source.split("\n")
    blocks: list[Block] = []
    at = 0
    while at < len(lines):
        block, at = _block(lines, at, style)
        blocks.append(block)
    if style.spans_lines:
        blocks = list(_paragraphs(blocks))
    for block in blocks:
        if block.text and block.kind != "code":
            block.spans = spans_of(block.text, style)
    return blocks


def _paragraphs(blocks: Iterable[Block]) -> Iterator[Block]:
    """Join the lines of text that follow each other."""
    for is_text, group in groupby(blocks, lambda block: block.kind == "text" and block.text != ""):
        if is_text:
            yield Block("text", "\n".join(block.text for block in group))
        else:
            yield from group


def _block(lines: Sequence[str], at: int, style: Style) -> tuple[Block, int]:
    """Return the block that begins at this line, and where the next one does."""
    line = lines[at]
    sign = line.lstrip(" \t")[:1]
    if sign in ("`", "~") and (fence := FENCE.match(line)):
        end = end_of_code(lines, at, fence[1])
        info = line.strip().lstrip(fence[1][0]).strip()
        return Block("code", "\n".join(lines[at + 1 : end]), info), min(end + 1, len(lines))
    if style.has_tables and is_table(lines, at):
        rows, end = table_rows(lines, at, style.cell)
        return Block("table", rows=rows), end
    block = Block("text", line)
    if sign == "#" and (heading := _HEADING.match(line)):
        bare = line[heading.end() :].rstrip(" \t").rstrip("#").rstrip(" \t")
        block = Block("heading", bare, level=len(heading[1]))
    elif sign in ("-", "*", "_") and RULE.match(line):
        block = Block("rule")
    elif sign == ">" and (quote := (_NESTED_QUOTE if style.flattens_quotes else _QUOTE).match(line)):
        block = Block("quote", line[quote.end() :])
    elif (sign in ("-", "*", "+") or sign.isdigit()) and (item := _ITEM.match(line)):
        level = 0 if item[2] is None else 1 if item[2] == " " else 2
        block = Block("item", line[item.end() :], item[0], level, item[1], item[3] or "")
    return block, at + 1


def end_of_code(lines: Sequence[str], at: int, marker: str) -> int:
    """Return the line that closes the code opened at this one; behind the last line where nothing does."""
    end = at + 1
    while end < len(lines):
        bare = lines[end].strip()
        if len(bare) >= len(marker) and not bare.strip(marker[0]):
            break
        end += 1
    return end


def is_table(lines: Sequence[str], at: int) -> bool:
    """Tell whether a table begins here: the line below its heads makes it one."""
    if "|" not in lines[at] or at + 1 == len(lines) or "|" not in lines[at + 1]:
        return False
    return _TABLE_RULE.match(lines[at + 1].strip(" \t")) is not None


def table_rows(lines: Sequence[str], at: int, plain: Callable[[str], str]) -> tuple[list[list[str]], int]:
    """Return the cells of the table that begins here, heads first, without their marks; and the line behind it."""
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    return [
        [plain(cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        for number, line in enumerate(lines[at:end])
        if number != 1
    ], end


def aligned(rows: Rows) -> list[str]:
    """Return the lines of a table as text in which every letter is as wide as the next."""
    columns = max(len(row) for row in rows)
    widths = [max(_width(row[column]) if column < len(row) else 0 for row in rows) for column in range(columns)]
    heads, *others = (
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    )
    return [heads, "  ".join("─" * width for width in widths), *others]


def _width(text: str) -> int:
    """In columns: Chinese and its like take two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


_CELL = _Cell()


# Spans


def spans_of(text: str, style: Style) -> list[Span]:
    token = _TOKEN_OR_ADDRESS if style.finds_addresses else _TOKEN
    if token.search(text) is None:
        return [Span("text", text, text)]
    spans: list[Span] = []
    last_run = {len(run[0]): run.start() for run in _TICKS.finditer(text)} if "`" in text else {}
    at = start = 0
    while match := token.search(text, at):
        span, at = _span(text, match, last_run)
        if span is None:
            continue
        if start < match.start():
            between = text[start : match.start()]
            spans.append(Span("text", between, between))
        spans.append(span)
        start = at
    if start < len(text):
        spans.append(Span("text", text[start:], text[start:]))
    _pair(spans)
    return spans


def _span(text: str, match: re.Match[str], last_run: dict[int, int]) -> tuple[Span | None, int]:
    """Return the span that begins at this token and where it ends; None where the token is only text."""
    token, start, end = match[0], match.start(), match.end()
    if token[0] == "\\":
        return Span("escaped", token, token[1:]), end
    if token[0] == "`":
        if last_run.get(end - start, -1) < end:
            return None, end  # known without searching, so that a thousand lonely ticks cost no more than one
        close = next(run for run in _TICKS.finditer(text, end) if len(run[0]) == end - start)
        inside = text[end : close.start()]
        if len(inside) > 2 and inside[0] == inside[-1] == " " and inside.strip():
            inside = inside[1:-1]
        return Span("code", text[start : close.end()], inside), close.end()
    if token[0] in "*_~":
        before = text[start - 1] if start else " "
        after = text[end] if end < len(text) else " "
        opens, closes = not after.isspace(), not before.isspace()
        if token[0] == "_":  # snake_case is not emphasis
            opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
        return (Span("mark", token, token, opens=opens, closes=closes) if opens or closes else None), end
    link = (_LINK if token.endswith("[") else _ALONE).match(text, start)
    if link is None:
        return None, start + 1 if token[0] == "<" else end  # an address may begin behind it
    address = link[link.lastindex or 1]
    return Span("link", link[0], link[1] or address, address), link.end()


def _pair(spans: Sequence[Span]) -> None:
    """Find for each closing mark the nearest equal opening mark; marks without a partner become text."""
    waiting: dict[str, list[int]] = {}
    order: list[int] = []
    for number, span in enumerate(spans):
        if span.kind != "mark":
            continue
        openers = waiting.setdefault(span.text, [])
        while openers and spans[openers[-1]].partner == _CROSSED:
            openers.pop()
        if span.closes and openers and openers[-1] < number - 1:
            opener = openers.pop()
            span.partner, spans[opener].partner = opener, number
            while order[-1] != opener:
                spans[order.pop()].partner = _CROSSED
            order.pop()
        elif span.opens:
            openers.append(number)
            order.append(number)
    for span in spans:
        if span.kind == "mark" and span.partner < 0:
            span.kind = "text"
