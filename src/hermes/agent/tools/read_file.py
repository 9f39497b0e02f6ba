"""The tool that reads a file."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from hermes.agent.toolkit import ToolContext, tool
from hermes.core.errors import ToolError

MOST_LINES = 2000
LINE_BYTES = 4000


@tool(toolset="files")
async def read_file(ctx: ToolContext, path: str, first_line: int = 1, count: int = 200) -> str:
    """Read lines of a text file in the workspace.

    Returns numbered lines. For a long file, call again with a later `first_line`; `count` is at most 2000.
    """
    if first_line < 1 or not 1 <= count <= MOST_LINES:
        raise ToolError(f"'first_line' starts at 1, and 'count' is 1 to {MOST_LINES}.")
    return await asyncio.to_thread(_read, ctx, path, first_line, count)


def _read(ctx: ToolContext, path: str, first_line: int, count: int) -> str:
    with _open(ctx.inside(path), path) as file:
        if b"\0" in file.read(8192):
            raise ToolError(f"{path!r} is not a text file.")
        file.seek(0)
        chosen = list(islice(_lines(file), first_line - 1, first_line + count))  # one more, to know whether more follow
    if not chosen and first_line == 1:
        return "(The file is empty.)"
    if not chosen:
        raise ToolError(f"{path!r} has fewer than {first_line} lines.")
    shown = [f"{number}\t{line}" for number, line in enumerate(chosen[:count], first_line)]
    if len(chosen) > count:
        shown.append(f"[More lines follow: call again with first_line={first_line + count}.]")
    return "\n".join(shown)


def _open(target: Path, path: str) -> BinaryIO:
    try:
        # The path is resolved by now: a link here was put in between. A pipe must not make us wait.
        handle = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ToolError(f"There is no file {path!r}. Use search_files to see what exists.") from None
        raise ToolError(f"{path!r} cannot be read: {error.strerror}.") from error
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path!r} is a folder. Use search_files with kind 'names' to see what is in it.")
    raise ToolError(f"{path!r} is not a regular file.")


def _lines(file: BinaryIO) -> Iterator[str]:
    """Lines without their ends, each cut where it gets unreadably long, in bounded memory."""
    is_first = True
    while raw := file.readline(LINE_BYTES):
        line = raw.decode("utf-8-sig" if is_first else "utf-8", "replace").rstrip("\r\n")
        is_first = False
        is_cut = False
        while raw and not raw.endswith(b"\n"):  # the rest of a long line
            raw = file.readline(1_000_000)
            is_cut = is_cut or bool(raw)
        yield f"{line} […]" if is_cut else line
