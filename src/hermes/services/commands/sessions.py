"""/sessions, /resume, /branch, /title, /history: the conversations of this person, and which of them goes on here."""

from __future__ import annotations

import time

from hermes.core.messages import Role
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.turns import StopReason
from hermes.store import sessions
from hermes.store.db import Tx
from hermes.store.sessions import Session

MOST = 15
MOST_LINES = 40
LINE_LENGTH = 300
TITLE_LENGTH = 80


@command("sessions", summary="Your conversations, the newest first")
async def list_sessions(ctx: CommandContext) -> str:
    found, here = await ctx.db.read(_mine, ctx.person.id, ctx.lane)
    if not found:
        return "There is no conversation of yours yet. Just write to me."
    lines = [_line(number, session, here) for number, session in enumerate(found, 1)]
    return "\n".join([*lines, "/resume NUMBER takes one up here; /branch goes on with a copy of this one."])


@command("resume", summary="Take up an earlier conversation here", usage="/resume [NUMBER|TITLE|ID]")
async def resume(ctx: CommandContext) -> str:
    if not ctx.rest:
        return await list_sessions(ctx)
    found, here = await ctx.db.read(_mine, ctx.person.id, ctx.lane)
    wanted = await ctx.db.read(_named, ctx.rest, ctx.person.id, found)
    if wanted is None:
        return f"You have no conversation {one_line(ctx.rest, 60)!r}. /sessions lists them."
    if wanted.id == here:
        return "That one is going on here already."
    if await ctx.db.read(sessions.is_busy, wanted.id):
        return "I am working in that conversation just now. Wait for it, or /stop it there."
    await ctx.lanes.stop(ctx.lane, StopReason.RENEWED, up_to=ctx.seq)
    await ctx.db.write(sessions.switch, ctx.lane, wanted.id, now=ctx.clock.now())
    return f"Taken up: {_title(wanted)}, {wanted.seq} lines. /history shows where we were."


@command("branch", summary="Go on with a copy of this conversation", usage="/branch [TITLE]")
async def branch(ctx: CommandContext) -> str:
    # The event's own id names the copy: acted on twice, after a crash, it is made once.
    copy_id = f"s_{ctx.event_id.removeprefix('ev_')}"
    made = await ctx.db.write(_branch, ctx.lane, copy_id, one_line(ctx.rest, TITLE_LENGTH), now=ctx.clock.now())
    if not made:
        return "There is nothing to branch off yet. Just write to me."
    return f"This is a copy now, {made} lines. The other one rests: /sessions lists both."


@command("title", summary="Give this conversation a name", usage="/title [TITLE]")
async def title(ctx: CommandContext) -> str:
    session = await ctx.db.read(sessions.current, ctx.lane)
    if session is None:
        return "There is no conversation here yet. Just write to me."
    if not ctx.rest:
        return f"This is {_title(session)}. /title NAME changes that."
    name = one_line(ctx.rest, TITLE_LENGTH)
    await ctx.db.write(sessions.rename, session.id, name)
    return f"This conversation is “{name}” now."


@command("history", summary="The last lines of this conversation", usage="/history [LINES]")
async def history(ctx: CommandContext) -> str:
    count = int(ctx.rest) if ctx.rest.isdecimal() and len(ctx.rest) < 4 else 10
    count = max(1, min(count, MOST_LINES))
    lines = await ctx.db.read(_last_lines, ctx.lane, count)
    return "\n".join(lines) or "Nothing was said here yet."


def _mine(tx: Tx, person_id: str, lane: str) -> tuple[list[Session], str]:
    here = sessions.current(tx, lane)
    return sessions.of_person(tx, person_id, limit=MOST), here.id if here is not None else ""


def _named(tx: Tx, name: str, person_id: str, shown: list[Session]) -> Session | None:
    """By the number in the list, else by id, its beginning or the title: among this person's own."""
    if name.isdecimal() and len(name) < 4:
        return shown[int(name) - 1] if 0 < int(name) <= len(shown) else None
    return next((one for one in sessions.find(tx, name) if sessions.belongs_to(tx, one.id, person_id)), None)


def _branch(tx: Tx, lane: str, copy_id: str, name: str, *, now: float) -> int:
    here = sessions.current(tx, lane)
    if here is None or here.seq == 0:
        return 0
    if here.id == copy_id:
        return here.seq
    sessions.fork(tx, here.id, copy_id, lane, title=name or here.title, up_to=here.seq, now=now)
    sessions.end(tx, here.id, reason="/branch", now=now)
    sessions.switch(tx, lane, copy_id, now=now)
    return here.seq


def _last_lines(tx: Tx, lane: str, count: int) -> list[str]:
    here = sessions.current(tx, lane)
    if here is None:
        return []
    spoken = [m for m in sessions.history(tx, here.id) if m.role in (Role.USER, Role.ASSISTANT) and m.text.strip()]
    return [f"{'You' if m.role is Role.USER else 'Me'}: {one_line(m.text, LINE_LENGTH)}" for m in spoken[-count:]]


def _line(number: int, session: Session, here: str) -> str:
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(session.updated_at))
    mark = " ← here" if session.id == here else ""
    return f"{number}. {_title(session)}, {session.seq} lines, {day}{mark}"


def _title(session: Session) -> str:
    return f"“{one_line(session.title, TITLE_LENGTH)}”" if session.title else session.id
