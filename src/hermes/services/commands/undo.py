"""/undo: take back the last exchanges, or the compression that came after them."""

from __future__ import annotations

from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.store import rewind, sessions
from hermes.store.rewind import Undone

MOST = 100
USAGE = "/undo [N]"
BUSY = "I'm still at work here. /stop first, then /undo."
NOTHING = "There is nothing here to take back."
REVISION = "The compression is taken back: I read all the lines again. /undo once more takes back the last exchange."
ONE = "Taken back: “{text}” and what came of it. I act as if it had not been said; what was done stays done."
SEVERAL = "Taken back: the last {count} exchanges, from “{text}” on. I act as if they had not been said."


@command("undo", summary="Take back the last exchange, or N of them", usage=USAGE)
async def undo(ctx: CommandContext) -> str:
    given = ctx.rest.strip()
    if given and not (given.isascii() and given.isdigit() and 1 <= int(given[:6]) <= MOST):
        return f"I did not understand that. {USAGE}: how many exchanges to take back, 1 to {MOST}."
    session_id = await ctx.db.read(sessions.of_lane, ctx.lane)
    if not session_id:
        return NOTHING
    count = int(given or 1)
    undone = await ctx.db.write(rewind.undo, session_id, count=count, asked=ctx.event_id, now=ctx.clock.now())
    return _told(undone)


def _told(undone: Undone) -> str:
    if undone.is_busy:
        return BUSY
    if undone.revision:
        return REVISION
    text = one_line(undone.text, 80)
    if undone.exchanges == 1:
        return ONE.format(text=text)
    return SEVERAL.format(count=undone.exchanges, text=text) if undone.exchanges else NOTHING
