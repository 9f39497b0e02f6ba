"""/help, /commands, /status, /whoami, /version: describe the gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hermes
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.roles import PersonRole, at_least
from hermes.core.text import one_line
from hermes.services.commands.base import CommandContext, SlashCommand, command
from hermes.services.commands.settings.busy import meaning
from hermes.services.models import is_there, route_of
from hermes.store import chat_settings, inbox
from hermes.store.chat_settings import ChatSettings
from hermes.store.db import Tx
from hermes.store.sessions import sessions
from hermes.store.sessions.sessions import Session
from hermes.store.turns import lanes, turns

TITLE_LENGTH = 60

GROUPS: dict[str, tuple[str, ...]] = {
    "talk": ("new", "stop", "retry", "undo", "compress", "branch", "resume", "sessions", "title", "history"),
    "work": ("busy", "queue", "steer", "background", "agents", "verbose", "approve", "deny", "approvals"),
    "answers": ("model", "reasoning", "personality", "voice"),
    "abilities": ("tools", "skills", "memory", "rollback", "cron", "kanban"),
    "about": ("status", "usage", "budget", "whoami", "language", "version", "help", "commands"),
    "care": ("sethome", "platforms", "platform", "restart"),
}
"""Where each command stands in the list; one that stands nowhere comes last."""


@command("help", summary="What you can say to me", usage="/help [NAME]", role=PersonRole.GUEST)
async def help_(ctx: CommandContext) -> str:
    words = ctx.words
    asked = ctx.commands.get(ctx.rest.strip().lstrip("/").lower())
    if asked is not None and at_least(ctx.role, asked.role):
        lines = [_line(asked, words)]
        if asked.also:
            lines.append(words.HELP_ALSO.format(names=", ".join(f"/{name}" for name in asked.also)))
        if asked.role not in (PersonRole.GUEST, PersonRole.USER):
            lines.append(words.HELP_ROLE.format(role=words.role(asked.role)))
        return "\n".join(lines)
    lines = [
        words.HELP_LINE.format(heading=_heading(group, words), names=", ".join(f"/{known.name}" for known in found))
        for group, found in grouped(ctx.commands, ctx.role)
    ]
    return "\n".join([words.HELP_HEAD, *lines, words.HELP_FOOT])


@command("commands", summary="Every command, explained", role=PersonRole.GUEST)
async def commands(ctx: CommandContext) -> str:
    lines: list[str] = []
    for group, found in grouped(ctx.commands, ctx.role):
        lines += [_heading(group, ctx.words), *(f"  {_line(known, ctx.words)}" for known in found)]
    return "\n".join(lines)


def grouped(known: dict[str, SlashCommand], role: PersonRole) -> Iterator[tuple[str, list[SlashCommand]]]:
    """The commands that somebody of this role may use, by group, each once."""
    mine = {each.name: each for each in known.values() if at_least(role, each.role)}
    placed = {name for names in GROUPS.values() for name in names}
    rest = tuple(sorted(mine.keys() - placed))
    for group, names in (*GROUPS.items(), ("more", rest)):
        found = [mine[name] for name in names if name in mine]
        if found:
            yield group, found


def _heading(group: str, words: Texts) -> str:
    return {
        "talk": words.HELP_TALK,
        "work": words.HELP_WORK,
        "answers": words.HELP_ANSWERS,
        "abilities": words.HELP_ABILITIES,
        "about": words.HELP_ABOUT,
        "care": words.HELP_CARE,
    }.get(group, words.HELP_MORE)


def _line(known: SlashCommand, words: Texts) -> str:
    return f"{known.usage or '/' + known.name} — {words.summary(known.name, known.summary)}"


@dataclass(frozen=True, slots=True)
class _Here:
    """How this chat stands."""

    choices: ChatSettings
    session: Session | None
    busy_mode: str
    queued: int


@command("status", summary="Whether I am busy, and what is connected")
async def status(ctx: CommandContext) -> str:
    words, key = ctx.words, SessionKey.parse(ctx.lane)
    snapshot = await ctx.services.status()
    here = await ctx.services.db.read(_look, ctx.lane)
    asked = await ctx.services.approvals.pending(ctx.lane)
    doing = await _doing(ctx, asked[0].code if asked else "")
    lines = [words.GAP.join([doing, *_connected(snapshot, words)])]
    if here.queued:
        lines.append(words.STATUS_WAITING.format(count=here.queued))
    if len(asked) > 1:
        lines.append(words.STATUS_QUESTIONS.format(count=len(asked)))
    lines.append(_model(ctx, here, snapshot))
    if name := ctx.services.config().persona_for(key, here.choices.personality).name:
        lines.append(words.STATUS_PERSONALITY.format(name=name))
    mode = ctx.services.lanes.mode_of(key, here.busy_mode)
    return "\n".join([*lines, _session(here.session, words), words.STATUS_BUSY.format(meaning=meaning(words, mode))])


def _look(tx: Tx, lane: str) -> _Here:
    return _Here(
        chat_settings.of_lane(tx, lane),
        sessions.current(tx, lane),
        lanes.busy_mode(tx, lane),
        len(inbox.queued(tx, lane)),
    )


async def _doing(ctx: CommandContext, code: str) -> str:
    if code:
        return ctx.words.STATUS_ASKING.format(code=code)
    if turn_id := ctx.services.lanes.running_turn(ctx.lane):
        turn = await ctx.services.db.read(turns.get, turn_id)
        age = ctx.services.clock.now() - turn.created_at if turn is not None else 0.0
        return ctx.words.STATUS_WORKING.format(span=ctx.words.span(age), turn=turn_id)
    return ctx.words.STATUS_IDLE


def _connected(snapshot: dict[str, Any], words: Texts) -> Iterator[str]:
    states = {str(entry["account"]): str(entry["state"]) for entry in snapshot["platforms"]}
    up = [account for account, state in states.items() if state == "connected"]
    down = [f"{account} ({words.state(state)})" for account, state in states.items() if state != "connected"]
    yield words.STATUS_CHATS.format(names=", ".join(up)) if up else words.STATUS_NO_CHATS
    if down:
        yield words.STATUS_DOWN.format(names=", ".join(down))


def _model(ctx: CommandContext, here: _Here, snapshot: dict[str, Any]) -> str:
    config, chosen = ctx.services.config(), here.choices.model
    if chosen and is_there(chosen, config):
        return ctx.words.STATUS_MODEL_CHOSEN.format(model=chosen)
    if settled := route_of(config, SessionKey.parse(ctx.lane)):
        return ctx.words.STATUS_MODEL_SETTLED.format(model=settled)
    return ctx.words.STATUS_MODEL.format(model=snapshot["model"]["label"])


def _session(session: Session | None, words: Texts) -> str:
    if session is None:
        return words.STATUS_NO_SESSION
    named = words.SESSION_TITLE.format(title=one_line(session.title, TITLE_LENGTH))
    title = named if session.title else session.id
    return words.STATUS_SESSION.format(title=title, lines=words.lines(session.seq))


@command("whoami", summary="Who you are to me")
async def whoami(ctx: CommandContext) -> str:
    return ctx.words.WHOAMI.format(
        name=ctx.person.name or ctx.words.WHOAMI_YOU,
        platform=ctx.session_key.platform,
        sender_id=ctx.sender_id,
        role=ctx.words.role(ctx.role),
        lane=ctx.lane,
    )


@command("version", summary="Which Hermes this is")
async def version(ctx: CommandContext) -> str:
    return ctx.words.VERSION.format(version=hermes.__version__)
