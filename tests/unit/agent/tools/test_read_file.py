"""read_file shows numbered lines, and says what to do when it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.tools.read_file import read_file
from hermes.agent.tools.search_files import search_files
from hermes.core.errors import ToolError


async def test_lines_are_numbered(context: ToolContext) -> None:
    assert await read_file(context, "notes/plan.txt") == "1\tfirst\n2\tsecond\n3\tthird"


async def test_long_file_is_read_in_parts_and_says_how_to_go_on(context: ToolContext) -> None:
    assert await read_file(context, "notes/plan.txt", count=2) == (
        "1\tfirst\n2\tsecond\n[More lines follow: call again with first_line=3.]"
    )
    assert await read_file(context, "notes/plan.txt", first_line=3, count=2) == "3\tthird"


async def test_long_line_is_cut_and_the_next_one_keeps_its_number(workspace: Path, context: ToolContext) -> None:
    (workspace / "wide.txt").write_text("x" * 3_000_000 + "\r\nnext\r\nlast, without an end")
    first, second, third = (await read_file(context, "wide.txt")).splitlines()
    assert first == "1\t" + "x" * 4000 + " […: call with first_line=1, from_byte=4000]"
    assert (second, third) == ("2\tnext", "3\tlast, without an end")


async def test_a_very_long_line_is_read_on_and_no_character_is_torn(workspace: Path, context: ToolContext) -> None:
    line = "ab€" * 3000 + "end"
    (workspace / "wide.txt").write_text(f"{line}\nnext\n")
    pieces: list[str] = []
    at: int | None = 0
    while at is not None:
        first, *_ = (await read_file(context, "wide.txt", from_byte=at)).splitlines()
        piece, _, more = first.removeprefix("1\t").partition(" […: call with first_line=1, from_byte=")
        pieces.append(piece)
        at = int(more.rstrip("]")) if more else None
    assert "".join(pieces) == line
    assert len(pieces) == 4
    with pytest.raises(ToolError, match=r"Line 2 of 'wide.txt' has fewer than 9 bytes"):
        await read_file(context, "wide.txt", first_line=2, from_byte=9)


async def test_more_than_fits_into_a_result_ends_with_how_to_read_on(workspace: Path, context: ToolContext) -> None:
    (workspace / "long.txt").write_text("".join(f"{number:>99}\n" for number in range(1, 1001)))
    *shown, note = (await read_file(context, "long.txt", count=1000)).splitlines()
    assert len(shown) < 450
    assert note == f"[More lines follow: call again with first_line={len(shown) + 1}.]"
    again = await read_file(context, "long.txt", first_line=len(shown) + 1, count=1)
    assert again.startswith(f"{len(shown) + 1}\t")


async def test_bytes_that_are_no_text_are_told_or_replaced(workspace: Path, context: ToolContext) -> None:
    (workspace / "picture.png").write_bytes(b"\x89PNG\0\0")
    (workspace / "latin.txt").write_bytes(b"caf\xe9\n")
    (workspace / "marked.txt").write_bytes(b"\xef\xbb\xbfhello\n")
    with pytest.raises(ToolError, match="not a text file"):
        await read_file(context, "picture.png")
    told = "1\tcaf\ufffd\n[Bytes that are no UTF-8 text are shown as \ufffd.]"
    assert await read_file(context, "latin.txt") == told
    assert await read_file(context, "marked.txt") == "1\thello"


async def test_empty_file_and_a_place_behind_the_end_are_told(workspace: Path, context: ToolContext) -> None:
    (workspace / "empty.txt").touch()
    assert await read_file(context, "empty.txt") == "(The file is empty.)"
    with pytest.raises(ToolError, match="fewer than 9 lines"):
        await read_file(context, "notes/plan.txt", first_line=9)


@pytest.mark.parametrize(
    "path,told",
    [
        ("notes/nothing.txt", "There is no file 'notes/nothing.txt'. Use search_files"),
        ("notes/plan.txt/deeper", "There is no file"),
        ("notes", "is a folder. Use search_files with kind 'names'"),
        ("x" * 5000, "cannot be read: File name too long"),
        ("pipe", "is not a regular file"),
        ("../outside.txt", "outside the workspace"),
        ("hermes/.env", "closed to tools"),
    ],
)
async def test_what_cannot_be_read_is_told(workspace: Path, context: ToolContext, path: str, told: str) -> None:
    os.mkfifo(workspace / "pipe")  # opening it plainly would wait for a writer for ever
    with pytest.raises(ToolError, match=told):
        await read_file(context, path)


@pytest.mark.parametrize("first_line,count", [(0, 10), (1, 0), (1, 5000)])
async def test_numbers_out_of_range_are_told(context: ToolContext, first_line: int, count: int) -> None:
    with pytest.raises(ToolError, match="starts at 1"):
        await read_file(context, "notes/plan.txt", first_line, count)


async def test_no_line_of_a_private_key_is_shown_by_itself(workspace: Path, context: ToolContext) -> None:
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBg", "kqhkiG9w0BAQEF", "-----END PRIVATE KEY-----"]
    (workspace / "server.txt").write_text("\n".join(["before", *key, "after"]))
    assert await read_file(context, "server.txt", first_line=3, count=1) == (
        "3\t[hidden: a private key]\n[More lines follow: call again with first_line=4.]"
    )
    assert await read_file(context, "server.txt", first_line=5) == "5\t[hidden: a private key]\n6\tafter"
    assert await search_files(context, "kqhkiG9w|after") == "server.txt:4: [hidden: a private key]\nserver.txt:6: after"
