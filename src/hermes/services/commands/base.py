"""Slash commands: marked functions, collected once, checked by the dispatcher and never by themselves."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.toolkit.toolbox import Parts, ToolContext
from hermes.config import Config, Loaded
from hermes.core.approval import read_button
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, PlatformError
from hermes.core.i18n.catalogue import localize, words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import SessionKey, Target
from hermes.core.messages import InboundMessage, OutboundMessage, Press
from hermes.core.pairing import read_button as read_pairing_button
from hermes.core.people import PersonRole, at_least
from hermes.core.ports import Adapter, AnswersPresses, Clock
from hermes.core.roles import Action, may
from hermes.core.slash_command import nearest, read_command
from hermes.services.approvals import AnswerOutcome, Approvals
from hermes.services.inbound.intake import lane_key
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.people.pairing import Pairings
from hermes.services.turns.lanes import Lanes
from hermes.store import inbox, outbox, people
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.people import Person

log = logging.getLogger(__name__)

Run = Callable[["CommandContext"], Awaitable[str]]
ReachOf = Callable[[SessionKey, str, str], ToolContext]


@dataclass(frozen=True, slots=True)
class SlashCommand:
    name: str
    summary: str
    role: PersonRole
    run: Run
    also: tuple[str, ...] = ()
    usage: str = ""


def command(
    name: str, *, summary: str, role: PersonRole = PersonRole.USER, also: tuple[str, ...] = (), usage: str = ""
) -> Callable[[Run], Run]:
    """Mark a function as a slash command. It is found by ``collect``."""

    def mark(run: Run) -> Run:
        run.command = SlashCommand(name, summary, role, run, also, usage)  # type: ignore[attr-defined]
        return run

    return mark


def collect(modules: Iterable[str]) -> dict[str, SlashCommand]:
    """Every marked function of these modules, which are imported now, by each of its names."""
    found: dict[str, SlashCommand] = {}
    for module in modules:
        for value in vars(import_module(module)).values():
            marked = getattr(value, "command", None)
            if isinstance(marked, SlashCommand):
                found.update(dict.fromkeys((marked.name, *marked.also), marked))
    return found


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What a command may use, and whose it is. ``seq`` is the number of the last message written before it.

    ``read_again`` takes up what a command wrote into the settings, before it says that it holds.
    ``words`` are the sentences in this person's language.
    ``sent_at`` is when it was written by the platform's clock, ``received_at`` when it came here by ours.
    """

    rest: str
    seq: int
    lane: str
    session_key: SessionKey
    sender_id: str
    person: Person
    commands: dict[str, SlashCommand]
    db: Database
    clock: Clock
    lanes: Lanes
    approvals: Approvals
    config: Callable[[], Config]
    status: Callable[[], Awaitable[dict[str, Any]]]
    event_id: str
    parts: Parts
    reach_of: ReachOf
    loaded: Callable[[], Loaded]
    read_again: Callable[[], Awaitable[None]]
    words: Texts
    sent_at: float = 0.0
    received_at: float = 0.0
    is_edit: bool = False

    @property
    def role(self) -> PersonRole:
        return PersonRole(self.person.role)

    def reach(self, call_id: str) -> ToolContext:
        """What tools of this person may touch in this chat, for a command that works with files as they do."""
        return replace(self.reach_of(SessionKey.parse(self.lane), self.person.id, self.person.role), call_id=call_id)


@dataclass(frozen=True, slots=True)
class CommandParts:
    db: Database
    clock: Clock
    lanes: Lanes
    approvals: Approvals
    outbox_writer: OutboxWriter
    config: Callable[[], Config]
    status: Callable[[], Awaitable[dict[str, Any]]]
    adapter_of: Callable[[Target], Adapter | None]
    tool_parts: Callable[[], Parts]
    reach_of: ReachOf
    pairings: Pairings
    loaded: Callable[[], Loaded]
    read_again: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pressed:
    """What became of a press: what is said of it, and whether it changed anything."""

    text: str
    counts: bool = False


class Dispatcher:
    """Acts on stored commands and presses. Their effect may run twice after a crash, so each must bear it."""

    def __init__(self, parts: CommandParts, commands: dict[str, SlashCommand]) -> None:
        self._parts = parts
        self._commands = commands

    async def act(self, event_id: str, event: InboundMessage | Press) -> None:
        if isinstance(event, Press):
            await self._press(event_id, event)
            return
        reply = await self._run(event_id, event)
        message = OutboundMessage(event.session_key.target, reply, reply_to=event.message_id)
        await self._settle(event_id, message)

    async def _run(self, event_id: str, event: InboundMessage) -> str:
        line = read_command(event.text)
        context = await self._context(event_id, event, line.rest if line is not None else "")
        words = context.words
        if line is None:
            return words.UNKNOWN_COMMAND.format(name=event.text[:40])
        known = self._commands.get(line.name)
        if known is None:
            return self._unknown(line.name, context)
        if not at_least(context.role, known.role):
            return words.NOT_ALLOWED.format(name=known.name, role=words.role(known.role), mine=words.role(context.role))
        try:
            return await known.run(context)
        except GatewayError as error:
            return words.COMMAND_FAILED.format(reason=localize(error, words))

    def _unknown(self, name: str, context: CommandContext) -> str:
        """Say so, and name what was probably meant among what this person may use."""
        mine = [each for each, known in self._commands.items() if at_least(context.role, known.role)]
        if guess := nearest(name, mine):
            return context.words.UNKNOWN_COMMAND_NEAR.format(name=name, nearest=guess)
        skills = [skill.name for skill in context.parts.get(SkillLibrary).offered(context.session_key.platform)]
        guess = nearest(name, skills) if at_least(context.role, PersonRole.USER) else ""
        form = context.words.UNKNOWN_COMMAND_SKILL if guess else context.words.UNKNOWN_COMMAND
        return form.format(name=name, nearest=guess)

    async def _context(self, event_id: str, event: InboundMessage, rest: str) -> CommandContext:
        parts = self._parts
        person, row = await parts.db.read(_who_and_when, event_id, event.session_key.platform, event.sender_id)
        return CommandContext(
            rest,
            row.seq if row is not None else 0,
            row.lane if row is not None else str(lane_key(event, parts.config())),
            event.session_key,
            event.sender_id,
            person or Person("", event.sender_name, PersonRole.GUEST),
            self._commands,
            parts.db,
            parts.clock,
            parts.lanes,
            parts.approvals,
            parts.config,
            parts.status,
            event_id,
            parts.tool_parts(),
            parts.reach_of,
            parts.loaded,
            parts.read_again,
            self._words(person, event),
            event.sent_at.timestamp(),
            row.received_at if row is not None else 0.0,
            event.is_edit,
        )

    def _words(self, person: Person | None, event: InboundMessage | Press) -> Texts:
        own = person.language if person is not None else ""
        text = event.text if isinstance(event, InboundMessage) else ""
        return words_of(pick(self._parts.config().language, own, hint=event.language, text=text))

    async def _press(self, event_id: str, press: Press) -> None:
        pressed = await self._act_on(press)
        is_shown = await self._answer_press(press, pressed.text)
        # A press in vain is nobody's business but the presser's.
        is_told = is_shown and not pressed.counts
        await self._settle(event_id, None if is_told else OutboundMessage(press.session_key.target, pressed.text))

    async def _act_on(self, press: Press) -> Pressed:
        platform = press.session_key.platform
        person = await self._parts.db.read(people.find, platform, press.sender_id)
        words = self._words(person, press)
        if (decision := read_pairing_button(press.data)) is not None:
            return await self._decide_about(person, words, *decision)
        button = read_button(press.data)
        if button is None:
            return Pressed(words.OLD_BUTTON)
        answered = await self._parts.approvals.answer(
            button.approval_id, allow=button.allow, scope=button.scope, platform=platform, sender_id=press.sender_id
        )
        return Pressed(answered.sentence(words, allow=button.allow), counts=answered.answer is AnswerOutcome.TAKEN)

    async def _decide_about(
        self, person: Person | None, words: Texts, platform: str, code: str, approve: bool
    ) -> Pressed:
        """A button under a stranger's request, pressed by whoever saw it: only some may decide."""
        parts = self._parts
        if person is None or not may(PersonRole(person.role), Action.MANAGE_PEOPLE):
            return Pressed(words.NOT_YOURS_TO_LET_IN)
        try:
            if approve:
                let_in = await parts.pairings.approve(platform, code, by=person.name or person.id, words=words)
                name = let_in.pairing.name or let_in.pairing.user_id
                return Pressed(words.MAY_TALK_NOW.format(name=name), counts=True)
            sent_away = await parts.pairings.refuse(platform, code, by=person.name or person.id, words=words)
            return Pressed(words.SENT_AWAY.format(name=sent_away.name or sent_away.user_id), counts=True)
        except GatewayError as error:
            return Pressed(str(error))

    async def _answer_press(self, press: Press, text: str) -> bool:
        """Stop the button's spinner. Whether the presser was shown the answer; if not, the chat is told."""
        adapter: object = self._parts.adapter_of(press.session_key.target)
        if not isinstance(adapter, AnswersPresses) or not press.press_id:
            return False
        try:
            return await adapter.answer_press(press.press_id, text)
        except PlatformError as error:
            log.info("Press not answered", extra={"platform": press.session_key.platform, "reason": str(error)})
            return False

    async def _settle(self, event_id: str, message: OutboundMessage | None) -> None:
        rows = (
            self._parts.outbox_writer.rows(message, OutboxKind.REPLY, key=f"ob_{event_id}")
            if message is not None
            else []
        )
        lane = await self._parts.db.write(_settle_with_reply, event_id, rows, now=self._parts.clock.now())
        self._parts.outbox_writer.due(rows)
        if lane:
            self._parts.lanes.wake(lane)


def _who_and_when(tx: Tx, event_id: str, platform: str, sender_id: str) -> tuple[Person | None, inbox.InboxRow | None]:
    return people.find(tx, platform, sender_id), inbox.get(tx, event_id)


def _settle_with_reply(tx: Tx, event_id: str, rows: list[Outgoing], *, now: float) -> str:
    """The event is answered and its reply is stored, together and once. Returns the lane that waited for it, or ''."""
    if not inbox.settle(tx, event_id, state=InboxState.ANSWERED, now=now):
        return ""
    outbox.enqueue(tx, rows, now=now)
    row = inbox.get(tx, event_id)
    return row.lane if row is not None and inbox.has_queued(tx, row.lane) else ""
