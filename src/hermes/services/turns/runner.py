"""Run a turn step by step, until it ends or waits for an approval."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hermes.core import turn as rules
from hermes.core.errors import ModelError, StoreIsDownError
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelReply
from hermes.services.events import SegmentEnded, TurnStarted
from hermes.services.outbound.approval_cards import ApprovalCards
from hermes.services.turns.approvals import TurnApprovals, UnansweredError
from hermes.services.turns.endings import Endings
from hermes.services.turns.files import Files
from hermes.services.turns.model_calls import ModelCalls, calls_of_client, has_ours, with_fresh_ids
from hermes.services.turns.replies import Replies
from hermes.services.turns.stop import StopReason, TurnControl
from hermes.services.turns.tool_calls import Calls, LoopingError, closing_question
from hermes.services.turns.turn import PreparationError, RunningTurn, TurnServices, calls_of_this_turn
from hermes.store.turns import steps
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.lanes import LostClaim


class TurnRunner:
    def __init__(self, parts: TurnServices) -> None:
        self._parts = parts
        replies = Replies(parts)
        self._files = Files(parts)
        self._asking = ModelCalls(parts)
        self._calls = Calls(parts)
        self._questions = TurnApprovals(parts, self._calls, replies)
        self._endings = Endings(parts, replies)

    @property
    def cards(self) -> ApprovalCards:
        """What is shown in place of the questions of a turn that ends while it sleeps."""
        return self._parts.cards

    async def run(self, begun: BegunTurn, control: TurnControl) -> bool:
        """Carry the turn to its end, or to an approval it waits for. True when the lane sleeps now.

        A reason in ``control`` at the start, or with a cancellation, ends the turn cleanly; any other cancellation
        travels on and leaves the turn as it is stored, for the next process.
        """
        work = self._taken_up(begun, control)
        early = control.reason
        if early is not None:
            return await self._endings.interrupted(work, early)
        try:
            return await self._guarded(work)
        except asyncio.CancelledError as error:
            if control.reason is None and not _is_cancelled():
                # Something that it waited for. Taken for a stop of ours, it would be tried again and again.
                raise RuntimeError("cancelled") from error
            if control.reason in (None, StopReason.DRAIN):
                self._parts.previews.leave(work.turn.id)
                raise
            # The cancellation was a request that is met: what is left to write must not be cancelled by it.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return await self._endings.interrupted(work, control.reason)
        except (StoreIsDownError, LostClaim):
            self._parts.previews.leave(work.turn.id)
            raise

    async def fail(self, begun: BegunTurn, control: TurnControl, error: Exception) -> bool:
        """End a turn that broke our own code, in words, so that its lane goes on."""
        work = RunningTurn(begun, SessionKey.parse(begun.turn.lane), [], [], control, self._words(begun))
        text = work.words.FAILED.format(turn_id=begun.turn.id)
        return await self._endings.failed(work, f"{type(error).__name__}: {error}", text)

    def _taken_up(self, begun: BegunTurn, control: TurnControl) -> RunningTurn:
        """The turn in hand; whoever watches hears of it, and what was stored with its begin is sent."""
        key = SessionKey.parse(begun.turn.lane)
        work = RunningTurn(begun, key, list(begun.history), list(begun.calls), control, self._words(begun))
        work.made = calls_of_this_turn(begun.history)
        self._parts.bus.publish(
            TurnStarted(begun.turn.lane, begun.turn.id, begun.is_resumed, begun.event_ids, begun.choices.tool_progress)
        )
        self._parts.outbox_writer.due(begun.outgoing)
        return work

    def _words(self, begun: BegunTurn) -> Texts:
        text = begun.prompt.message.text if begun.prompt is not None else ""
        return words_of(pick(self._parts.config().language, begun.language, text=text))

    async def _guarded(self, work: RunningTurn) -> bool:
        """Carry it within its limits; whatever it meets there ends it in words."""
        if work.turn.attempts > rules.MAX_DEATHS:
            text = work.words.SET_ASIDE_AFTER_DEATHS.format(deaths=rules.MAX_DEATHS, turn_id=work.turn.id)
            return await self._endings.set_aside(work, "crashed three times while it ran", text)
        limit = self._parts.config().agent.turn_timeout_seconds
        try:
            async with asyncio.timeout(limit):
                reply = await self._carry(work)
        except TimeoutError:
            text = work.words.TIMED_OUT.format(span=work.words.span(limit))
            return await self._endings.failed(work, "it took too long", text)
        except ModelError as error:
            return await self._endings.model_failed(work, error)
        except LoopingError as error:
            text = work.words.LOOPING.format(count=error.count)
            return await self._endings.failed(work, "the model repeated one call", text)
        except PreparationError as error:
            return await self._endings.failed(work, str(error), work.words.JOB_RUN_FAILED.format(reason=error))
        except UnansweredError as error:
            text = work.words.APPROVAL_TIMEOUTS.format(count=error.count)
            return await self._endings.failed(work, "nobody answered what it asked", text)
        # The end is written outside the time limit, which could otherwise cut it in two.
        return True if reply is None else await self._endings.answered(work, reply)

    async def _carry(self, work: RunningTurn) -> ModelReply | None:
        """Step by step to the last words; None when the turn sleeps on an approval."""
        await self._parts.toolbox.ready()
        await self._files.tell_lost(work)
        await self._files.tell_moved(work)
        await self._files.fetch(work)
        if work.options.answer or work.options.script or work.options.skills:
            from hermes.services.turns.preparation import prepare  # loaded when the first job runs

            if plain := await prepare(self._parts, work):
                return plain
        limit = self._parts.config().agent.max_iterations
        while True:
            repeatable = [self._parts.toolbox.is_repeatable(call.name) for call in work.calls]
            match rules.next_action(work.calls, repeatable, steps=work.steps, max_steps=limit):
                case rules.RunCall(index):
                    await self._calls.run(work, index)
                case rules.CloseCall(index, "refused"):
                    await self._questions.close_refused(work, index)
                case rules.CloseCall(index, why):
                    await self._calls.record(work, index, outcome=why, result=rules.INTERRUPTED_BY_RESTART)
                case rules.WaitForApproval():
                    if await self._questions.sleep(work):
                        return None
                case rules.CallModel(wants_summary):
                    if asked := closing_question(work):
                        return asked
                    await self._questions.stop_asking(work)
                    if theirs := calls_of_client(work):
                        return theirs
                    reply = with_fresh_ids(await self._asking.ask(work, wants_summary=wants_summary), work.history)
                    if wants_summary:
                        return replace(reply, tool_calls=())  # nobody would answer them
                    if not has_ours(work, reply):
                        return reply
                    await self._add_step(work, reply)

    async def _add_step(self, work: RunningTurn, reply: ModelReply) -> None:
        """Store what the model said with the calls it asks for, each judged by its rule, and put their questions."""
        message = ChatMessage(Role.ASSISTANT, reply.text, tool_calls=reply.tool_calls, thought=reply.thought)
        theirs = {tool.name for tool in work.options.tools}
        ours = [call for call in reply.tool_calls if call.name not in theirs]
        new_calls = [await self._questions.judged(work, call, position) for position, call in enumerate(ours)]
        work.partial = ""  # from here on the store has it; an interrupt must not write it a second time
        work.calls = await self._parts.db.write(
            steps.add_step,
            work.begun.claim,
            work.turn,
            message,
            new_calls,
            usage=reply.usage,
            origin=work.grants_of,
            is_mixed=work.is_mixed,
            now=self._parts.clock.now(),
        )
        work.step_added()
        work.history.append(message)
        shown = reply.text if work.options.format is None else ""
        work.segments.append(shown.strip())
        self._parts.bus.publish(SegmentEnded(work.turn.lane, work.turn.id, shown))
        self._questions.tell(work, new_calls)


def _is_cancelled() -> bool:
    """Whether we are to end. A library may also cancel what it made itself, and a turn that waits for that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
