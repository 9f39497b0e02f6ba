"""/sessions, /resume, /branch, /title, /history: a person's conversations."""

from __future__ import annotations

from hermes.core.durations import format_time
from hermes.core.i18n.en import Texts
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Role
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, command
from hermes.services.turns import StopReason
from hermes.store.db import Tx
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.sessions import Session

MAX_SESSIONS = 15
MAX_LINES = 40
LINE_LENGTH = 300
LAST = "last"
TITLE_LENGTH = 80


@command("sessions", summary="Your conversations, the newest first")
async def list_sessions(ctx: CommandContext) -> str:
    found, here = await ctx.services.db.read(_mine, ctx.person.id, ctx.lane)
    if not found:
        return ctx.words.SESSIONS_NONE_HERE if _is_shared(ctx.lane) else ctx.words.SESSIONS_NONE
    lines = [_line(ctx.words, number, session, here) for number, session in enumerate(found, 1)]
    return "\n".join([*lines, ctx.words.SESSIONS_HOW])


@command("resume", summary="Continue an earlier conversation here", usage="/resume [NUMBER|last|TITLE|ID]")
async def resume(ctx: CommandContext) -> str:
    if not ctx.rest:
        return await list_sessions(ctx)
    found, here = await ctx.services.db.read(_mine, ctx.person.id, ctx.lane)
    if ctx.rest.lower() == LAST:
        wanted = await ctx.services.db.read(_last_one, ctx.lane, found, here)
    else:
        wanted = await ctx.services.db.read(_named, ctx.rest, ctx.person.id, ctx.lane, found)
    if wanted is None:
        return ctx.words.RESUME_UNKNOWN.format(name=one_line(ctx.rest, 60))
    if wanted.id == here:
        return ctx.words.RESUME_HERE
    if await ctx.services.db.read(sessions.is_busy, wanted.id):
        return ctx.words.RESUME_BUSY
    await ctx.services.lanes.stop(ctx.lane, StopReason.RENEWED, up_to=ctx.seq)
    await ctx.services.db.write(sessions.switch, ctx.lane, wanted.id, now=ctx.services.clock.now())
    return ctx.words.RESUMED.format(title=_title(ctx.words, wanted), lines=ctx.words.lines(wanted.seq))


@command("branch", summary="Continue with a copy of this conversation", usage="/branch [TITLE]")
async def branch(ctx: CommandContext) -> str:
    # The event's own id names the copy: acted on twice, after a crash, it is made once.
    copy_id = f"s_{ctx.event_id.removeprefix('ev_')}"
    made = await ctx.services.db.write(
        _branch, ctx.lane, copy_id, one_line(ctx.rest, TITLE_LENGTH), now=ctx.services.clock.now()
    )
    if not made:
        return ctx.words.BRANCH_NOTHING
    return ctx.words.BRANCHED.format(lines=ctx.words.lines(made))


@command("title", summary="Give this conversation a name", usage="/title [TITLE]")
async def title(ctx: CommandContext) -> str:
    session = await ctx.services.db.read(sessions.current, ctx.lane)
    if session is None:
        return ctx.words.TITLE_NONE
    if not ctx.rest:
        return ctx.words.TITLE_IS.format(title=_title(ctx.words, session))
    name = one_line(ctx.rest, TITLE_LENGTH)
    await ctx.services.db.write(sessions.rename, session.id, name)
    return ctx.words.TITLE_SET.format(name=name)


@command("history", summary="The last lines of this conversation", usage="/history [LINES]")
async def history(ctx: CommandContext) -> str:
    count = int(ctx.rest) if ctx.rest.isdecimal() and len(ctx.rest) < 4 else 10
    count = max(1, min(count, MAX_LINES))
    lines = await ctx.services.db.read(_last_lines, ctx.words, ctx.lane, count)
    return "\n".join(lines) or ctx.words.HISTORY_NONE


def _mine(tx: Tx, person_id: str, lane: str) -> tuple[list[Session], str]:
    """What this person can take up here, and what goes on here now.

    In a talk that several share, those are its own earlier sessions: nobody's private ones are brought into it.
    """
    here = sessions.current(tx, lane)
    if _is_shared(lane):
        found = sessions.newest(tx, key=lane, limit=MAX_SESSIONS)
    else:
        found = sessions.of_person(tx, person_id, limit=MAX_SESSIONS)
        if here is not None and here.seq and here.id not in {session.id for session in found}:
            found = [here, *found][:MAX_SESSIONS]  # a copy in which nothing was said yet
    return found, here.id if here is not None else ""


def _is_shared(lane: str) -> bool:
    key = SessionKey.parse(lane)
    return key.kind is not ChatKind.DM and not key.person


def _last_one(tx: Tx, lane: str, shown: list[Session], here: str) -> Session | None:
    """The one that was here before, else the newest other one."""
    mine = {session.id for session in shown}
    before = [session for session in sessions.newest(tx, key=lane, limit=MAX_SESSIONS) if session.id in mine] or shown
    return next((session for session in before if session.id != here), None)


def _named(tx: Tx, name: str, person_id: str, lane: str, shown: list[Session]) -> Session | None:
    """By the number in the list, else by id, its beginning or the title: among what can be taken up here."""
    if name.isdecimal() and len(name) < 4:
        return shown[int(name) - 1] if 0 < int(name) <= len(shown) else None
    found = sessions.find(tx, name)
    if _is_shared(lane):
        return next((session for session in found if session.key == lane), None)
    return next((session for session in found if sessions.belongs_to(tx, session.id, person_id)), None)


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


def _last_lines(tx: Tx, words: Texts, lane: str, count: int) -> list[str]:
    here = sessions.current(tx, lane)
    if here is None:
        return []
    spoken = [m for m in transcripts.history(tx, here.id) if m.role in (Role.USER, Role.ASSISTANT) and m.text.strip()]
    forms = {Role.USER: words.HISTORY_YOU, Role.ASSISTANT: words.HISTORY_ME}
    return [forms[m.role].format(text=one_line(m.text, LINE_LENGTH)) for m in spoken[-count:]]


def _line(words: Texts, number: int, session: Session, here: str) -> str:
    day = format_time("%Y-%m-%d %H:%M", session.updated_at)
    mark = words.SESSIONS_HERE if session.id == here else ""
    title = _title(words, session)
    return words.SESSIONS_LINE.format(number=number, title=title, lines=words.lines(session.seq), day=day) + mark


def _title(words: Texts, session: Session) -> str:
    return words.SESSION_TITLE.format(title=one_line(session.title, TITLE_LENGTH)) if session.title else session.id
