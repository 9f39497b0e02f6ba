"""Telegram's MarkdownV2 as the server reads it: the shown text and its entities, or the refusal's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
_NAMES = {"*": "bold", "_": "italic", "__": "underline", "~": "strikethrough", "||": "spoiler"}


class CannotParse(ValueError):  # noqa: N818 - named as the server words it
    """The description that the server answers with."""


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    shown: list[str] = field(default_factory=list)
    units: int = 0
    entities: list[dict[str, Any]] = field(default_factory=list)
    stack: list[tuple[str, int]] = field(default_factory=list)

    def show(self, piece: str) -> None:
        self.shown.append(piece)
        self.units += len(piece.encode("utf-16-le")) // 2

    def add(self, kind: str, start: int, **more: str) -> None:
        if self.units > start:
            self.entities.append({"type": kind, "offset": start, "length": self.units - start, **more})

    def fail(self, why: str) -> CannotParse:
        return CannotParse(f"Bad Request: can't parse entities: {why}")


def parse(text: str) -> tuple[str, list[dict[str, Any]]]:
    reader = _Reader(text)
    quote_start = -1
    while reader.at < len(text):
        at_line_start = reader.at == 0 or text[reader.at - 1] == "\n"
        if at_line_start and quote_start >= 0 and not text.startswith(">", reader.at):
            reader.add("blockquote", quote_start)
            quote_start = -1
        if at_line_start and text.startswith(">", reader.at):
            quote_start = reader.units if quote_start < 0 else quote_start
            reader.at += 1
            continue
        _step(reader)
    if reader.stack:
        mark, start = reader.stack[-1]
        name = "Link" if mark == "[" else _NAMES[mark].capitalize()
        raise reader.fail(f"Can't find end of {name} entity at byte offset {start}")
    if quote_start >= 0:
        reader.add("blockquote", quote_start)
    return "".join(reader.shown), sorted(reader.entities, key=lambda entity: (entity["offset"], -entity["length"]))


def _step(reader: _Reader) -> None:
    text, at = reader.text, reader.at
    character = text[at]
    if character == "\\" and at + 1 < len(text) and 0 < ord(text[at + 1]) < 127:
        reader.show(text[at + 1])
        reader.at += 2
    elif character == "`":
        _code(reader)
    elif character == "[" or (character == "]" and reader.stack and reader.stack[-1][0] == "["):
        _link(reader)
    elif mark := next((mark for mark in ("__", "||", "*", "_", "~") if text.startswith(mark, at)), ""):
        _style(reader, mark)
    elif character in _RESERVED:
        raise reader.fail(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")
    else:
        reader.show(character)
        reader.at += 1


def _style(reader: _Reader, mark: str) -> None:
    if reader.stack and reader.stack[-1][0] == mark:
        _, start = reader.stack.pop()
        reader.add(_NAMES[mark], start)
    elif any(open_mark == mark for open_mark, _ in reader.stack):
        raise reader.fail(f"Can't find end of {_NAMES[reader.stack[-1][0]]} entity at byte offset {reader.at}")
    else:
        reader.stack.append((mark, reader.units))
    reader.at += len(mark)


def _code(reader: _Reader) -> None:
    text = reader.text
    fence = "```" if text.startswith("```", reader.at) else "`"
    begin = at = reader.at + len(fence)
    inside: list[str] = []
    while not text.startswith(fence, at):
        if at >= len(text):
            kind = "Pre" if fence == "```" else "Code"
            raise reader.fail(f"Can't find end of {kind} entity at byte offset {begin}")
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        inside.append(text[at])
        at += 1
    reader.at = at + len(fence)
    content, start = "".join(inside), reader.units
    if fence == "`":
        reader.show(content)
        reader.add("code", start)
        return
    language, newline, rest = content.partition("\n")
    if newline and language and not any(letter.isspace() for letter in language):
        reader.show(rest.removesuffix("\n"))
        reader.add("pre", start, language=language)
    else:
        reader.show((rest if newline and not language else content).removesuffix("\n"))
        reader.add("pre", start)


def _link(reader: _Reader) -> None:
    text = reader.text
    if text[reader.at] == "[":
        reader.stack.append(("[", reader.units))
        reader.at += 1
        return
    _, start = reader.stack.pop()
    if not text.startswith("](", reader.at):
        raise reader.fail("Character ']' is reserved and must be escaped with the preceding '\\'")
    at = reader.at + 2
    address: list[str] = []
    while at < len(text) and text[at] != ")":
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        address.append(text[at])
        at += 1
    if at >= len(text):
        raise reader.fail(f"Can't find end of a URL at byte offset {reader.at}")
    reader.add("text_link", start, url="".join(address))
    reader.at = at + 1
