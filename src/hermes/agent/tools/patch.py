"""patch: replace parts of a file."""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Sequence

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.tools.write_file import WRITE_BYTES, as_bytes
from hermes.agent.workspace.checkpoints import Checkpoints, FileChange
from hermes.agent.workspace.edits import Edit, apply
from hermes.agent.workspace.files import File
from hermes.agent.workspace.sensitive import ask_for_sensitive
from hermes.core.errors import ToolError

MAX_EDITS = 50
SHOWN_LINES = 60
SHOWN_CHARACTERS = 300
COMPARED_LINES = 20_000
MAX_PAIRS = 200_000


def ask_first(ctx: ToolContext, path: str, edits: list[Edit]) -> ApprovalNeed | None:  # noqa: ARG001 - the arguments
    return ask_for_sensitive(ctx, path)


@tool(toolset="files", approval=ask_first)
async def patch(ctx: ToolContext, path: str, edits: list[Edit]) -> str:
    """Change parts of a text file in the workspace.

    Each edit puts `new` in the place of `old`. `old` must be in the file exactly once, letter by letter, without the
    line numbers of read_file; add lines around it until that is so, or set `all` to change every occurrence. The
    edits are made one after the other, all of them or none. The user can take the change back with /rollback.
    """
    if not 1 <= len(edits) <= MAX_EDITS:
        raise ToolError(f"'edits' takes 1 to {MAX_EDITS} edits.")
    for edit in edits:
        as_bytes(edit.old, "old")
        as_bytes(edit.new, "new")

    def make(before: File | None) -> bytes:
        return changed(before, edits, path)

    change = await ctx.parts.get(Checkpoints).change(ctx, "patch", path, make, repeats=True)
    shown = ctx.relative_path(change.target)
    if change.is_repeat:
        return f"Changed {shown!r}. (That was done before a restart.)"
    return f"Changed {shown!r}:\n{await asyncio.to_thread(_difference, change)}"


def changed(before: File | None, edits: list[Edit], path: str) -> bytes:
    """The file after the edits; ToolError when one does not fit. Bytes that are no text stay as they are."""
    if before is None:
        raise ToolError(f"There is no file {path!r}. To make one, use write_file.")
    if b"\0" in before.data:
        raise ToolError(f"{path!r} is not a text file.")
    if len(before.data) > WRITE_BYTES:
        raise ToolError(f"{path!r} is too large to change ({len(before.data):,} bytes; at most {WRITE_BYTES:,}).")
    text = before.data.decode("utf-8", "surrogateescape")
    after = apply(text, edits, where=repr(path), most=WRITE_BYTES).encode("utf-8", "surrogateescape")
    if len(after) > WRITE_BYTES:
        raise ToolError(f"{path!r} would become too large ({len(after):,} bytes; at most {WRITE_BYTES:,}).")
    return after


def _difference(change: FileChange) -> str:
    """What changed, in the usual form, without the two lines that only name the file."""
    before = change.before.data if change.before else b""
    old, new = (data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n") for data in (before, change.after))
    if len(old) + len(new) > COMPARED_LINES or _pairs(old, new) > MAX_PAIRS:
        return f"{len(before):,} bytes became {len(change.after):,}."
    lines = [line[:SHOWN_CHARACTERS] for line in list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]]
    more = len(lines) - SHOWN_LINES
    return "\n".join(lines[:SHOWN_LINES]) + (f"\n[{more} more lines of changes]" if more > 0 else "")


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pairs of like lines a comparison would look at: with thousands of repeated lines it takes very long."""
    count = Counter(new)
    popular = len(new) // 100 + 1 if len(new) >= 200 else len(new)  # difflib itself leaves those out
    return sum(times for line in old if (times := count[line]) <= popular)
