"""Mark, collect and run slash commands; the role is checked only here."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hermes.agent.skills.library import SkillLibrary
from hermes.agent.toolkit.context import Parts, ToolContext
from hermes.config import Config, Loaded
from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import localize
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.messages import InboundMessage, OutboundMessage
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole, at_least
from hermes.core.slash_command import nearest, read_command
from hermes.services.approvals import Approvals
from hermes.services.inbound.answers import Answers, words_for
from hermes.services.inbound.judge import lane_key
from hermes.services.people.owners import Owners
from hermes.services.turns.lanes import Lanes
from hermes.store import inbox, people
from hermes.store.db import Database, Tx
from hermes.store.people import Person

if TYPE_CHECKING:
    from hermes.services.cron.jobs import Jobs

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
        run.command = SlashCommand(name, summary, role, run, also, usage)  # type: ignore[attr-defined] # collected below
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandServices:
    """The services that commands work with.

    ``read_again`` takes up what a command wrote into the settings, before it says that it holds.
    """

    db: Database
    clock: Clock
    lanes: Lanes
    approvals: Approvals
    owners: Owners
    config: Callable[[], Config]
    loaded: Callable[[], Loaded]
    read_again: Callable[[], Awaitable[None]]
    status: Callable[[], Awaitable[dict[str, Any]]]
    tool_parts: Callable[[], Parts]
    reach_of: ReachOf
    jobs: Callable[[], Jobs]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandContext:
    """A command that was typed: by whom, where, and what it may use.

    ``rest`` is what stands behind the command's name; ``seq`` the number of the last message written before it.
    ``sent_at`` is when it was written by the platform's clock, ``received_at`` when it came here by ours.
    ``words`` are the sentences in this person's language.
    """

    services: CommandServices
    commands: dict[str, SlashCommand]
    event_id: str
    session_key: SessionKey
    lane: str
    sender_id: str
    person: Person
    words: Texts
    rest: str
    seq: int = 0
    sent_at: float = 0.0
    received_at: float = 0.0
    is_edit: bool = False

    @property
    def role(self) -> PersonRole:
        return PersonRole(self.person.role)

    @property
    def parts(self) -> Parts:
        return self.services.tool_parts()

    def reach(self, call_id: str) -> ToolContext:
        """What tools of this person may touch in this chat, for a command that works with files as they do."""
        key = SessionKey.parse(self.lane)
        return replace(self.services.reach_of(key, self.person.id, self.person.role), call_id=call_id)


class Commands:
    """Runs stored slash commands. Their effect may run twice after a crash, so each must bear it."""

    def __init__(self, services: CommandServices, commands: dict[str, SlashCommand], answers: Answers) -> None:
        self._services = services
        self._commands = commands
        self._answers = answers

    async def act(self, event_id: str, event: InboundMessage) -> None:
        reply = await self._run(event_id, event)
        message = OutboundMessage(event.session_key.target, reply, reply_to=event.message_id)
        await self._answers.settle(event_id, message)

    async def _run(self, event_id: str, event: InboundMessage) -> str:
        line = read_command(event.text)
        context = await self._context(event_id, event, line.rest if line is not None else "")
        words = context.words
        if line is None:
            return words.UNKNOWN_COMMAND.format(name=event.text[:40])
        known = self._commands.get(line.name)
        if known is None:
            # Say so, and name what was probably meant among what this person may use.
            mine = [each for each, known in self._commands.items() if at_least(context.role, known.role)]
            if guess := nearest(line.name, mine):
                return context.words.UNKNOWN_COMMAND_NEAR.format(name=line.name, nearest=guess)
            skills = [skill.name for skill in context.parts.get(SkillLibrary).offered(context.session_key.platform)]
            guess = nearest(line.name, skills) if at_least(context.role, PersonRole.USER) else ""
            form = context.words.UNKNOWN_COMMAND_SKILL if guess else context.words.UNKNOWN_COMMAND
            return form.format(name=line.name, nearest=guess)
        if not at_least(context.role, known.role):
            return words.NOT_ALLOWED.format(name=known.name, role=words.role(known.role), mine=words.role(context.role))
        try:
            return await known.run(context)
        except GatewayError as error:
            return words.COMMAND_FAILED.format(reason=localize(error, words))

    async def _context(self, event_id: str, event: InboundMessage, rest: str) -> CommandContext:
        services = self._services
        person, row = await services.db.read(_who_and_when, event_id, event.session_key.platform, event.sender_id)
        return CommandContext(
            services=services,
            commands=self._commands,
            event_id=event_id,
            session_key=event.session_key,
            lane=row.lane if row is not None else str(lane_key(event, services.config())),
            sender_id=event.sender_id,
            person=person or Person("", event.sender_name, PersonRole.GUEST),
            words=words_for(services.config(), person, event),
            rest=rest,
            seq=row.seq if row is not None else 0,
            sent_at=event.sent_at.timestamp(),
            received_at=row.received_at if row is not None else 0.0,
            is_edit=event.is_edit,
        )


def _who_and_when(tx: Tx, event_id: str, platform: str, sender_id: str) -> tuple[Person | None, inbox.InboxRow | None]:
    return people.find(tx, platform, sender_id), inbox.get(tx, event_id)
