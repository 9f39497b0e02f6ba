"""read_file: read lines of a text file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import BinaryIO

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.workspace.files import open_inside
from hermes.agent.workspace.sensitive import HIDDEN_LINE, KeyCover, ask_for_keys
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

MAX_LINES = 2000
LINE_BYTES = 4000
SHOWN_BYTES = 40_000
SCANNED_BYTES = 500_000_000


def ask_first(ctx: ToolContext, path: str, **_: int) -> ApprovalNeed | None:
    return ask_for_keys(ctx, path)


@tool(toolset="files", approval=ask_first, is_at_hand=True)
async def read_file(ctx: ToolContext, path: str, first_line: int = 1, count: int = 200, from_byte: int = 0) -> str:
    """Read lines of a text file in the workspace.

    Returns numbered lines. For a long file, call again with a later `first_line`; `count` is at most 2000. In a very
    long line, `from_byte` skips so much of the first line that is read.
    """
    if first_line < 1 or not 1 <= count <= MAX_LINES or from_byte < 0:
        raise ToolError(f"'first_line' starts at 1, 'from_byte' at 0, and 'count' is 1 to {MAX_LINES}.")
    return await asyncio.to_thread(_read, ctx, path, first_line, count, from_byte)


@dataclass(frozen=True, slots=True)
class _FileLine:
    """One line, without its end. ``is_cut``: more of it follows."""

    raw: bytes
    is_cut: bool


def _read(ctx: ToolContext, path: str, first_line: int, count: int, from_byte: int) -> str:
    with open_inside(ctx, path) as file:
        if b"\0" in file.read(8192):
            raise ToolError(f"{path!r} is not a text file.")
        file.seek(0)
        cover = KeyCover()
        _skip_lines(file, first_line - 1, path, cover)
        if not file.peek(1):  # type: ignore[attr-defined]  # opened for reading, it has a buffer to look into
            if first_line == 1:
                return "(The file is empty.)"
            raise ToolError(f"{path!r} has fewer than {first_line} lines.")
        left = from_byte
        while left > 0:
            raw = file.readline(min(left, 1_000_000))
            if not raw or raw.endswith(b"\n"):
                raise ToolError(f"Line {first_line} of {path!r} has fewer than {from_byte} bytes.")
            left -= len(raw)
        return _render_lines(_lines(file), first_line, count, from_byte, cover)


def _skip_lines(file: BinaryIO, lines: int, path: str, cover: KeyCover) -> None:
    while lines > 0:
        raw = file.readline(1_000_000)
        if not raw:
            return
        cover.covers(raw)
        lines -= raw.endswith(b"\n")
        if file.tell() > SCANNED_BYTES:
            raise ToolError(f"{path!r} is too large to read that far into it. Use search_files to find the place.")


def _lines(file: BinaryIO) -> Iterator[_FileLine]:
    """Lines without their ends, each cut where it gets unreadably long, in bounded memory."""
    while raw := file.readline(LINE_BYTES):
        rest = raw
        is_cut = False
        while rest and not rest.endswith(b"\n"):  # the rest of a long line
            rest = file.readline(1_000_000)
            is_cut = is_cut or bool(rest.rstrip(b"\r\n"))
        yield _FileLine(_whole_characters(raw) if is_cut else raw.rstrip(b"\r\n"), is_cut)


def _whole_characters(raw: bytes) -> bytes:
    """Without the beginning of a character whose other bytes were cut off."""
    for back in range(1, min(4, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 != 0x80:  # the first byte of a character says how many follow it
            length = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw if length <= back else raw[:-back]
    return raw


def _render_lines(lines: Iterator[_FileLine], first_line: int, count: int, from_byte: int, cover: KeyCover) -> str:
    shown: list[str] = []
    notes: list[str] = []
    size, is_damaged = 0, False
    for number, line in enumerate(lines, first_line):
        skipped = from_byte if number == first_line else 0
        text = (HIDDEN_LINE if cover.covers(line.raw) else line.raw).decode("utf-8", "replace")
        if number == 1 and not skipped:
            text = text.removeprefix("\ufeff")
        if number - first_line == count or size + len(line.raw) > SHOWN_BYTES:
            notes.append(f"[More lines follow: call again with first_line={number}.]")
            break
        size += len(line.raw)
        is_damaged = is_damaged or "\ufffd" in text
        end = f" […: call with first_line={number}, from_byte={skipped + len(line.raw)}]" if line.is_cut else ""
        shown.append(f"{number}\t{text}{end}")
    if is_damaged:
        notes.append("[Bytes that are no UTF-8 text are shown as \ufffd.]")
    return "\n".join([*shown, *notes])
