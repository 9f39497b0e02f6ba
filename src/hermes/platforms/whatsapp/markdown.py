"""Neutral Markdown as WhatsApp writes it: ``*bold*``, ``_italic_``, ``~struck~``, code, quotes and lists.

There is no way to escape a mark and no link behind words. A mark that is meant literally, or that touches a letter from
outside, gets an invisible space beside it. Headings become bold lines, links show their address, tables aligned text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

GAP = "\u200b"  # zero width: parts a mark from the letter beside it
_KEPT, _END = "\ue000", "\ue001"  # around the number of a stretch that is put back at the end
_BOLD, _ITALIC, _STRIKE = "\ue002", "\ue003", "\ue004"
_MARKS = {_BOLD: "*", _ITALIC: "_", _STRIKE: "~"}
_OURS = re.compile("[\ue000-\ue004]")

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*[^\s`]*[^`]*$")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?(.*)$")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_TABLE_RULE = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`)([^`\n]+(?:(?!\1)`+[^`\n]+)*)\1(?!`)")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_ADDRESS = re.compile(r"<?((?:https?|mailto|tel):[^\s<>]+)>?", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BOTH = re.compile(r"\*\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*\*")
_STRONG = re.compile(r"(\*\*|(?<!\w)__)(?=\S)((?:(?!\1)[^\n])+?)(?<=\S)\1(?!\*)")
_EMPHASIS = re.compile(
    r"(?<!\*)\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?!\*)|(?<![\w_])_(?=[^\s_])([^_\n]+?)(?<=[^\s_])_(?![\w_])"
)
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)(?<=\S)~~")
_MARK = re.compile(f"[{_BOLD}{_ITALIC}{_STRIKE}]+")


def render(source: str) -> str:
    lines = _OURS.sub("", source).split("\n")
    done: list[str] = []
    at = 0
    while at < len(lines):
        text, at = _block(lines, at)
        done.append(text)
    return "\n".join(done)


def _block(lines: list[str], at: int) -> tuple[str, int]:
    """The block that begins at this line, and where the next one does."""
    line = lines[at]
    if fence := _FENCE.match(line):
        return _code_block(lines, at, fence[1])
    if _is_table(lines, at):
        return _table(lines, at)
    if heading := _HEADING.match(line):
        bare = heading[1].replace("**", "").replace("__", "")
        return (_marked(f"{_BOLD}{bare}{_BOLD}") if bare else ""), at + 1
    if _RULE.match(line):
        return "———", at + 1
    if quoted := _QUOTE.match(line):
        return f"> {_marked(quoted[1])}", at + 1
    if bullet := _BULLET.match(line):
        box = "" if bullet[2] is None else "☐ " if bullet[2] == " " else "☑ "
        return f"{bullet[1]}- {box}{_marked(bullet[3])}", at + 1
    return _marked(line), at + 1


def _code_block(lines: list[str], at: int, marker: str) -> tuple[str, int]:
    end = at + 1
    while end < len(lines):
        bare = lines[end].strip()
        if len(bare) >= len(marker) and not bare.strip(marker[0]):
            break
        end += 1
    return _fenced(lines[at + 1 : end]), min(end + 1, len(lines))


def _fenced(lines: list[str]) -> str:
    inside = "\n".join(lines).replace("```", f"``{GAP}`")
    return f"```\n{inside}\n```"


def _is_table(lines: list[str], at: int) -> bool:
    return "|" in lines[at] and at + 1 < len(lines) and "|" in lines[at + 1] and bool(_TABLE_RULE.match(lines[at + 1]))


def _table(lines: list[str], at: int) -> tuple[str, int]:
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        end += 1
    rows = [_cells(line) for number, line in enumerate(lines[at:end]) if number != 1]
    columns = max(len(row) for row in rows)
    widths = [max(_width(row[column]) if column < len(row) else 0 for row in rows) for column in range(columns)]
    aligned = [
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)).rstrip()
        for row in rows
    ]
    return _fenced([aligned[0], "  ".join("─" * width for width in widths), *aligned[1:]]), end


def _cells(line: str) -> list[str]:
    return [_plain(cell.replace("\\|", "|").strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _plain(text: str) -> str:
    """The words of one line alone, for a cell of a table."""
    text = _LINK.sub(lambda link: link[1] or link[2], _CODE.sub(r"\2", text))
    for pattern in (_BOTH, _STRUCK):
        text = pattern.sub(r"\1", text)
    text = _STRONG.sub(r"\2", text)
    return _EMPHASIS.sub(lambda found: found[1] or found[2], text)


def _marked(line: str) -> str:
    """One line with its marks. Code and addresses are taken out first and put back last, so they stay as they are."""
    kept: list[str] = []

    def keep(done: str) -> str:
        kept.append(done)
        return f"{_KEPT}{len(kept) - 1}{_END}"

    line = _CODE.sub(lambda code: keep(f"`{code[2].strip() or code[2]}`"), line)
    line = _ESCAPED.sub(lambda mark: keep(f"{GAP}{mark[1]}" if mark[1] in "*_~`" else mark[1]), line)
    line = _LINK.sub(lambda link: _link(link[1], link[2], keep), line)
    line = _ADDRESS.sub(lambda link: keep(link[1]), line)
    line = _BOTH.sub(rf"{_BOLD}{_ITALIC}\1{_ITALIC}{_BOLD}", line)
    line = _STRONG.sub(rf"{_BOLD}\2{_BOLD}", line)
    line = _EMPHASIS.sub(lambda found: f"{_ITALIC}{found[1] or found[2]}{_ITALIC}", line)
    line = _STRUCK.sub(rf"{_STRIKE}\1{_STRIKE}", line)
    return _put_back(_written(line), kept)


def _written(line: str) -> str:
    """The marks as WhatsApp writes them, with a gap where one would touch a letter from outside."""
    is_open: set[str] = set()

    def write(marks: re.Match[str]) -> str:
        opens = marks[0][0] not in is_open
        is_open.symmetric_difference_update(marks[0])
        written = "".join(_MARKS[mark] for mark in marks[0])
        if opens:
            return f"{GAP}{written}" if line[marks.start() - 1 : marks.start()].isalnum() else written
        return f"{written}{GAP}" if line[marks.end() : marks.end() + 1].isalnum() else written

    return _MARK.sub(write, line)


def _link(words: str, address: str, keep: Callable[[str], str]) -> str:
    shown = keep(address)
    return shown if not words or words == address else f"{words} ({shown})"


def _put_back(line: str, kept: list[str]) -> str:
    for _ in range(3):  # code may stand in the words of a link
        if _KEPT not in line:
            break
        line = re.sub(f"{_KEPT}([0-9]+){_END}", lambda number: kept[int(number[1])], line)
    return line
