"""/compress: shorten this conversation now."""

from __future__ import annotations

import asyncio

from hermes.core.i18n.catalogue import localize
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.services.commands.base import CommandContext, command
from hermes.services.turns.compression import Compressed, Compression
from hermes.store.sessions import sessions

PATIENCE_SECONDS = 2.0
"""So long the answer waits for the summary: what is written after the command waits with it."""

PREVIEW = "--preview"


@command("compress", summary="Make this conversation shorter for me", usage=f"/compress [{PREVIEW}]")
async def compress(ctx: CommandContext) -> str:
    given = ctx.rest.strip().lower()
    if given not in ("", PREVIEW, PREVIEW.strip("-"), "—preview"):  # phones make one dash of two
        return ctx.words.COMPRESS_UNREAD
    session_id = await ctx.services.db.read(sessions.of_lane, ctx.lane)
    if not session_id:
        return ctx.words.COMPRESS_NOTHING
    service = ctx.parts.get(Compression)
    work = service.begin(SessionKey.parse(ctx.lane), session_id, is_preview=bool(given))
    await asyncio.wait({work}, timeout=PATIENCE_SECONDS)
    if work.done():
        return _describe_result(ctx.words, work)
    service.tell_when_done(work, ctx.session_key.target, lambda done: _describe_result(ctx.words, done))
    return ctx.words.COMPRESS_AT_IT


def _describe_result(words: Texts, work: asyncio.Task[Compressed]) -> str:
    if work.cancelled():
        return words.COMPRESS_NOT_DONE.format(reason=words.COMPRESS_STOPPING)
    if (error := work.exception()) is not None:
        return words.COMPRESS_NOT_DONE.format(reason=localize(error, words))
    made = work.result()
    form = words.COMPRESS_DONE if made.revision else words.COMPRESS_WOULD
    return form.format(
        lines=words.lines(made.lines), before=made.characters, after=len(made.summary), summary=made.summary
    )
