"""Hold the running turn, and the services that all its steps share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Protocol

from hermes.agent.backends.process_groups import birth_of
from hermes.agent.prompt import PromptBuilder
from hermes.agent.toolkit.context import ToolContext
from hermes.agent.toolkit.toolbox import Toolbox
from hermes.config import Config
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey, Target
from hermes.core.messages import ChatMessage, Role, Usage
from hermes.core.ports import Clock, Model
from hermes.core.requests import TurnOptions
from hermes.core.roles import PersonRole, capped, is_outranked
from hermes.core.text import one_line
from hermes.services.events import EventBus
from hermes.services.outbound.approval_cards import ApprovalCards
from hermes.services.outbound.media import Media
from hermes.services.outbound.rows import OutboxWriter
from hermes.services.outbound.spool import Spool
from hermes.services.outbound.voice_reply import VoiceReply
from hermes.services.turns.attachments import Attachments
from hermes.services.turns.compression import FinishedTurn
from hermes.services.turns.stop import TurnControl
from hermes.store.db import Database
from hermes.store.grants import JOB_GRANTS
from hermes.store.turns import tool_calls
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.tool_calls import StoredCall
from hermes.store.turns.turns import NO_USAGE, Turn

NO_OPTIONS = TurnOptions()
TASK_SHOWN = 60


class PreparationError(Exception):
    """A scheduled run cannot begin; the text says why."""


@dataclass(slots=True)
class RunningTurn:
    """A running turn. Only its own task touches this.

    ``history`` and ``calls`` go along with what is stored. ``partial`` is what the model has said of a reply that is
    not whole yet, ``made`` the calls since the last user message, ``notices`` what is told above the answer.
    ``segments`` are the texts beside calls, ``thinking`` what the model thought in each of its calls in this process.
    """

    begun: BegunTurn
    key: SessionKey
    history: list[ChatMessage]
    calls: list[StoredCall]
    control: TurnControl = field(default_factory=TurnControl)
    words: Texts = ENGLISH
    partial: str = ""
    was_too_long: bool = False  # a model said so, whatever was estimated
    notices: list[str] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    spent: Usage = NO_USAGE
    segments: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)

    @property
    def turn(self) -> Turn:
        return self.begun.turn

    @property
    def steps(self) -> int:
        return self.begun.turn.steps

    def step_added(self) -> None:
        self.begun = replace(self.begun, turn=replace(self.begun.turn, steps=self.steps + 1))

    @property
    def options(self) -> TurnOptions:
        prompt = self.begun.prompt
        return (prompt.options if prompt else None) or NO_OPTIONS

    @property
    def role(self) -> PersonRole:
        return PersonRole(self.begun.role or PersonRole.GUEST)

    @property
    def is_mixed(self) -> bool:
        """Tell whether somebody of a lower role has written in this conversation."""
        return is_outranked(self.begun.heard, self.role)

    @property
    def origin(self) -> SessionKey:
        """The chat in which questions are put: the turn's own, or that of the turn which handed its task on."""
        return SessionKey.parse(self.options.origin) if self.options.origin else self.key

    @property
    def answered_in(self) -> tuple[Target, ...]:
        """Where the answer is told: a turn in the background tells it in the chat that began it."""
        if self.options.deliver is not None:
            return tuple(map(Target.parse, self.options.deliver))
        return ((self.origin if self.options.reports else self.key).target,)

    @property
    def grants_of(self) -> str:
        """Whose session grants count: those of the chat that is asked, or those of the job."""
        return f"{JOB_GRANTS}{self.options.job}" if self.options.job else str(self.origin)

    @property
    def header(self) -> str:
        """The line above an answer that nobody has waited for."""
        if self.options.header:
            return self.options.header
        if not self.options.reports or self.begun.prompt is None:
            return ""
        return self.words.BACKGROUND_HEADER.format(task=one_line(self.begun.prompt.message.text, TASK_SHOWN))

    @property
    def brings_talk(self) -> bool:
        """Whether the asker brought the whole talk along, and will do so again."""
        return self.begun.prompt is not None and bool(self.begun.prompt.before)

    @property
    def continues_answer(self) -> bool:
        """Whether the asker wrote the beginning of the answer (prefill): then its first blank counts."""
        return self.begun.prompt is not None and self.begun.prompt.message.role is Role.ASSISTANT

    @property
    def goes_on(self) -> bool:
        """Whether this session is likely to have further turns, which its own lines are read for."""
        return not self.brings_talk and not self.options.depth and bool(self.history)


def calls_of_this_turn(history: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """The calls already answered since the last user message, oldest first: what the loop guard counts."""
    answered: set[str] = set()
    made: list[tuple[str, str]] = []
    for message in reversed(history):
        if message.role is Role.USER:
            break
        answered.add(message.tool_call_id)  # results stand behind their calls
        made.extend((call.name, call.arguments) for call in reversed(message.tool_calls) if call.id in answered)
    return made[::-1]


class Previews(Protocol):
    async def close(self, turn_id: str) -> str:
        """End the turn's preview; return the outbox id of what it showed, or ''."""

    def leave(self, turn_id: str) -> None:
        """The turn is not carried here any more and has not ended: show nothing until it goes on."""


@dataclass(frozen=True, slots=True)
class TurnServices:
    """The services that turns use, put together once by wiring."""

    db: Database
    clock: Clock
    bus: EventBus
    outbox_writer: OutboxWriter
    previews: Previews
    config: Callable[[], Config]
    model: Callable[[SessionKey, str, str], Model]
    toolbox: Toolbox
    prompts: PromptBuilder
    context: Callable[[SessionKey, str, str, str], ToolContext]
    attachments: Attachments
    cards: ApprovalCards
    grown: Callable[[FinishedTurn], None]
    media: Media
    voice_reply: VoiceReply
    spool: Spool
    check: Callable[[], None] | None = None
    """In a cluster: raises where this node may not act any more."""
    node: str = ""
    """In a cluster: the name of this node."""
    skill_texts: Callable[[Sequence[str]], str] = lambda _: ""

    def context_of(self, work: RunningTurn, row_id: str = "", name: str = "") -> ToolContext:
        """What a tool may know and touch in this turn. ``row_id`` is the stored call; '' where no call is made.

        Among people of lower roles a tool that runs without a question works as it does for a user.
        """
        context = self.context(work.key, work.turn.person_id, work.begun.role, work.options.folder)
        if work.is_mixed and name and not self.toolbox.is_personal(name):
            context = replace(context, role=PersonRole(capped(work.role, PersonRole.USER)))

        async def started_group(group: int) -> None:
            await self.db.write(tool_calls.note_process, row_id, group=group, started=birth_of(group))

        return replace(
            context,
            call_id=row_id,
            session_id=work.turn.session_id,
            turn_id=work.turn.id,
            started_group=started_group,
            on_behalf_of=work.origin,
            depth=work.options.depth,
            words=work.words,
            is_among_others=(work.is_mixed or work.key.platform == "webhook") and not name,
        )
