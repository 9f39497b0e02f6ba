"""/compress: make this conversation shorter now."""

from __future__ import annotations

import asyncio

from hermes.core.keys import SessionKey
from hermes.services.commands.base import CommandContext, command
from hermes.services.compression import Compressed, Compression
from hermes.store import sessions

PATIENCE_SECONDS = 2.0
"""So long the answer waits for the summary: what is written after the command waits with it."""

PREVIEW = "--preview"
NOTHING_YET = "There is nothing here to make shorter yet."
AT_IT = "I'm at it and will tell you. Go on writing, nothing waits for it."
NOT_DONE = "I left the conversation as it is. {reason}"
DONE = (
    "{lines} lines ({before:,} characters) → {after:,} characters. From now on I read the summary in their place. "
    "The lines are kept: /undo brings them back."
)
WOULD = (
    "{lines} lines ({before:,} characters) → {after:,} characters. Nothing is changed. I would read this:\n\n{summary}"
)


@command("compress", summary="Make this conversation shorter for me", usage=f"/compress [{PREVIEW}]")
async def compress(ctx: CommandContext) -> str:
    given = ctx.rest.strip().lower()
    if given not in ("", PREVIEW, PREVIEW.strip("-"), "—preview"):  # phones make one dash of two
        return f"I did not understand that. /compress makes it shorter, /compress {PREVIEW} shows how it would be."
    session_id = await ctx.db.read(sessions.of_lane, ctx.lane)
    if not session_id:
        return NOTHING_YET
    service = ctx.parts.get(Compression)
    work = service.begin(SessionKey.parse(ctx.lane), session_id, is_preview=bool(given))
    await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
    if work.done():
        return _told(work)
    service.tell_when_done(work, ctx.session_key.target, _told)
    return AT_IT


def _told(work: asyncio.Task[Compressed]) -> str:
    if work.cancelled():
        return NOT_DONE.format(reason="I am about to stop.")
    if (error := work.exception()) is not None:
        return NOT_DONE.format(reason=error)
    made = work.result()
    words = DONE if made.revision else WOULD
    return words.format(lines=made.lines, before=made.characters, after=len(made.summary), summary=made.summary)
