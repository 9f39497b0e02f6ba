"""Run subtasks: turns that another turn asked for, each in a lane of its own.

They are events in the inbox like everything else, keyed by the call that made them. So after a crash the call runs
again, finds its errands where they are and waits for them; nothing is done twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from hermes.agent.delegation import Subtask, SubtaskResult
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.services.requests.requests import Requests
from hermes.services.turns.lanes import Lanes
from hermes.store import codec
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.sessions import transcripts
from hermes.store.turns.turns import Turn

log = logging.getLogger(__name__)

PLATFORM = "task"
LOOK_SECONDS = 5.0
STOP_SECONDS = 10.0
BRIEFING = (
    "You work on one task that another agent handed to you. Nobody can answer questions: decide for yourself, "
    "and report what you found or did, and what you could not do."
)


class Subtasks:
    def __init__(self, db: Database, requests: Requests, lanes: Lanes) -> None:
        self._db = db
        self._requests = requests
        self._lanes = lanes

    async def run(self, subtasks: Sequence[Subtask]) -> list[SubtaskResult]:
        """Run all until each has ended. Cancelling stops them; a drain leaves them."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(subtask), name=f"errand {subtask.key}") for subtask in subtasks]
        except asyncio.CancelledError:
            if not self._lanes.is_draining:
                # Only its own deadline shields this: our canceller waits for the end of our processes.
                try:
                    async with asyncio.timeout(STOP_SECONDS):
                        await asyncio.gather(*(self._requests.stop(_event_id(subtask)) for subtask in subtasks))
                except TimeoutError:
                    log.warning("Subtasks slow to stop", extra={"count": len(subtasks)})
            raise
        return [task.result() for task in tasks]

    async def _one(self, subtask: Subtask) -> SubtaskResult:
        async with self._requests.ask(
            _request(subtask), key=f"{PLATFORM}:{subtask.key}", event_id=_event_id(subtask), at_most=subtask.role
        ) as handle:
            while True:
                state = await self._requests.state_of(handle.event_id)
                if state is None:
                    return SubtaskResult("failed", "It was not taken.")
                if state.row.state not in (InboxState.QUEUED, InboxState.TAKEN):
                    if state.turn is None:
                        return SubtaskResult("set_aside", state.row.reason)
                    answer = await self._db.read(last_words, state.turn)
                    return SubtaskResult(state.turn.state, answer or state.turn.reason or "It ended without a word.")
                handle.turn_id = state.row.turn_id or handle.turn_id
                # Until the turn ended, or a while: what the bus did not tell is found in the store.
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await handle.result()


def _event_id(subtask: Subtask) -> str:
    return f"ev_{subtask.key}"


def _request(subtask: Subtask) -> AgentRequest:
    options = TurnOptions(instructions=BRIEFING, origin=str(subtask.origin), depth=subtask.depth)
    return AgentRequest(
        RequestKind.RUN,
        SessionKey(PLATFORM, ChatKind.DM, subtask.key),
        subtask.person_id,
        (ChatMessage(Role.USER, subtask.task),),
        options,
        person_id=subtask.person_id,
    )


def last_words(tx: Tx, turn: Turn) -> str:
    """The last text that the agent said in a turn, or ''."""
    for line in reversed(transcripts.lines_of_turn(tx, turn.session_id, turn.id)):
        message = codec.read_chat(line.body) if line.kind == "message" else None
        if message is not None and message.role is Role.ASSISTANT and message.text:
            return message.text
    return ""
