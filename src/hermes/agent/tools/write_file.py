"""write_file: write a whole file."""

from __future__ import annotations

from hermes.agent.toolkit.context import ApprovalNeed, ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.workspace.checkpoints import Checkpoints
from hermes.agent.workspace.files import File
from hermes.agent.workspace.sensitive import ask_for_sensitive
from hermes.core.errors import ToolError

WRITE_BYTES = 5_000_000


def ask_first(ctx: ToolContext, path: str, content: str) -> ApprovalNeed | None:  # noqa: ARG001 - the call's arguments
    return ask_for_sensitive(ctx, path)


@tool(toolset="files", approval=ask_first, is_at_hand=True)
async def write_file(ctx: ToolContext, path: str, content: str) -> str:
    """Write a text file in the workspace: `content` becomes all that is in it. Missing folders are made.

    To change a part of a file that exists, use patch. What was there before is kept: the user can take it back
    with /rollback.
    """
    data = as_bytes(content, "content")
    if len(data) > WRITE_BYTES:
        raise ToolError(
            f"'content' is {len(data):,} bytes; at most {WRITE_BYTES:,} can be written. Write several files."
        )

    def make(_: File | None) -> bytes:
        return data

    change = await ctx.parts.get(Checkpoints).change(ctx, "write_file", path, make)
    shown, lines = ctx.relative_path(change.target), len(content.splitlines())
    if change.before is None:
        return f"Made {shown!r}: {lines} lines, {len(data):,} bytes."
    if change.before.data == data:
        return f"{shown!r} holds exactly this now: {lines} lines, {len(data):,} bytes."
    return f"Replaced {shown!r}: {lines} lines, {len(data):,} bytes; it had {len(change.before.data):,}."


def as_bytes(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{name!r} holds half of a character (a lone surrogate). Nothing was written.") from None
