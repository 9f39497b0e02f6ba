"""web_extract: read a web page or a PDF."""

from __future__ import annotations

from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.schema import tool
from hermes.agent.web.reader import TYPES, DocumentReader, Readable
from hermes.agent.web.safe_http import GuardedWeb
from hermes.agent.web.untrusted import framed, one_line
from hermes.core.errors import ToolError
from hermes.core.roles import PersonRole

# Below the toolbox's own limit, so that the end of the frame is never cut off.
PIECE_BYTES = 40_000


@tool(toolset="web", seconds=150, is_at_hand=True, is_personal=False)
async def web_extract(ctx: ToolContext, url: str, first_char: int = 0) -> str:
    """Read a web page, a text, JSON or a PDF from the internet as plain text with its links.

    A long text comes in pieces: call again with the `first_char` that the end of a piece names.
    """
    if first_char < 0:
        raise ToolError("'first_char' starts at 0.")
    reader = ctx.parts.get(DocumentReader)
    key = (ctx.session_id or str(ctx.session_key), f"{ctx.person_id} {url.strip()}")
    known = reader.kept.get(key) if first_char else None  # the beginning is always read anew
    if known is None:
        is_owner = ctx.role is PersonRole.OWNER
        fetched = await ctx.parts.get(GuardedWeb).fetch(url, types=TYPES, is_owner=is_owner)
        readable = await reader.read(fetched, ctx.started_group)
        if len(readable.text) > PIECE_BYTES // 4:  # it may take more than one piece
            reader.kept.put(key, fetched, readable)
    else:
        fetched, readable = known
    return piece_of(readable, fetched.url, first_char)


def piece_of(readable: Readable, url: str, first_char: int) -> str:
    """One piece of a text in its frame, with what comes before and after it said in words."""
    text = readable.text
    if not text.strip():
        return f"{one_line(url)} has no text to read. {readable.note}".strip()
    if first_char >= len(text):
        raise ToolError(f"The text ends at character {len(text)}; first_char={first_char} is beyond it.")
    piece = text[first_char : first_char + PIECE_BYTES].encode()[:PIECE_BYTES].decode("utf-8", "ignore")
    end = first_char + len(piece)
    source = f"{url} (“{one_line(readable.title)}”)" if readable.title else url
    lines = [framed(piece, source)]
    if end < len(text):
        lines.append(f"[Characters {first_char} to {end} of {len(text)}: to read on, call with first_char={end}.]")
    if readable.note:
        lines.append(f"[{readable.note}]")
    return "\n".join(lines)
