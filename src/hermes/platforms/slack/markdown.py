"""Neutral Markdown as Slack's mrkdwn.

mrkdwn has bold, italic, strike, code, quotes and links, and no way to escape a mark. Headings become bold lines, lists
get bullets, tables become aligned text. A mark beside a letter is not read as one, so an invisible space goes between.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hermes.core.markdown import FENCE, RULE, RULE_SHOWN, aligned, end_of_code, is_table, table_rows

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
_AUTOLINK = re.compile(r"<(https?://[^\s<>]+)>")
_ADDRESS = re.compile(r"(?:https?|mailto|tel|slack):", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_BOTH = re.compile(r"\*\*\*(?=\S)([^*\n]+?)(?<=\S)\*\*\*")
_STRONG = re.compile(r"(\*\*|(?<!\w)__)(?=\S)((?:(?!\1)[^\n])+?)(?<=\S)\1(?!\*)")
_EMPHASIS = re.compile(
    r"(?<!\*)\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?!\*)|(?<![\w_])_(?=[^\s_])([^_\n]+?)(?<=[^\s_])_(?![\w_])"
)
_STRUCK = re.compile(r"~~(?=\S)([^~\n]+?)(?<=\S)~~")
_MARK = re.compile(f"[{_BOLD}{_ITALIC}{_STRIKE}]+")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
    if fence := FENCE.match(line):
        return _code_block(lines, at, fence[1])
    if is_table(lines, at):
        return _table(lines, at)
    if heading := _HEADING.match(line):
        bare = heading[1].replace("**", "").replace("__", "")
        return (_marked(f"{_BOLD}{bare}{_BOLD}") if bare else ""), at + 1
    if RULE.match(line):
        return RULE_SHOWN, at + 1
    if quoted := _QUOTE.match(line):
        return f"> {_marked(quoted[1])}", at + 1
    if bullet := _BULLET.match(line):
        box = "• " if bullet[2] is None else "☐ " if bullet[2] == " " else "☑ "
        return f"{bullet[1]}{box}{_marked(bullet[3])}", at + 1
    return _marked(line), at + 1


def _code_block(lines: list[str], at: int, marker: str) -> tuple[str, int]:
    end = end_of_code(lines, at, marker)
    return _fenced(lines[at + 1 : end]), min(end + 1, len(lines))


def _fenced(lines: list[str]) -> str:
    inside = escape("\n".join(lines)).replace("```", f"``{GAP}`")
    return f"```\n{inside}\n```"


def _table(lines: list[str], at: int) -> tuple[str, int]:
    rows, end = table_rows(lines, at, plain)
    return _fenced(aligned(rows)), end


def plain(text: str) -> str:
    """The words of one line alone, for a cell of a table."""
    text = _LINK.sub(lambda link: link[1] or link[2], _CODE.sub(r"\2", text))
    for pattern in (_BOTH, _STRUCK):
        text = pattern.sub(r"\1", text)
    text = _STRONG.sub(r"\2", text)
    return _EMPHASIS.sub(lambda found: found[1] or found[2], text)


def _marked(line: str) -> str:
    """One line with its marks. Code and links are taken out first and put back last, so that they stay as they are."""
    kept: list[str] = []

    def keep(done: str) -> str:
        kept.append(done)
        return f"{_KEPT}{len(kept) - 1}{_END}"

    line = _CODE.sub(lambda code: keep(f"`{escape(code[2].strip() or code[2])}`"), line)
    line = _ESCAPED.sub(lambda mark: keep(f"{GAP}{escape(mark[1])}" if mark[1] in "*_~`" else escape(mark[1])), line)
    line = _LINK.sub(lambda link: _link(link[1], link[2], keep), line)
    line = _AUTOLINK.sub(lambda link: keep(f"<{_address(link[1])}>"), line)
    line = _BOTH.sub(rf"{_BOLD}{_ITALIC}\1{_ITALIC}{_BOLD}", line)
    line = _STRONG.sub(rf"{_BOLD}\2{_BOLD}", line)
    line = _EMPHASIS.sub(lambda found: f"{_ITALIC}{found[1] or found[2]}{_ITALIC}", line)
    line = _STRUCK.sub(rf"{_STRIKE}\1{_STRIKE}", line)
    return _put_back(_written(escape(line)), kept)


def _written(line: str) -> str:
    """The marks as Slack writes them, with a gap where one would touch a letter from outside."""
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
    if not _ADDRESS.match(address):
        return f"{words} ({address})" if words else address
    shown = escape(words).replace("|", "¦")
    return keep(f"<{_address(address)}|{shown}>" if shown else f"<{_address(address)}>")


def _address(address: str) -> str:
    return escape(address).replace("|", "%7C")


def _put_back(line: str, kept: list[str]) -> str:
    for _ in range(3):  # code may stand in the words of a link
        if _KEPT not in line:
            break
        line = re.sub(f"{_KEPT}([0-9]+){_END}", lambda number: kept[int(number[1])], line)
    return line
