"""Ask a person before a call runs; wait for the answer, or close the question."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.agent.toolkit.context import ApprovalNeed, ToolOutput
from hermes.core import turn as rules
from hermes.core.approval import SHARED, ApprovalState
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.media import without_files
from hermes.core.messages import Role, ToolCall
from hermes.core.roles import Action, PersonRole, may
from hermes.core.turn import CallState
from hermes.services.events import ApprovalRequested
from hermes.services.outbound import approval_cards
from hermes.services.outbound.alerts import home_targets
from hermes.services.turns.replies import Replies
from hermes.services.turns.tool_calls import Calls
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store import approvals, outbox
from hermes.store.approvals import Approval, Question
from hermes.store.db import Tx
from hermes.store.ids import new_code, new_id
from hermes.store.outbox import Outgoing
from hermes.store.turns import steps, tool_calls
from hermes.store.turns.tool_calls import NewCall, StoredCall

if TYPE_CHECKING:
    from hermes.services.outbound.approval_questions import QuestionTarget

ASKED_EACH_TIME = frozenset({"delegate_task"})
"""Tools that hand a task to a turn of its own, where this rule does not hold: a grant would allow every tool."""


class UnansweredError(Exception):
    """The model asks for one and the same thing, and nobody answers."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class TurnApprovals:
    def __init__(self, parts: TurnServices, calls: Calls, replies: Replies) -> None:
        self._parts = parts
        self._calls = calls
        self._replies = replies

    # Put

    async def judged(self, work: RunningTurn, call: ToolCall, position: int) -> NewCall:
        """The call as it is stored, with its question where it needs one.

        A rule may look at files and reads whatever a model wrote, and a long question is written to a file, so neither
        holds up the loop.
        """
        if not self._parts.toolbox.has_rule(call.name) and not work.is_mixed:
            return self._new_call(work, call, position)
        return await asyncio.to_thread(self._new_call, work, call, position)

    def _new_call(self, work: RunningTurn, call: ToolCall, position: int) -> NewCall:
        row_id = f"{work.turn.id}:{work.steps + 1}:{position}"
        if not self._parts.toolbox.is_among(call.name, work.options.own_tools):
            return NewCall(row_id, call)  # it will not run, so there is nothing to ask
        context = self._parts.context_of(work, row_id, call.name)
        need = self._parts.toolbox.approval(call.name, call.arguments, context, self._among_others(work, call))
        if need is None:
            return NewCall(row_id, call)
        from hermes.core.markdown.call_card import Card  # no start needs these
        from hermes.services.outbound.approval_questions import QuestionWriter

        seconds = self._parts.config().approvals.seconds_for(work.origin.platform)
        question = Question(
            new_id("ap"),
            new_code(),
            work.turn.person_id,
            need.touches_host,
            need.question,
            self._parts.clock.now() + seconds,
            need.subject,
            need.where,
        )
        writer = QuestionWriter(self._parts.outbox_writer, self._parts.spool)
        card = Card(work.words, call.name, call.arguments, question.question, question.where_run)
        chats = self._question_targets(work, touches_host=question.touches_host)
        question, outgoing = writer.write(card, question, chats, seconds=seconds, turn_id=work.turn.id)
        own = [row for row in outgoing if row.target == str(work.origin.target)]
        if own:
            question = replace(question, target=own[-1].target, question_id=own[-1].id)
        return NewCall(row_id, call, question, outgoing)

    def _among_others(self, work: RunningTurn, call: ToolCall) -> ApprovalNeed | None:
        """Return the question before a personal tool, in a conversation with people of lower roles.

        The model has read their messages and may follow them with rights that they do not have.
        """
        if not work.is_mixed or not self._parts.toolbox.is_personal(call.name):
            return None
        question = work.words.ASK_SHARED.format(name=call.name, role=work.words.role(PersonRole(work.begun.heard)))
        subject = "" if call.name in ASKED_EACH_TIME else f"{SHARED}{call.name}"
        return ApprovalNeed(question, touches_host=may(work.role, Action.APPROVE_HOST), subject=subject)

    def _question_targets(self, work: RunningTurn, *, touches_host: bool) -> list[QuestionTarget]:
        """Return the chat that is asked, and the home channels where only an admin may answer."""
        from hermes.services.outbound.approval_questions import QuestionTarget

        origin = work.origin.target
        is_for_admins = touches_host and not may(work.role, Action.APPROVE_HOST)
        chats = [QuestionTarget(origin, reply_to=work.turn.reply_to, is_for_admins=is_for_admins)]
        if is_for_admins:
            homes = [target for target in home_targets(self._parts.config()) if target != origin]
            chats += [QuestionTarget(target, copy) for copy, target in enumerate(homes[: approval_cards.MAX_COPIES])]
        return chats

    def tell(self, work: RunningTurn, new_calls: Sequence[NewCall]) -> None:
        """Send the questions of these calls, now that they are stored, and tell whoever watches."""
        for new in new_calls:
            asked = new.approval
            # Not where a standing grant answered in a person's place.
            if asked is None or not any(call.id == new.id and call.state == CallState.WAITING for call in work.calls):
                continue
            self._parts.outbox_writer.due(new.outgoing)
            event = ApprovalRequested(work.turn.lane, work.turn.id, asked.id, asked.code, asked.question)
            self._parts.bus.publish(event)

    # Slept on

    async def sleep(self, work: RunningTurn) -> bool:
        """Leave the turn until somebody answers. False: an answer is here already, and the turn goes on."""
        now = self._parts.clock.now()
        work.control.is_ending = True
        shown = await self._last_of_preview(work)
        sleeps = await self._parts.db.write(steps.wait_for_approval, work.begun.claim, work.turn, shown, now=now)
        self._parts.outbox_writer.due(shown)
        if sleeps:
            return True
        work.control.is_ending = False
        if work.control.asked_late is not None:
            work.control.reason = work.control.asked_late
            raise asyncio.CancelledError
        work.calls = await self._parts.db.write(tool_calls.as_they_stand, work.turn.id, work.steps, now=now)
        return False

    async def _last_of_preview(self, work: RunningTurn) -> list[Outgoing]:
        """A question ends the message that was growing: it keeps what was said, and the answer comes below."""
        preview = await self._replies.close_preview(work)
        if not preview:
            return []
        text = next((message.text for message in reversed(work.history) if message.role is Role.ASSISTANT), "")
        return self._replies.rows(work, without_files(text).strip() or work.words.ASKED_BELOW, preview)

    # Answered with no, or not at all

    async def close_refused(self, work: RunningTurn, index: int) -> None:
        """Answer a call that does not run, in words that tell the model whether to try again."""
        approval = await self._parts.db.read(approvals.get, work.calls[index].approval_id)
        if approval is not None and approval.state == ApprovalState.EXPIRED:
            await self._close_expired(work, index, approval)
            return
        await self._calls.record(work, index, outcome="refused", result=_refusal(approval))

    async def _close_expired(self, work: RunningTurn, index: int, approval: Approval) -> None:
        """Tell the person and the model that nobody answered."""
        text = rules.QUESTION_EXPIRED.format(span=ENGLISH.span(approval.expires_at - approval.created_at))

        def tell(tx: Tx) -> None:
            now = self._parts.clock.now()
            outbox.enqueue(tx, self._parts.cards(tx, approval, now=now), now=now)

        def due() -> None:
            if approval.target:
                self._parts.outbox_writer.due_target(approval.target)

        output = ToolOutput(text, effect=tell, after=due)
        await self._calls.record(work, index, outcome="refused", result=text, output=output)

    async def stop_asking(self, work: RunningTurn) -> None:
        """Raise when what nobody answers has been asked often enough."""
        limit = self._parts.config().approvals.identical_timeouts
        refused = [call for call in work.calls if call.outcome == "refused" and call.approval_id]
        for call in refused:
            count = await self._parts.db.read(_timeouts, work.turn.id, call)
            if count >= limit:
                raise UnansweredError(count)


def _refusal(approval: Approval | None) -> str:
    if approval is not None and approval.state == ApprovalState.DENIED:
        return rules.QUESTION_DENIED.format(reason=f": {approval.reason}" if approval.reason else "")
    return rules.QUESTION_CANCELLED.format(reason=approval.reason if approval else "unknown")


def _timeouts(tx: Tx, turn_id: str, call: StoredCall) -> int:
    """How often this was asked in vain; 0 where somebody said no."""
    approval = approvals.get(tx, call.approval_id)
    if approval is None or approval.state != ApprovalState.EXPIRED:
        return 0
    return approvals.timeouts(tx, turn_id, name=call.name, arguments=call.arguments, subject=approval.subject)
