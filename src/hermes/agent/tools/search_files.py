"""search_files: find files by name or content."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import stat
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Literal

from hermes.agent.backends.process_groups import let_go
from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.tools import search_walk
from hermes.agent.workspace.files import NoFileError, place_of, read_inside
from hermes.agent.workspace.sensitive import HIDDEN_LINE, KeyCover, ask_for_keys
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError

Kind = Literal["text", "names"]
MAX_RESULTS = 200
SEARCH_SECONDS = 20.0


def ask_first(ctx: ToolContext, path: str = ".", **_: str | int) -> ApprovalNeed | None:
    return ask_for_keys(ctx, path)


@tool(toolset="files", approval=ask_first)
async def search_files(
    ctx: ToolContext, pattern: str, path: str = ".", kind: Kind = "text", files: str = "*", limit: int = 50
) -> str:
    """Search files in the workspace, by what is in them or by their names.

    With kind "text", `pattern` is a regular expression, looked for in every line of the files whose names fit the
    glob `files` (like "*.py"); upper and lower case are the same unless the pattern has upper case.
    With kind "names", `pattern` is a glob for file names, or a part of a name.
    `path` is the folder or file to search. Hidden files, links and files over 5 MB are left out.
    """
    if not 1 <= limit <= MAX_RESULTS:
        raise ToolError(f"'limit' is 1 to {MAX_RESULTS}.")
    root = await asyncio.to_thread(_root, ctx, path)
    names = files if kind == "text" else pattern if set(pattern) & set("*?[") else f"*{pattern}*"
    search = ripgrep(kind, pattern, names, root, ctx.closed) or walk(kind, pattern, names, root, ctx.closed)
    found, end = await collect(ctx, search, limit)
    if not found:
        return f"Nothing found for {pattern!r} in {path!r}. {end}".rstrip()
    return "\n".join([*found, end] if end else found)


def _root(ctx: ToolContext, path: str) -> Path:
    root = ctx.inside(path)
    if not root.exists():
        raise ToolError(f"There is no file or folder {path!r}.")
    if not root.is_dir() and not root.is_file():
        raise ToolError(f"{path!r} is neither a regular file nor a folder.")  # a pipe would never come to its end
    return root


@dataclass(frozen=True, slots=True)
class SearchCommand:
    """A command, and the folder to run it in: what it prints is relative to that."""

    command: tuple[str, ...]
    folder: Path


def walk(kind: Kind, pattern: str, names: str, root: Path, skipped: Sequence[Path]) -> SearchCommand:
    """The search with Python alone."""
    command = (sys.executable, "-I", search_walk.__file__, kind, pattern, names, str(root), *map(str, skipped))
    return SearchCommand(command, _folder_of(root))


def ripgrep(kind: Kind, pattern: str, names: str, root: Path, skipped: Sequence[Path]) -> SearchCommand | None:
    """The search that finds the same, faster; None where ripgrep is not installed."""
    program = shutil.which("rg")
    if program is None:
        return None
    folder = _folder_of(root)
    # No config: it could name a program to run on every file. No ignore files: both ways find the same.
    command = [program, "--no-config", "--no-ignore", "--no-messages", "--color=never", "--sort=path"]
    command += [f"--max-filesize={search_walk.FILE_BYTES}"]
    command += [] if names == "*" else [f"--iglob={names}", "--glob=!.*"]  # a glob would bring hidden files back
    command += [f"--glob=!{bulky}" for bulky in search_walk.BULKY_FOLDERS]
    command += [f"--glob=!/{_glob_escape(inner)}" for place in skipped if (inner := _under(place, folder))]
    if kind == "names":
        return SearchCommand((*command, "--files", "--", _start(root)), folder)
    command += ["--smart-case", "--line-number", "--with-filename", "--no-heading", "--null"]
    command += [
        f"--max-count={search_walk.PER_FILE}",
        "--max-columns=1",
        "--max-columns-preview",
    ]  # only the place counts
    return SearchCommand((*command, "--", pattern, _start(root)), folder)


def _folder_of(root: Path) -> Path:
    return root if root.is_dir() else root.parent


def _start(root: Path) -> str:
    return "." if root.is_dir() else f"./{root.name}"


def _under(place: Path, folder: Path) -> str:
    place = place.resolve()
    return str(place.relative_to(folder)) if place != folder and place.is_relative_to(folder) else ""


def _glob_escape(text: str) -> str:
    return "".join(f"[{char}]" if char in "*?[{" else f"\\{char}" if char in "]}\\!" else char for char in text)


async def collect(
    ctx: ToolContext, search: SearchCommand, limit: int, seconds: float = SEARCH_SECONDS
) -> tuple[list[str], str]:
    """Up to ``limit`` results as the model should see them, and a note when that is not all."""
    found: list[str] = []
    reader = _MatchRenderer(ctx, search.folder)
    try:
        async with asyncio.timeout(seconds), aclosing(_lines(ctx, search)) as lines:
            async for line in lines:
                if shown := await asyncio.to_thread(reader.render_match, line):
                    if len(found) == limit:
                        return found, f"[More than {limit} results: narrow the pattern, the path or `files`.]"
                    found.append(shown)
    except TimeoutError:
        return found, f"[Stopped after {seconds:g} s: not everything was searched. Name a smaller folder.]"
    return found, ""


async def _lines(ctx: ToolContext, search: SearchCommand) -> AsyncGenerator[str, None]:
    process = await asyncio.create_subprocess_exec(
        *search.command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=search.folder, start_new_session=True
    )
    try:
        if ctx.started_group is not None:
            await ctx.started_group(process.pid)
        assert process.stdout is not None  # noqa: S101 - it is a pipe: we asked for it
        async for raw in process.stdout:
            yield raw.decode("utf-8", "surrogateescape").rstrip("\n")
        assert process.stderr is not None  # noqa: S101 - as above
        complaint = (await process.stderr.read(2000)).decode("utf-8", "replace").strip()
        # ripgrep: 1 means that nothing matched. Python ends with 1 when the pattern is wrong, and says why.
        if await process.wait() != 0 and complaint:
            raise ToolError(f"The search failed: {complaint[-500:]}")
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, signal.SIGKILL)
        await let_go(process)


class _MatchRenderer:
    """Shows what was found. The search only says where: what is shown is read again, through the guarded way.

    A search opens files by their paths, and somebody could put a link in one for just that moment.
    """

    def __init__(self, ctx: ToolContext, folder: Path) -> None:
        self._ctx = ctx
        self._folder = folder
        self._path = ""
        self._lines: list[bytes] = []

    def render_match(self, line: str) -> str:
        """``path:line: text`` with the path as the model may use it; '' for what is not for this person."""
        path, _, rest = line.partition("\0")
        try:
            target = self._ctx.inside(str(self._folder / path))
            if not rest:
                with place_of(self._ctx, str(target)) as place:
                    found = place.look()
                is_file = found is not None and stat.S_ISREG(found.st_mode)
                return self._ctx.relative_path(target) if is_file else ""
            number = rest.partition(":")[0]
            return f"{self._ctx.relative_path(target)}:{number}: {self._line(str(target), int(number))}"
        except ToolError:
            return ""

    def _line(self, path: str, number: int) -> str:
        if path != self._path:  # results come file by file
            cover, raw = KeyCover(), read_inside(self._ctx, path, search_walk.FILE_BYTES).data.split(b"\n")
            self._path, self._lines = path, [HIDDEN_LINE if cover.covers(line) else line for line in raw]
        if number > len(self._lines):
            raise NoFileError(f"{path!r} has no line {number} any more.")
        return self._lines[number - 1].decode("utf-8", "replace").strip()[: search_walk.SHOWN_CHARACTERS]
