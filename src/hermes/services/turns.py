"""One turn, from prompt to reply: the state machine around the agent.

What happens next is decided by ``core.turn.next_action`` from stored rows; each step here is one transaction. So
a turn can be left at any point, by a crash or on purpose, and taken up where it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Protocol

from hermes.agent.compress import BYTES_PER_TOKEN, PROMPT_SHARE, summary_message
from hermes.agent.post import Parcel
from hermes.agent.prompt import PromptBuilder, Scene, newest_half, unanswered
from hermes.agent.sight import can_see, is_about_pictures, without_pictures
from hermes.agent.step import ask_model
from hermes.agent.toolkit import ApprovalNeed, Toolbox, ToolContext, ToolOutput
from hermes.config import Config
from hermes.core import turn as rules
from hermes.core.catalogue import ENGLISH, told, words_of
from hermes.core.errors import ModelError, ModelErrorKind, StoreIsDownError, ToolError
from hermes.core.keys import SessionKey, Target
from hermes.core.lane import DOORS, BusyMode
from hermes.core.languages import pick
from hermes.core.media import without_files
from hermes.core.messages import AttachmentKind, ChatMessage, OutboundMessage, Role, ToolCall, ToolSpec, Usage
from hermes.core.people import PersonRole
from hermes.core.ports import Clock, Model, ModelReply, ModelRequest
from hermes.core.requests import TurnOptions, TurnResult
from hermes.core.roles import Action, may
from hermes.core.text import one_line
from hermes.core.values import dataclass
from hermes.core.words import Words
from hermes.services import attachments, cards
from hermes.services.alerts import home_channels
from hermes.services.aloud import Aloud
from hermes.services.attachments import Attachments
from hermes.services.cards import Cards
from hermes.services.compression import Talk
from hermes.services.events import (
    ApprovalAsked,
    EventBus,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from hermes.services.letters import Letters
from hermes.services.media import Mail, Media
from hermes.services.models import route_of
from hermes.services.pacing import Place
from hermes.services.processes import birth_of
from hermes.store import approvals, files_out, lanes, outbox, tool_calls, turn_end, turn_steps, turns
from hermes.store.db import Database, Tx
from hermes.store.files_out import Lost
from hermes.store.ids import new_code, new_id
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.tool_calls import Call, CallState, NewCall
from hermes.store.turn_begin import Begun
from hermes.store.turn_end import Ending
from hermes.store.turns import TurnState

log = logging.getLogger(__name__)

NO_OPTIONS = TurnOptions()
NO_REPLY = ModelReply("")
NO_OUTPUT = ToolOutput("")
TASK_SHOWN = 60
SPEAKS = "text_to_speech"
ASKED = "asked"
"""The outcome of a call that put a question to the person: the turn ends with it, also after a crash."""


class StopReason(StrEnum):
    """Why a running turn is asked to end. A drain leaves it unfinished, for the next process."""

    INTERRUPTED = "interrupted by a newer message"
    STOPPED = "stopped"
    RENEWED = "a fresh session was started"
    DRAIN = "drain"


@dataclass(slots=True)
class TurnControl:
    """How the lane asks its running turn to end: set the reason, then cancel the task."""

    reason: StopReason | None = None
    # The turn's end, or its sleep on an approval, is being written: there is nothing left to cancel.
    is_ending: bool = False


class Previews(Protocol):
    async def close(self, turn_id: str) -> str:
        """End the turn's preview; return the outbox id of what it showed, or ''."""

    def leave(self, turn_id: str) -> None:
        """The turn is not carried here any more and has not ended: show nothing until it goes on."""


@dataclass(slots=True)
class Work:
    """A turn in hand. Only the task that runs it touches this."""

    begun: Begun
    key: SessionKey
    history: list[ChatMessage]
    calls: list[Call]
    control: TurnControl = field(default_factory=TurnControl)
    words: Words = ENGLISH
    partial: str = ""
    was_too_long: bool = False  # a model said so, whatever was estimated
    notices: list[str] = field(default_factory=list)
    made: list[tuple[str, str]] = field(default_factory=list)
    spent: Usage = turns.NO_USAGE

    @property
    def options(self) -> TurnOptions:
        prompt = self.begun.prompt
        return (prompt.options if prompt else None) or NO_OPTIONS

    @property
    def origin(self) -> SessionKey:
        """The chat in which questions are put: the turn's own, or that of the turn which handed its task on."""
        return SessionKey.parse(self.options.origin) if self.options.origin else self.key

    @property
    def answered_in(self) -> Target:
        """Where the answer is told: a turn in the background tells it in the chat that began it."""
        return (self.origin if self.options.reports else self.key).target

    @property
    def header(self) -> str:
        """The line above an answer that nobody has waited for."""
        if not self.options.reports or self.begun.prompt is None:
            return ""
        return self.words.BACKGROUND_HEADER.format(task=one_line(self.begun.prompt.message.text, TASK_SHOWN))

    @property
    def role(self) -> PersonRole:
        return PersonRole(self.begun.role or PersonRole.GUEST)

    @property
    def brings_talk(self) -> bool:
        """Whether the asker brought the whole talk along, and will do so again."""
        return self.begun.prompt is not None and bool(self.begun.prompt.before)

    @property
    def goes_on(self) -> bool:
        """Whether this session is likely to have further turns, which its own lines are read for."""
        return not self.brings_talk and not self.options.depth and bool(self.history)

    @property
    def turn(self) -> turns.Turn:
        return self.begun.turn

    @property
    def steps(self) -> int:
        return self.begun.turn.steps

    def step_added(self) -> None:
        self.begun = replace(self.begun, turn=replace(self.begun.turn, steps=self.steps + 1))


@dataclass(frozen=True, slots=True)
class TurnParts:
    """What turns need, put together once by bootstrap."""

    db: Database
    clock: Clock
    bus: EventBus
    letters: Letters
    previews: Previews
    config: Callable[[], Config]
    model: Callable[[SessionKey, str, str], Model]
    toolbox: Toolbox
    prompts: PromptBuilder
    context: Callable[[SessionKey, str, str, str], ToolContext]
    attachments: Attachments
    cards: Cards
    grown: Callable[[Talk], None]
    media: Media
    aloud: Aloud


class _LoopingError(Exception):
    """The model makes one and the same call again and again."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class _UnansweredError(Exception):
    """The model asks for one and the same thing, and nobody answers."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class TurnRunner:
    def __init__(self, parts: TurnParts) -> None:
        self._parts = parts
        self._db = parts.db
        self._bus = parts.bus

    @property
    def cards(self) -> Cards:
        """What is shown in place of the questions of a turn that ends while it sleeps."""
        return self._parts.cards

    async def run(self, begun: Begun, control: TurnControl) -> bool:
        """Carry the turn to its end, or to an approval it waits for. True when the lane sleeps now.

        A reason in ``control`` at the start, or with a cancellation, ends the turn cleanly; any other cancellation
        travels on and leaves the turn as it is stored, for the next process.
        """
        key = SessionKey.parse(begun.turn.lane)
        work = Work(begun, key, list(begun.history), list(begun.calls), control, self._words(begun))
        work.made = calls_of_this_turn(begun.history)
        self._bus.publish(
            TurnStarted(begun.turn.lane, begun.turn.id, begun.is_resumed, begun.event_ids, begun.choices.tool_progress)
        )
        self._parts.letters.due(begun.letters)
        early = control.reason
        if early is not None:
            return await self._end_interrupted(work, early)
        try:
            return await self._guarded(work)
        except asyncio.CancelledError:
            if control.reason in (None, StopReason.DRAIN):
                self._parts.previews.leave(work.turn.id)
                raise
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return await self._end_interrupted(work, control.reason)
        except (StoreIsDownError, lanes.Lost):
            self._parts.previews.leave(work.turn.id)
            raise

    async def _guarded(self, work: Work) -> bool:
        if work.begun.turn.attempts > rules.MAX_DEATHS:
            text = work.words.SET_ASIDE_AFTER_DEATHS.format(deaths=rules.MAX_DEATHS, turn_id=work.turn.id)
            return await self._end(work, TurnState.SET_ASIDE, "crashed three times while it ran", text=text)
        limit = self._parts.config().agent.turn_timeout_seconds
        try:
            async with asyncio.timeout(limit):
                reply = await self._carry(work)
        except TimeoutError:
            text = work.words.TIMED_OUT.format(minutes=max(1, round(limit / 60)))
            return await self._end(work, TurnState.FAILED, "it took too long", text=text)
        except ModelError as error:
            return await self._end_failed(work, error)
        except _LoopingError as error:
            text = work.words.LOOPING.format(count=error.count)
            return await self._end(work, TurnState.FAILED, "the model repeated one call", text=text)
        except _UnansweredError as error:
            text = work.words.APPROVAL_TIMEOUTS.format(count=error.count)
            return await self._end(work, TurnState.FAILED, "nobody answered what it asked", text=text)
        # The end is written outside the time limit, which could otherwise cut it in two.
        return True if reply is None else await self._finish(work, reply)

    async def fail(self, begun: Begun, control: TurnControl, error: Exception) -> bool:
        """End a turn that broke our own code, in words, so that its lane goes on."""
        work = Work(begun, SessionKey.parse(begun.turn.lane), [], [], control, self._words(begun))
        reason = f"{type(error).__name__}: {error}"
        text = work.words.FAILED.format(reason=type(error).__name__, turn_id=begun.turn.id)
        return await self._end(work, TurnState.FAILED, reason, text=text)

    def _words(self, begun: Begun) -> Words:
        said = begun.prompt.message.text if begun.prompt is not None else ""
        return words_of(pick(self._parts.config().language, begun.language, text=said))

    async def _carry(self, work: Work) -> ModelReply | None:
        """Step by step to the last words; None when the turn sleeps on an approval."""
        await self._parts.toolbox.ready()
        await self._tell_lost(work)
        await self._fetch_files(work)
        limit = self._parts.config().agent.max_iterations
        while True:
            repeatable = [self._parts.toolbox.is_repeatable(call.name) for call in work.calls]
            match rules.next_action(work.calls, repeatable, steps=work.steps, max_steps=limit):
                case rules.RunCall(index):
                    await self._run_call(work, index)
                case rules.CloseCall(index, why):
                    await self._close(work, index, why)
                case rules.WaitForApproval():
                    if await self._sleep_on_approval(work):
                        return None
                case rules.CallModel(wants_summary):
                    if asked := _asked(work):
                        return asked
                    await self._stop_asking(work)
                    if theirs := self._calls_of_client(work):
                        return theirs
                    reply = await self._call_model(work, wants_summary=wants_summary)
                    if wants_summary:
                        return replace(reply, tool_calls=())  # nobody would answer them
                    if not self._has_ours(work, reply):
                        return reply
                    await self._add_step(work, reply)

    async def _tell_lost(self, work: Work) -> None:
        """Files of earlier answers that never arrived: the model believes they did."""
        if not work.begun.has_lost_files:
            return
        now = self._parts.clock.now()
        told, rows = await self._db.write(
            turn_steps.tell_lost_files, work.begun.claim, work.turn, lambda lost: self._about_lost(work, lost), now=now
        )
        self._parts.letters.due(rows)
        work.history += told

    def _about_lost(self, work: Work, lost: Sequence[Lost]) -> list[Outgoing]:
        if not lost:
            return []
        lines = [work.words.FILE_NOT_TAKEN.format(name=file.name, reason=file.reason) for file in lost]
        message = OutboundMessage(work.key.target, "\n".join(lines))
        return self._parts.letters.rows(message, OutboxKind.REPLY, turn_id=work.turn.id, key=f"ob_{work.turn.id}.lost")

    async def _fetch_files(self, work: Work) -> None:
        """Bring what came with the message into the workspace; after a crash before that, the inbox still knows it."""
        prompt = work.begun.prompt
        files = prompt.attachments if prompt is not None and work.steps == 0 else ()
        if prompt is None or not files:
            return
        last = work.history[-1]
        if last != prompt.message and last.text.startswith(attachments.MARK):
            return
        context = self._context(work, "")
        arrival = await self._parts.attachments.fetch(
            work.key.target, files, context, work.words, sees=self._sees(work)
        )
        told: list[Outgoing] = []
        if arrival.troubles:
            message = OutboundMessage(work.key.target, "\n".join(arrival.troubles), reply_to=work.turn.reply_to)
            name = f"ob_{work.turn.id}.files"
            told = self._parts.letters.rows(message, OutboxKind.REPLY, turn_id=work.turn.id, key=name)
        now = self._parts.clock.now()
        await self._db.write(turn_steps.add_message, work.begun.claim, work.turn, arrival.message, told, now=now)
        self._parts.letters.due(told)
        work.history.append(arrival.message)

    def _sees(self, work: Work) -> bool:
        """Whether pictures are shown to the model of this turn."""
        config = self._parts.config()
        name = work.options.model or work.begun.choices.model or config.model.default
        return config.vision.show == "always" or (config.vision.show == "auto" and can_see(name))

    # The client's own tools

    def _has_ours(self, work: Work, reply: ModelReply) -> bool:
        theirs = {tool.name for tool in work.options.tools} if reply.tool_calls else ()
        return any(call.name not in theirs for call in reply.tool_calls)

    def _calls_of_client(self, work: Work) -> ModelReply | None:
        """In a batch of both kinds ours have run by now; what is left without a result is the client's to run."""
        left = unanswered(work.history) if work.calls and work.options.tools else ()
        if not left:
            return None
        said = next(message.text for message in reversed(work.history) if message.role is Role.ASSISTANT)
        return ModelReply(said, left, finish_reason="tool_calls")

    # The model

    async def _call_model(self, work: Work, *, wants_summary: bool) -> ModelReply:
        await self._take_steering(work)
        options = work.options
        choices = work.begun.choices
        config = self._parts.config()
        model = self._parts.model(work.origin, options.model, choices.model)
        tools = () if wants_summary or not model.has_tools else self._offered(work)
        last = [ChatMessage(Role.SYSTEM, rules.SUMMARY_REQUEST)] if wants_summary else []
        named = options.model or route_of(config, work.origin, choices.model)
        most = int(config.context_window(named) * BYTES_PER_TOKEN * PROMPT_SHARE)
        persona = config.persona_for(work.origin, choices.personality).text
        scene = Scene(work.key, work.turn.session_id, work.role, work.begun.person_name, persona)
        work.partial = ""

        def arrived(text: str) -> None:
            work.partial += text
            self._bus.publish(TextArrived(work.turn.lane, work.turn.id, text))

        def noticed(text: str) -> None:
            notice = told(text, work.words)
            if notice not in work.notices:  # a fallback says so with every call; a person hears it once
                work.notices.append(notice)

        async def ask(history: Sequence[ChatMessage]) -> ModelReply:
            prompt = self._parts.prompts.messages(
                scene,
                history,
                options.instructions,
                summary=work.begun.summary,
                is_whole=work.brings_talk,
                most=most,
            )
            messages = [*prompt, *last]
            request = ModelRequest(
                messages,
                tools,
                max_tokens=options.max_tokens,
                temperature=options.temperature,
                tool_choice=options.tool_choice if tools and work.steps == 0 else "",
                reasoning=choices.reasoning,
                language=work.words.LANGUAGE,
            )
            reply = await ask_model(model, request, arrived, noticed)
            work.spent = plus(work.spent, reply.usage)
            return reply

        try:
            return await self._seen_or_not(work, ask)
        except ModelError as error:
            shorter = newest_half(work.history) if error.kind is ModelErrorKind.CONTEXT else []
            if not shorter:
                raise
            work.was_too_long = True
            return await ask(shorter if self._sees(work) else without_pictures(shorter))

    async def _seen_or_not(
        self, work: Work, ask: Callable[[Sequence[ChatMessage]], Awaitable[ModelReply]]
    ) -> ModelReply:
        """Ask, and once more without the pictures where the model turns out to be blind."""
        came_by_chat = work.key.platform not in DOORS and any(message.images for message in work.history)
        if not came_by_chat:
            return await ask(work.history)
        if self._sees(work):
            try:
                return await ask(work.history)
            except ModelError as error:
                if not is_about_pictures(error):
                    raise
        return await ask(without_pictures(work.history))

    def _offered(self, work: Work) -> tuple[ToolSpec, ...]:
        """Our tools and the client's; one of theirs with the name of ours stands in its place."""
        before = [summary_message(work.begun.summary)] if work.begun.summary else []
        ours = self._parts.toolbox.offered(work.origin, work.role, [*before, *work.history])
        if not work.options.tools:
            return ours
        theirs = {tool.name for tool in work.options.tools}
        return (*(tool for tool in ours if tool.name not in theirs), *work.options.tools)

    async def _take_steering(self, work: Work) -> None:
        """In steer mode, or by /steer, what was written meanwhile joins in before the model speaks again."""
        if work.steps == 0:
            return
        chosen, is_marked = await self._db.read(turn_steps.steering, work.turn.lane)
        takes_all = busy_mode_of(self._parts.config(), work.key, chosen) is BusyMode.STEER
        if not takes_all and not is_marked:
            return
        added = await self._db.write(
            turn_steps.steer,
            work.begun.claim,
            work.turn,
            compose=self._parts.prompts.compose,
            only_marked=not takes_all,
            now=self._parts.clock.now(),
        )
        if added is not None:
            work.history.append(added)

    async def _add_step(self, work: Work, reply: ModelReply) -> None:
        message = ChatMessage(Role.ASSISTANT, reply.text, tool_calls=reply.tool_calls, thought=reply.thought)
        theirs = {tool.name for tool in work.options.tools}
        ours = [call for call in reply.tool_calls if call.name not in theirs]
        new_calls = [await self._judged(work, call, position) for position, call in enumerate(ours)]
        work.partial = ""  # from here on the store has it; an interrupt must not write it a second time
        work.calls = await self._db.write(
            turn_steps.add_step,
            work.begun.claim,
            work.turn,
            message,
            new_calls,
            usage=reply.usage,
            origin=str(work.origin),
            now=self._parts.clock.now(),
        )
        work.step_added()
        work.history.append(message)
        self._bus.publish(SegmentEnded(work.turn.lane, work.turn.id, reply.text))
        self._tell_questions(work, [new for new in new_calls if self._is_asked(work, new)])

    # Tool calls

    async def _judged(self, work: Work, call: ToolCall, position: int) -> NewCall:
        """A rule may look at files and reads whatever a model wrote, so it never holds up the loop."""
        if not self._parts.toolbox.has_rule(call.name):
            return self._new_call(work, call, position)
        return await asyncio.to_thread(self._new_call, work, call, position)

    def _new_call(self, work: Work, call: ToolCall, position: int) -> NewCall:
        row_id = f"{work.turn.id}:{work.steps + 1}:{position}"
        need = self._parts.toolbox.approval(call.name, call.arguments, self._context(work, row_id))
        if need is None:
            return NewCall(row_id, call)
        seconds = self._parts.config().approvals.seconds_for(work.origin.platform)
        question = approvals.Question(
            new_id("ap"),
            new_code(),
            work.turn.person_id,
            need.touches_host,
            need.question,
            self._parts.clock.now() + seconds,
            need.subject,
            need.where,
        )
        letters = self._letters_of(work, call, question, seconds)
        own = [row for row in letters if row.target == str(work.origin.target)]
        if own:
            question = replace(question, target=own[-1].target, question_id=own[-1].id)
        return NewCall(row_id, call, question, letters)

    def _letters_of(self, work: Work, call: ToolCall, question: approvals.Question, seconds: float) -> list[Outgoing]:
        """The question for the chat it is put into, and for the home channels where only an admin may answer it."""
        is_for_admins = question.touches_host and not may(work.role, Action.APPROVE_HOST)
        about = cards.asked(
            work.words,
            name=call.name,
            arguments=call.arguments,
            question=question.question,
            where=question.where_run,
        )
        targets = [work.origin.target, *(self._home_channels(work) if is_for_admins else ())]
        rows: list[Outgoing] = []
        for number, target in enumerate(targets):
            how = cards.how_to_answer(
                work.words,
                question,
                seconds=seconds,
                has_buttons=self._parts.letters.capabilities(target).buttons,
                is_for_admins=is_for_admins and number == 0,
            )
            message = OutboundMessage(
                target,
                f"{about}\n{how}",
                reply_to=work.turn.reply_to if number == 0 else "",
                buttons=cards.buttons(work.words, question),
            )
            name = cards.name_of_question(question.id, number - 1 if number else None)
            rows += self._parts.letters.rows(message, OutboxKind.QUESTION, turn_id=work.turn.id, key=name)
        # Asked after its time, a question could only be answered in vain.
        return [replace(row, expires_at=question.expires_at) for row in rows]

    def _home_channels(self, work: Work) -> list[Target]:
        channels = home_channels(self._parts.config())
        targets = [
            Target(account.platform, chat, account=account.account) for account, chat in channels.items() if chat
        ]
        return [target for target in targets if target != work.origin.target][: cards.MOST_COPIES]

    @staticmethod
    def _is_asked(work: Work, new: NewCall) -> bool:
        """Not where a standing grant answered in a person's place."""
        asked = new.approval
        return asked is not None and any(call.id == new.id and call.state == CallState.WAITING for call in work.calls)

    def _tell_questions(self, work: Work, new_calls: Sequence[NewCall]) -> None:
        for new in new_calls:
            self._parts.letters.due(new.letters)
            if new.approval is not None:
                asked = new.approval
                event = ApprovalAsked(work.turn.lane, work.turn.id, asked.id, asked.code, asked.question)
                self._bus.publish(event)

    async def _run_call(self, work: Work, index: int) -> None:
        """Run one call and record its result; the same call again and again is warned of, and then ends the turn."""
        call = work.calls[index]
        count = rules.identical_in_a_row(work.made, call.name, call.arguments) + 1
        work.made.append((call.name, call.arguments))
        too_many = count - self._parts.config().agent.identical_call_limit
        if too_many > 0:
            await self._record(work, index, outcome="repeated", result=rules.SAME_CALL_AGAIN.format(count=count))
            if too_many >= rules.WARNED_CALLS:
                raise _LoopingError(count)
            return
        await self._db.write(tool_calls.start, work.begun.claim, call.id, now=self._parts.clock.now())
        self._bus.publish(ToolStarted(work.turn.lane, work.turn.id, call.call_id, call.name, call.arguments))
        try:
            agreed = await self._agreed(call)
            output = await self._parts.toolbox.call(call.name, call.arguments, self._context(work, call.id), agreed)
            outcome = ASKED if output.asks else "ok"
        except ToolError as error:
            output, outcome = ToolOutput(str(error)), "error"
        await self._record(work, index, outcome=outcome, result=output.text, output=output)
        self._bus.publish(ToolEnded(work.turn.lane, work.turn.id, call.call_id, call.name, outcome, output.text))

    async def _agreed(self, call: Call) -> ApprovalNeed | None:
        """What somebody said yes to before this call."""
        approval = await self._db.read(approvals.get, call.approval_id) if call.approval_id else None
        if approval is None or approval.state != approvals.ApprovalState.ALLOWED:
            return None
        return ApprovalNeed(approval.question, bool(approval.touches_host), approval.subject, approval.where_run)

    def _context(self, work: Work, row_id: str) -> ToolContext:
        context = self._parts.context(work.key, work.turn.person_id, work.begun.role, work.options.folder)

        async def started_group(group: int) -> None:
            await self._db.write(tool_calls.note_process, row_id, group=group, started=birth_of(group))

        return replace(
            context,
            call_id=row_id,
            session_id=work.turn.session_id,
            turn_id=work.turn.id,
            started_group=started_group,
            on_behalf_of=work.origin,
            depth=work.options.depth,
            words=work.words,
        )

    async def _record(
        self, work: Work, index: int, *, outcome: str, result: str, output: ToolOutput = NO_OUTPUT
    ) -> None:
        """Write a result; what the tool changes in our own store is written with it, in one transaction."""
        call = work.calls[index]
        await self._db.write(
            tool_calls.finish,
            work.begun.claim,
            work.turn,
            call,
            outcome=outcome,
            result=result,
            images=output.images,
            effect=output.effect,
            now=self._parts.clock.now(),
        )
        if output.after is not None:
            output.after()
        work.calls[index] = replace(call, state=CallState.DONE, outcome=outcome, result=result)
        told = ChatMessage(Role.TOOL, result, tool_call_id=call.call_id, name=call.name, images=output.images)
        work.history.append(told)

    async def _close(self, work: Work, index: int, why: str) -> None:
        """Answer a call that does not run, in words that tell the model whether to try again."""
        if why != "refused":
            await self._record(work, index, outcome=why, result=rules.INTERRUPTED_BY_RESTART)
            return
        approval = await self._db.read(approvals.get, work.calls[index].approval_id)
        if approval is not None and approval.state == approvals.ApprovalState.EXPIRED:
            await self._expire(work, index, approval)
            return
        text = rules.QUESTION_CANCELLED.format(reason=approval.reason if approval else "unknown")
        if approval is not None and approval.state == approvals.ApprovalState.DENIED:
            text = rules.QUESTION_DENIED.format(reason=f": {approval.reason}" if approval.reason else "")
        await self._record(work, index, outcome=why, result=text)

    async def _expire(self, work: Work, index: int, approval: approvals.Approval) -> None:
        """Tell the person and the model that nobody answered. The same again and again ends the turn."""
        text = rules.QUESTION_EXPIRED.format(span=ENGLISH.span(approval.expires_at - approval.created_at))

        def tell(tx: Tx) -> None:
            now = self._parts.clock.now()
            outbox.enqueue(tx, self._parts.cards(tx, approval, now=now), now=now)

        def due() -> None:
            if approval.target:
                self._parts.letters.due_target(approval.target)

        output = ToolOutput(text, effect=tell, after=due)
        await self._record(work, index, outcome="refused", result=text, output=output)

    async def _stop_asking(self, work: Work) -> None:
        """Raise when what nobody answers has been asked often enough."""
        limit = self._parts.config().approvals.identical_timeouts
        expired = [call for call in work.calls if call.outcome == "refused" and call.approval_id]
        for call in expired:
            count = await self._db.read(_timeouts, work.turn.id, call)
            if count >= limit:
                raise _UnansweredError(count)

    async def _sleep_on_approval(self, work: Work) -> bool:
        now = self._parts.clock.now()
        work.control.is_ending = True
        shown = await self._last_of_preview(work)
        sleeps = await self._db.write(turn_steps.wait_for_approval, work.begun.claim, work.turn, shown, now=now)
        self._parts.letters.due(shown)
        if sleeps:
            return True
        work.control.is_ending = False
        work.calls = await self._db.write(tool_calls.as_they_stand, work.turn.id, work.steps, now=now)
        return False

    async def _last_of_preview(self, work: Work) -> list[Outgoing]:
        """A question ends the message that was growing: it keeps what was said, and the answer comes below."""
        preview = await self._preview(work)
        said = next((message.text for message in reversed(work.history) if message.role is Role.ASSISTANT), "")
        return self._replies(work, without_files(said).strip() or work.words.ASKED_BELOW, preview) if preview else []

    # The end

    async def _finish(self, work: Work, reply: ModelReply) -> bool:
        text = reply.text.strip()
        if not text and not reply.tool_calls:
            text = work.words.EMPTY_REPLY
        shown = "\n\n".join([*work.notices, text, *_cut_off(work, reply, text)]).strip()
        is_stored = bool(reply.tool_calls) and bool(unanswered(work.history))
        answer = ChatMessage(Role.ASSISTANT, text, tool_calls=reply.tool_calls, thought=reply.thought)
        said = [] if is_stored else [answer]
        aloud = await self._said_aloud(work, text)
        return await self._end(work, TurnState.DONE, "", text=shown, messages=said, reply=reply, aloud=aloud)

    async def _said_aloud(self, work: Work, text: str) -> Parcel | None:
        """The answer as a voice message too, where the chat wants that for voice messages and one came."""
        prompt = work.begun.prompt
        is_spoken_to = prompt is not None and any(file.kind is AttachmentKind.VOICE for file in prompt.attachments)
        if not is_spoken_to or work.begun.choices.voice != "on" or work.key.platform in DOORS:
            return None
        if any(name == SPEAKS for name, _ in work.made):  # it has spoken already, in words of its own choice
            return None
        return await self._parts.aloud.say(work.key.target, text, work.words, lane=work.turn.lane, turn_id=work.turn.id)

    async def _end_failed(self, work: Work, error: ModelError) -> bool:
        """What a person has begun to read stays, with the reason why there is no more of it."""
        kind, partial = error.kind.value, error.partial.strip()
        text = told(error, work.words)
        if partial:
            text = f"{partial} …\n\n{text}"
        said = [ChatMessage(Role.ASSISTANT, f"{partial} {work.words.INTERRUPTED_MARK}")] if partial else []
        reason = f"model {kind}: {error}"
        return await self._end(work, TurnState.FAILED, reason, text=text, messages=said, error_kind=kind)

    async def _end_interrupted(self, work: Work, reason: StopReason) -> bool:
        state = TurnState.INTERRUPTED if reason is StopReason.INTERRUPTED else TurnState.STOPPED
        partial = work.partial.strip()
        said = [ChatMessage(Role.ASSISTANT, f"{partial} {work.words.INTERRUPTED_MARK}")] if partial else []
        return await self._end(work, state, reason.value, messages=said)

    async def _end(
        self,
        work: Work,
        state: TurnState,
        reason: str,
        *,
        text: str = "",
        messages: Sequence[ChatMessage] = (),
        reply: ModelReply = NO_REPLY,
        error_kind: str = "",
        aloud: Parcel | None = None,
    ) -> bool:
        work.control.is_ending = True
        # Providers repeat the key that they refuse, and errors what they were made of.
        reason, text = self._parts.toolbox.hide(reason), self._parts.toolbox.hide(text)
        preview = await self._preview(work)
        if preview and not text:
            text = f"{work.partial.strip()} {work.words.INTERRUPTED_MARK}".strip()
        mail = await self._mail(work, text, preview, state) if text else Mail()
        if aloud is not None:
            mail = replace(mail, rows=[*mail.rows, *aloud.rows], files=[*mail.files, *aloud.files])
        replies, messages = mail.rows, [*messages, *mail.note]
        ending = Ending(
            state,
            InboxState.ANSWERED if state is TurnState.DONE else InboxState.SET_ASIDE,
            reason,
            messages,
            replies,
            reply.usage,
            reply.model,
            self._parts.cards,
        )
        with self._parts.letters.place_for(replies) as place:
            sleeps, sending = await self._db.write(
                self._finished, work, ending, mail, place, now=self._parts.clock.now()
            )
            self._parts.letters.stored(replies, sending, place)
        result = TurnResult(
            work.turn.id,
            state.value,
            text if state is TurnState.DONE else work.partial,
            reason,
            reply.finish_reason if state is TurnState.DONE else "error",
            reply.tool_calls,
            work.spent,
            reply.model,
            error_kind,
        )
        self._bus.publish(TurnEnded(work.turn.lane, work.turn.id, state.value, text, reason, result))
        if work.goes_on:
            history = [*work.history, *messages]
            name = work.options.model or work.begun.choices.model
            talk = Talk(work.key, work.turn.session_id, history, work.begun.summary, name, work.was_too_long)
            self._parts.grown(talk)
        return sleeps

    async def _mail(self, work: Work, text: str, preview: str, state: TurnState) -> Mail:
        """What goes out. Only the agent's own last words can bring files along."""
        if state is not TurnState.DONE:
            return Mail(self._replies(work, text, preview))
        message = self._message(work, text)
        return await self._parts.media.compose(
            message,
            lambda: self._context(work, ""),
            work.words,
            turn_id=work.turn.id,
            lane=work.turn.lane,
            preview=preview,
        )

    def _finished(
        self, tx: Tx, work: Work, ending: Ending, mail: Mail, place: Place | None, *, now: float
    ) -> tuple[bool, outbox.Begun | None]:
        """The end of the turn and the beginning of its delivery, in one transaction."""
        files_out.note(tx, mail.files)
        sleeps = turn_end.finish(tx, work.begun.claim, work.turn, ending, now=now)
        return sleeps, self._parts.letters.begin_within(tx, ending.replies, place, now=now)

    async def _preview(self, work: Work) -> str:
        shown = await self._parts.previews.close(work.turn.id)
        if not shown and work.begun.is_resumed:
            return await self._db.read(outbox.preview_of_turn, work.turn.id)
        return shown

    def _replies(self, work: Work, text: str, preview: str) -> list[Outgoing]:
        message = self._message(work, text)
        return self._parts.letters.rows(message, OutboxKind.REPLY, turn_id=work.turn.id, replaces=preview)

    def _message(self, work: Work, text: str) -> OutboundMessage:
        whole = f"{work.header}\n\n{text}" if work.header else text
        return OutboundMessage(work.answered_in, whole, reply_to=work.turn.reply_to)


def _asked(work: Work) -> ModelReply | None:
    """The question with which this turn ends, if one of its newest calls asked one."""
    question = next((call.result for call in work.calls if call.outcome == ASKED), "")
    return ModelReply(question) if question else None


def _cut_off(work: Work, reply: ModelReply, text: str) -> list[str]:
    """Whoever reads half an answer is told so. A client of the API has it in the reply's finish_reason."""
    why = {"length": work.words.CUT_OFF_LENGTH, "content_filter": work.words.CUT_OFF_FILTER}.get(reply.finish_reason)
    is_told = work.key.platform in DOORS or text.endswith("…")
    return [why] if why and not is_told else []


def plus(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cached_tokens + other.cached_tokens,
    )


def busy_mode_of(config: Config, key: SessionKey, chosen: str) -> BusyMode:
    """The busy mode of a chat: its own choice, else what is settled for it, its account's, or the general one."""
    if key.platform in DOORS:
        return BusyMode.QUEUE
    if chosen in list(BusyMode):  # not a word of a newer version
        return BusyMode(chosen)
    account = config.account(key.platform, key.account)
    return config.chat(key).busy_mode or (account.busy_mode if account else None) or config.agent.busy_mode


def _timeouts(tx: Tx, turn_id: str, call: Call) -> int:
    approval = approvals.get(tx, call.approval_id)
    if approval is None or approval.state != approvals.ApprovalState.EXPIRED:
        return 0
    return approvals.timeouts(tx, turn_id, name=call.name, arguments=call.arguments, subject=approval.subject)


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
