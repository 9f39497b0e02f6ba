"""Neutral Markdown with the few marks that Slack and WhatsApp share: ``*bold*``, ``_italic_``, ``~struck~``, code.

There is no way to escape a mark. One that is meant literally, or that touches a letter from outside, gets an invisible
space beside it. Headings become bold lines, tables aligned text. Links, bullets and what is escaped are a ``Style``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.markdown.blocks import FENCE, RULE, RULE_SHOWN, aligned, end_of_code, is_table, table_rows

GAP = "\u200b"  # zero width: parts a mark from the letter beside it
_KEPT, _END = "\ue000", "\ue001"  # around the number of a stretch that is put back at the end
_BOLD, _ITALIC, _STRIKE = "\ue002", "\ue003", "\ue004"
_MARKS = {_BOLD: "*", _ITALIC: "_", _STRIKE: "~"}
_OURS = re.compile("[\ue000-\ue004]")

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?(.*)$")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`)([^`\n]+(?:(?!\1)`+[^`\n]+)*)\1(?!`)")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BOTH = re.compile(r"\*\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*\*")
_STRONG = re.compile(r"(\*\*|(?<!\w)__)(?=\S)((?:(?!\1)[^\n])+?)(?<=\S)\1(?!\*)")
_EMPHASIS = re.compile(
    r"(?<!\*)\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?!\*)|(?<![\w_])_(?=[^\s_])([^_\n]+?)(?<=[^\s_])_(?![\w_])"
)
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)(?<=\S)~~")
_MARK = re.compile(f"[{_BOLD}{_ITALIC}{_STRIKE}]+")

Keep = Callable[[str], str]
"""Takes a stretch that is done, and gives what stands for it until the marks of the line are written."""


@dataclass(frozen=True, slots=True)
class Style:
    """What one platform does its own way.

    ``bare`` finds addresses that stand in the text by themselves; ``address`` writes one. ``link`` writes the words and
    the address of a link, of which it keeps what is done. ``bullets`` begin a line of a list: plain, to do, done.
    """

    bare: re.Pattern[str]
    address: Callable[[str], str]
    link: Callable[[str, str, Keep], str]
    bullets: tuple[str, str, str]
    escape: Callable[[str], str] = str


def render(source: str, style: Style) -> str:
    lines = _OURS.sub("", source).split("\n")
    done: list[str] = []
    at = 0
    while at < len(lines):
        text, at = _block(lines, at, style)
        done.append(text)
    return "\n".join(done)


def _block(lines: Sequence[str], at: int, style: Style) -> tuple[str, int]:
    """The block that begins at this line, and where the next one does."""
    line = lines[at]
    if fence := FENCE.match(line):
        end = end_of_code(lines, at, fence[1])
        return _fenced(lines[at + 1 : end], style), min(end + 1, len(lines))
    if is_table(lines, at):
        rows, end = table_rows(lines, at, _plain)
        return _fenced(aligned(rows), style), end
    return _one_line(line, style), at + 1


def _fenced(lines: Sequence[str], style: Style) -> str:
    inside = style.escape("\n".join(lines)).replace("```", f"``{GAP}`")
    return f"```\n{inside}\n```"


def _plain(text: str) -> str:
    """The words of one line alone, for a cell of a table."""
    text = _LINK.sub(lambda link: link[1] or link[2], _CODE.sub(r"\2", text))
    for pattern in (_BOTH, _STRUCK):
        text = pattern.sub(r"\1", text)
    text = _STRONG.sub(r"\2", text)
    return _EMPHASIS.sub(lambda found: found[1] or found[2], text)


def _one_line(line: str, style: Style) -> str:
    if heading := _HEADING.match(line):
        bare = heading[1].replace("**", "").replace("__", "")
        return _marked(f"{_BOLD}{bare}{_BOLD}", style) if bare else ""
    if RULE.match(line):
        return RULE_SHOWN
    if quoted := _QUOTE.match(line):
        return f"> {_marked(quoted[1], style)}"
    if bullet := _BULLET.match(line):
        plain, to_do, done = style.bullets
        begins = plain if bullet[2] is None else to_do if bullet[2] == " " else done
        return f"{bullet[1]}{begins}{_marked(bullet[3], style)}"
    return _marked(line, style)


def _marked(line: str, style: Style) -> str:
    """One line with its marks. Code and links are taken out first and put back last, so that they stay as they are."""
    kept: list[str] = []
    escape = style.escape

    def keep(done: str) -> str:
        kept.append(done)
        return f"{_KEPT}{len(kept) - 1}{_END}"

    line = _CODE.sub(lambda code: keep(f"`{escape(code[2].strip() or code[2])}`"), line)
    line = _ESCAPED.sub(lambda mark: keep(f"{GAP}{escape(mark[1])}" if mark[1] in "*_~`" else escape(mark[1])), line)
    line = _LINK.sub(lambda link: style.link(link[1], link[2], keep), line)
    line = style.bare.sub(lambda link: keep(style.address(link[1])), line)
    line = _BOTH.sub(rf"{_BOLD}{_ITALIC}\1{_ITALIC}{_BOLD}", line)
    line = _STRONG.sub(rf"{_BOLD}\2{_BOLD}", line)
    line = _EMPHASIS.sub(lambda found: f"{_ITALIC}{found[1] or found[2]}{_ITALIC}", line)
    line = _STRUCK.sub(rf"{_STRIKE}\1{_STRIKE}", line)
    return _put_back(_written(escape(line)), kept)


def _written(line: str) -> str:
    """The marks as they are written, with a gap where one would touch a letter from outside."""
    is_open: set[str] = set()

    def write(marks: re.Match[str]) -> str:
        opens = marks[0][0] not in is_open
        is_open.symmetric_difference_update(marks[0])
        written = "".join(_MARKS[mark] for mark in marks[0])
        if opens:
            return f"{GAP}{written}" if line[marks.start() - 1 : marks.start()].isalnum() else written
        return f"{written}{GAP}" if line[marks.end() : marks.end() + 1].isalnum() else written

    return _MARK.sub(write, line)


def _put_back(line: str, kept: Sequence[str]) -> str:
    for _ in range(3):  # code may stand in the words of a link
        if _KEPT not in line:
            break
        line = re.sub(f"{_KEPT}([0-9]+){_END}", lambda number: kept[int(number[1])], line)
    return line
