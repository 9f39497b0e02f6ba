"""Run a tool and record its result once: for the model and the transcript."""

from __future__ import annotations

from dataclasses import replace

from hermes.agent.toolkit.context import ApprovalNeed, ToolOutput
from hermes.core import turn as rules
from hermes.core.approval import ApprovalState
from hermes.core.errors import ToolError
from hermes.core.messages import ChatMessage, Role
from hermes.core.ports import ModelReply
from hermes.core.roles import capped
from hermes.core.turn import CallState
from hermes.services.events import ToolEnded, ToolStarted
from hermes.services.turns.turn import RunningTurn, TurnServices
from hermes.store import approvals
from hermes.store.turns import tool_calls
from hermes.store.turns.tool_calls import StoredCall

NO_OUTPUT = ToolOutput("")
ASKED = "asked"
"""The outcome of a call that put a question to the person: the turn ends with it, also after a crash."""


_TIES_TO_NODE = frozenset({"terminal", "process", "execute_code", "write_file", "patch"})
"""Tools that leave files or processes on the machine: in a cluster the conversation then stays with its node."""


class LoopingError(Exception):
    """The model makes one and the same call again and again."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Calls:
    def __init__(self, parts: TurnServices) -> None:
        self._parts = parts

    async def run(self, work: RunningTurn, index: int) -> None:
        """Run one call and record its result; the same call again and again is warned of, and then ends the turn."""
        call = work.calls[index]
        count = rules.identical_in_a_row(work.made, call.name, call.arguments) + 1
        work.made.append((call.name, call.arguments))
        if count > self._parts.config().agent.identical_call_limit:
            await self.record(work, index, outcome="repeated", result=rules.SAME_CALL_AGAIN.format(count=count))
            if count - self._parts.config().agent.identical_call_limit >= rules.WARNED_CALLS:
                raise LoopingError(count)
            return
        node = self._parts.node if call.name in _TIES_TO_NODE else ""
        now = self._parts.clock.now()
        role = await self._parts.db.write(tool_calls.start, work.begun.claim, call.id, now=now, node=node)
        if role != work.begun.role:  # whoever lost a role meanwhile has lost it for this call too
            work.begun = replace(work.begun, role=capped(work.begun.role, role))
        self._parts.bus.publish(ToolStarted(work.turn.lane, work.turn.id, call.call_id, call.name, call.arguments))
        try:
            self._parts.toolbox.check_among(call.name, work.options.own_tools)
            agreed = await self._agreed(call)
            context = self._parts.context_of(work, call.id, call.name)
            output = await self._parts.toolbox.call(call.name, call.arguments, context, agreed)
            outcome = ASKED if output.asks else "ok"
        except ToolError as error:
            output, outcome = ToolOutput(str(error)), "error"
        await self.record(work, index, outcome=outcome, result=output.text, output=output)
        self._parts.bus.publish(ToolEnded(work.turn.lane, work.turn.id, call.call_id, call.name, outcome, output.text))

    async def _agreed(self, call: StoredCall) -> ApprovalNeed | None:
        """The approval that was given for this call, if any."""
        approval = await self._parts.db.read(approvals.get, call.approval_id) if call.approval_id else None
        if approval is None or approval.state != ApprovalState.ALLOWED:
            return None
        return ApprovalNeed(approval.question, bool(approval.touches_host), approval.subject, approval.where_run)

    async def record(
        self, work: RunningTurn, index: int, *, outcome: str, result: str, output: ToolOutput = NO_OUTPUT
    ) -> None:
        """Write a result; what the tool changes in our own store is written with it, in one transaction."""
        call = work.calls[index]
        await self._parts.db.write(
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
        message = ChatMessage(Role.TOOL, result, tool_call_id=call.call_id, name=call.name, images=output.images)
        work.history.append(message)


def closing_question(work: RunningTurn) -> ModelReply | None:
    """The question with which this turn ends, if one of its newest calls asked one."""
    question = next((call.result for call in work.calls if call.outcome == ASKED), "")
    return ModelReply(question) if question else None
