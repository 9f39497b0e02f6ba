"""Call the model with the history, the tools it may use, and steering messages.

A talk that is too long for the model is tried once more with its newer half, and then with the results of its tools cut
short; pictures that it cannot see are told in words.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hermes.agent.compression import BYTES_PER_TOKEN, PROMPT_SHARE, summary_message
from hermes.agent.prompt import Scene, newest_half, unanswered, with_short_results
from hermes.agent.step import ask_model
from hermes.agent.vision import can_see, is_about_pictures, without_pictures
from hermes.config import Config
from hermes.core import turn as rules
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError, ModelErrorKind
from hermes.core.i18n.catalogue import localize
from hermes.core.lane import DOORS, BusyMode
from hermes.core.messages import ChatMessage, Role, ToolSpec
from hermes.core.ports import Model, ModelReply, ModelRequest
from hermes.services.events import ModelCalled, ReasoningArrived, TextArrived
from hermes.services.models import route_of
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store.api import pictures
from hermes.store.ids import new_id
from hermes.store.turns import steps
from hermes.store.turns.turns import NO_USAGE

SUMMARY_WANTED = (ChatMessage(Role.SYSTEM, rules.SUMMARY_REQUEST),)


@dataclass(frozen=True, slots=True)
class _Form:
    """All of a request but its history, with which it may have to be tried again.

    ``last`` stands behind the history; ``most`` is how many bytes of it the model takes.
    """

    model: Model
    scene: Scene
    tools: tuple[ToolSpec, ...]
    last: Sequence[ChatMessage]
    most: int


class ModelCalls:
    def __init__(self, parts: TurnServices) -> None:
        self._parts = parts

    async def ask(self, work: RunningTurn, *, wants_summary: bool) -> ModelReply:
        """The model's next words. ``wants_summary``: it is offered no more tools and asked to come to an end."""
        await self._take_steering(work)
        config, options, choices = self._parts.config(), work.options, work.begun.choices
        chosen = options.model if options.job else choices.model
        model = self._parts.model(work.origin, options.model, chosen)
        tools = () if wants_summary or not model.has_tools else self._offered(work)
        named = options.model or route_of(config, work.origin, chosen)
        persona = config.persona_for(work.origin, choices.personality).text
        form = _Form(
            model,
            Scene(work.key, work.turn.session_id, work.role, work.begun.person_name, persona),
            tools,
            SUMMARY_WANTED if wants_summary else (),
            int(config.context_window(named) * BYTES_PER_TOKEN * PROMPT_SHARE),
        )
        work.partial = ""
        work.thinking.append("")
        began, outcome, name, usage = time.monotonic(), "cancelled", named or model.label, NO_USAGE
        try:
            reply = await self._answer(work, form)
            outcome, usage = "ok", reply.usage
            name = f"{reply.provider}/{reply.model}" if reply.provider else reply.model or name
            return reply
        except ModelError as error:
            outcome = error.kind.value
            raise
        finally:
            seconds, turn_id = time.monotonic() - began, work.turn.id
            called = ModelCalled(turn_id, name, outcome, seconds, usage.prompt_tokens, usage.completion_tokens)
            self._parts.bus.publish_model(called)

    async def _answer(self, work: RunningTurn, form: _Form) -> ModelReply:
        try:
            return await self._seen_or_not(work, form)
        except ModelError as error:
            if error.kind is not ModelErrorKind.CONTEXT:
                raise
            return await self._ask_with_less(work, form, error)

    async def _ask_with_less(self, work: RunningTurn, form: _Form, error: ModelError) -> ModelReply:
        half = newest_half(work.history)
        sees = shows_pictures(self._parts.config(), work)
        for shorter in (half, with_short_results(half or work.history)):
            if not shorter:
                continue
            work.was_too_long = True
            try:
                return await self._send(work, form, shorter if sees else without_pictures(shorter))
            except ModelError as again:
                if again.kind is not ModelErrorKind.CONTEXT:
                    raise
                error = again
        raise error

    async def _take_steering(self, work: RunningTurn) -> None:
        """In steer mode, or by /steer, what was written meanwhile joins in before the model speaks again."""
        if work.steps == 0:
            return
        chosen, is_marked = await self._parts.db.read(steps.steering, work.turn)
        takes_all = self._parts.config().busy_mode_for(work.key, chosen) is BusyMode.STEER
        if not takes_all and not is_marked:
            return
        added = await self._parts.db.write(
            steps.steer,
            work.begun.claim,
            work.turn,
            compose=self._parts.prompts.compose,
            only_marked=not takes_all,
            now=self._parts.clock.now(),
        )
        if added is not None:
            work.history.append(added)

    def _offered(self, work: RunningTurn) -> tuple[ToolSpec, ...]:
        """Our tools and the client's; one of theirs with the name of ours stands in its place."""
        before = [summary_message(work.begun.summary)] if work.begun.summary else []
        ours = self._parts.toolbox.offered(work.origin, work.role, [*before, *work.history])
        if work.options.own_tools is not None:
            ours = self._parts.toolbox.only(ours, work.options.own_tools)
        if not work.options.tools:
            return ours
        theirs = {tool.name for tool in work.options.tools}
        return (*(tool for tool in ours if tool.name not in theirs), *work.options.tools)

    async def _seen_or_not(self, work: RunningTurn, form: _Form) -> ModelReply:
        """Ask, and once more without the pictures where the model turns out to be blind."""
        came_by_chat = work.key.platform not in DOORS and any(message.images for message in work.history)
        if not came_by_chat:
            return await self._send(work, form, work.history)
        if shows_pictures(self._parts.config(), work):
            try:
                return await self._send(work, form, work.history)
            except ModelError as error:
                if not is_about_pictures(error):
                    raise
        return await self._send(work, form, without_pictures(work.history))

    async def _send(self, work: RunningTurn, form: _Form, history: Sequence[ChatMessage]) -> ModelReply:
        options = work.options
        if names := pictures.names_in(history):
            history = pictures.put_back(history, await self._parts.db.read(pictures.load, names))
        prompt = self._parts.prompts.messages(
            form.scene,
            history,
            options.instructions,
            summary=work.begun.summary,
            is_whole=work.brings_talk,
            most=form.most,
        )
        request = ModelRequest(
            [*prompt, *form.last],
            form.tools,
            max_tokens=options.max_tokens,
            temperature=options.temperature,
            tool_choice=options.tool_choice if form.tools and work.steps == 0 else "",
            reasoning=options.reasoning or work.begun.choices.reasoning,
            language=work.words.LANGUAGE,
            format=options.format,
            sampling=options.sampling,
        )
        if self._parts.check is not None:
            self._parts.check()
        on_text = self._arrived if options.format is None else self._held_back
        reply = await ask_model(
            form.model, request, partial(on_text, work), partial(_noticed, work), partial(self._reasoned, work)
        )
        work.spent = reply.usage if work.spent is NO_USAGE else work.spent + reply.usage
        return reply

    def _arrived(self, work: RunningTurn, text: str) -> None:
        work.partial += text
        self._parts.bus.publish(TextArrived(work.turn.lane, work.turn.id, text))

    def _reasoned(self, work: RunningTurn, text: str) -> None:
        if work.key.platform in DOORS:
            work.thinking[-1] += text
            self._parts.bus.publish(ReasoningArrived(work.turn.lane, work.turn.id, text))
        else:
            self._parts.bus.publish_reasoning(work.turn.lane, work.turn.id, text)

    def _held_back(self, work: RunningTurn, text: str) -> None:
        """Whoever asked for a form reads the answer and nothing else: words before a call would break it."""
        work.partial += text


def _noticed(work: RunningTurn, text: str) -> None:
    notice = localize(text, work.words)
    if notice not in work.notices:  # a fallback says so with every call; a person hears it once
        work.notices.append(notice)


def shows_pictures(config: Config, work: RunningTurn) -> bool:
    """Whether pictures are shown to the model of this turn."""
    name = work.options.model or work.begun.choices.model or config.model.default
    return config.vision.show == "always" or (config.vision.show == "auto" and can_see(name))


def with_fresh_ids(reply: ModelReply, history: Sequence[ChatMessage]) -> ModelReply:
    """Some models count their calls from zero in every answer: an id that stands in the talk already is made anew."""
    if not reply.tool_calls:
        return reply
    taken = {call.id for message in history for call in message.tool_calls}
    if taken.isdisjoint(call.id for call in reply.tool_calls):
        return reply
    fresh = (replace(call, id=new_id("call")) if call.id in taken else call for call in reply.tool_calls)
    return replace(reply, tool_calls=tuple(fresh))


# The client's own tools


def has_ours(work: RunningTurn, reply: ModelReply) -> bool:
    """Whether the model asks for a tool of ours; what else it asks for is the client's to run."""
    theirs = {tool.name for tool in work.options.tools} if reply.tool_calls else ()
    return any(call.name not in theirs for call in reply.tool_calls)


def calls_of_client(work: RunningTurn) -> ModelReply | None:
    """In a batch of both kinds ours have run by now; what is left without a result is the client's to run."""
    left = unanswered(work.history) if work.calls and work.options.tools else ()
    if not left:
        return None
    text = next(message.text for message in reversed(work.history) if message.role is Role.ASSISTANT)
    return ModelReply(text, left, finish_reason="tool_calls")
