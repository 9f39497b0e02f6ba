"""Neutral Markdown as Discord's.

Most of it is the same. Discord has three levels of headings, no tables, pictures or rules, takes ``__`` for underlined
and ``||`` for hidden; what it would read otherwise than meant is rewritten or escaped.
"""

from __future__ import annotations

import re

from hermes.core.markdown.blocks import FENCE, RULE, RULE_SHOWN, aligned, end_of_code, is_table, table_rows

GAP = "\u200b"
_LANGUAGE = re.compile(r"[\w+#.-]{0,30}")
_DEEP_HEADING = re.compile(r"^ {0,3}#{4,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")
_BOX = re.compile(r"^([ \t]*)[-*+][ \t]+\[([ xX])\][ \t]+(.*)$")
_NESTED_QUOTE = re.compile(r"^ {0,3}>(?:[ \t]?>)+[ \t]?")
_SMALL = re.compile(r"^([ \t]*)-#(?=[ \t])")
_CODE = re.compile(r"(?<!`)(`{1,8})(?!`)([^`\n]+(?:(?!\1)`+[^`\n]+)*)\1(?!`)")
_PICTURE = re.compile(r"!\[([^\[\]\n]*)\]\(<?([^()\s<>]+)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_LINK = re.compile(r"\[([^\[\]\n]+)\]\(<?([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*)>?(?:[ \t]+\"[^\"\n]*\")?\)")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_STRONG = re.compile(r"(?<![\w\\_])__(?=[^\s_])([^\n]+?)(?<=[^\s_])__(?![\w_])")


def render(source: str) -> str:
    lines = source.split("\n")
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
    if heading := _DEEP_HEADING.match(line):
        bare = heading[1].replace("**", "").replace("__", "")
        return (f"**{_marked(bare)}**" if bare else ""), at + 1
    if RULE.match(line):
        return RULE_SHOWN, at + 1
    if box := _BOX.match(line):
        return f"{box[1]}- {'☐' if box[2] == ' ' else '☑'} {_marked(box[3])}", at + 1
    line = _SMALL.sub(r"\1\\-#", _NESTED_QUOTE.sub("> ", line))
    return _marked(line), at + 1


def _code_block(lines: list[str], at: int, marker: str) -> tuple[str, int]:
    """What stands behind the first marker is its language, or else the first line: Discord would not show it."""
    told = lines[at].strip().lstrip(marker[0]).strip()
    language, first = (told, []) if _LANGUAGE.fullmatch(told) else ("", [told])
    end = end_of_code(lines, at, marker)
    return _fenced([*first, *lines[at + 1 : end]], language), min(end + 1, len(lines))


def _fenced(lines: list[str], language: str = "") -> str:
    inside = "\n".join(lines).replace("```", f"``{GAP}`")
    return f"```{language}\n{inside}\n```"


def _table(lines: list[str], at: int) -> tuple[str, int]:
    rows, end = table_rows(lines, at, _plain)
    return _fenced(aligned(rows)), end


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", _CODE.sub(r"\2", text))
    return re.sub(r"\*{1,3}(\S[^*\n]*?)\*{1,3}|~~(\S[^~\n]*?)~~", lambda found: found[1] or found[2], text)


def _marked(line: str) -> str:
    """Everything but code, which stays as it is."""
    done: list[str] = []
    at = 0
    for code in _CODE.finditer(line):
        done += [_inline(line[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*done, _inline(line[at:])])


def _inline(text: str) -> str:
    text = _PICTURE.sub(lambda found: _link(found[1] or found[2], found[2]), text)
    text = _LINK.sub(lambda found: _link(found[1], found[2]), text)
    text = _STRONG.sub(r"**\1**", text)
    return text.replace("||", "\\|\\|")


def _link(words: str, address: str) -> str:
    """Discord shows a link behind words for web addresses only, and not where the words are one themselves."""
    if words == address or not words:
        return address
    if not _ADDRESS.match(address) or _ADDRESS.search(words):
        return f"{words} ({address})"
    return f"[{words}]({address})"
