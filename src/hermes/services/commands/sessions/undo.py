"""/undo: take back the last exchanges, or the compression after them."""

from __future__ import annotations

from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.store.sessions import sessions
from hermes.store.sessions import undo as rewind

MAX_EXCHANGES = 100
USAGE = "/undo [N]"


@command("undo", summary="Undo the last exchange, or the last N", usage=USAGE)
async def undo(ctx: CommandContext) -> str:
    given = ctx.rest.strip()
    if given and not (given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= MAX_EXCHANGES):
        return ctx.words.UNDO_UNREAD.format(usage=USAGE, most=MAX_EXCHANGES)
    session_id = await ctx.services.db.read(sessions.of_lane, ctx.lane)
    if not session_id:
        return ctx.words.UNDO_NOTHING
    count = int(given or 1)
    undone = await ctx.services.db.write(
        rewind.undo, session_id, count=count, asked=ctx.event_id, now=ctx.services.clock.now()
    )
    if undone.is_busy:
        return ctx.words.UNDO_BUSY
    if undone.revision:
        return ctx.words.UNDO_REVISION
    text = one_line(undone.text, 80)
    if undone.exchanges == 1:
        return ctx.words.UNDO_ONE.format(text=text)
    if not undone.exchanges:
        return ctx.words.UNDO_NOTHING
    return ctx.words.UNDO_SEVERAL.format(count=undone.exchanges, text=text)
