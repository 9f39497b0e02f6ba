"""Neutral Markdown for QQ: its own dialect is close enough to be sent as it is; where it is not taken, plain words."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_QUOTE = re.compile(r"^ {0,3}>[ \t]?")
_BULLET = re.compile(r"^([ \t]*)[-*+][ \t]+")
_RULE = re.compile(r"^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"(`+)([^`]+)\1")
_STRONG = ("***", "**", "__", "~~")
_EMPHASIS = re.compile(r"(?<![\w*_])([*_])(?=[^\s*_])([^\n*_]+?)(?<=[^\s*_])\1(?![\w*_])")
_URL = re.compile(r"(?i)\b(?:https?|ftp)://\S+|\b(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:/\S*)?")


def has_marks(text: str) -> bool:
    return plain(text) != text


def plain(text: str) -> str:
    """The words alone: for captions, and for a bot that may not send Markdown."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            else:
                lines.append(line)
        elif mark and "`" not in line[mark.end() :]:
            fence = mark[1]
        else:
            lines.append(_line(line))
    return "\n".join(lines)


def _line(line: str) -> str:
    if _RULE.match(line):
        return "———"
    if heading := _HEADING.match(line):
        line = heading[1]
    line = _QUOTE.sub("", line)
    line = _BULLET.sub(r"\1• ", line)
    kept: list[str] = []
    at = 0
    for code in _CODE.finditer(line):
        kept += [_spans(line[at : code.start()]), code[2]]
        at = code.end()
    return "".join([*kept, _spans(line[at:])])


def _spans(text: str) -> str:
    text = _LINK.sub(lambda link: link[1] if link[1] == link[2] else f"{link[1]} ({link[2]})".strip(), text)
    for mark in _STRONG:
        text = _without(mark, text)
    return _EMPHASIS.sub(r"\2", text)


def _without(mark: str, text: str) -> str:
    """The text without the pairs of a mark that stand close around words. One look at each piece, however many."""
    if mark not in text:
        return text
    kept, *pieces = text.split(mark)
    at = 0
    while at < len(pieces):
        inside = pieces[at]
        if at + 1 < len(pieces) and inside and not inside[0].isspace() and not inside[-1].isspace():
            kept += inside + pieces[at + 1]
            at += 2
        else:
            kept += mark + inside
            at += 1
    return kept


def without_addresses(text: str) -> str:
    """Addresses that cannot be followed, for a bot whose list does not name them: ``example[.]com/page``."""
    text = _LINK.sub(lambda link: f"{link[1]} ({link[2]})", text)
    return _URL.sub(lambda url: re.sub(r"(?i)^(?:https?|ftp)://", "", url[0]).replace(".", "[.]"), text)
