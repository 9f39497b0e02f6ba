"""Run a turn in a lane of its own, as an inbox event; its answer is an outbox row of the chat that began it."""

from __future__ import annotations

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.requests import EVENT_KINDS, AgentRequest, RequestKind, TurnOptions
from hermes.core.roles import PersonRole
from hermes.services.requests.requests import Requests
from hermes.services.requests.subtasks import PLATFORM
from hermes.services.turns.lanes import Lanes
from hermes.store import codec
from hermes.store.db import Database
from hermes.store.inbox import InboxRow
from hermes.store.turns import turns
from hermes.store.turns.turns import TurnState, Working

MAX_RUNNING = 5
BRIEFING = (
    "You work on this in the background of a chat, on your own. Nobody can answer questions: decide for yourself. Your "
    "last message is told in the chat, so begin it with what you found or did."
)


@dataclass(frozen=True, slots=True)
class Agent:
    """Something that runs for a person. ``name`` is what they call it by; ``origin`` is the chat it works for."""

    name: str
    lane: str
    is_waiting: bool
    since: float
    task: str
    origin: str = ""
    is_background: bool = False


class Background:
    def __init__(self, db: Database, requests: Requests, lanes: Lanes) -> None:
        self._db = db
        self._requests = requests
        self._lanes = lanes

    async def begin(self, task: str, *, key: str, lane: str, person_id: str, role: PersonRole) -> None:
        """Store it and begin. Asked twice with one key, it runs once. It never has more rights than ``role``."""
        request = AgentRequest(
            RequestKind.RUN,
            SessionKey(PLATFORM, ChatKind.DM, key),
            person_id,
            (ChatMessage(Role.USER, task),),
            TurnOptions(instructions=BRIEFING, origin=lane, reports=True),
            person_id=person_id,
        )
        await self._requests.submit(request, key=f"{PLATFORM}:{key}", event_id=f"ev_{key}", at_most=role)

    async def working_for(self, person_id: str) -> list[Agent]:
        found = await self._db.read(turns.working_for, person_id) if person_id else []
        return [_agent(working) for working in found]

    async def stop(self, agent: Agent) -> bool:
        """End its turn, running or waiting. What waits in line behind it goes on."""
        return bool((await self._lanes.stop(agent.lane, up_to=0)).turn_id)


def origin_of(row: InboxRow) -> str:
    """The lane of the chat on whose behalf this was asked for, '' where it was written in a chat itself."""
    return _parse_prompt(row.kind, row.body)[1].origin


def _agent(working: Working) -> Agent:
    task, options = _parse_prompt(working.kind, working.body)
    return Agent(
        working.turn_id[-4:],
        working.lane,
        working.state == TurnState.WAITING,
        working.since,
        task,
        options.origin,
        options.reports,
    )


def _parse_prompt(kind: str, body: str) -> tuple[str, TurnOptions]:
    try:
        if kind in EVENT_KINDS:
            request = codec.load_request(body)
            return request.messages[-1].text if request.messages else "", request.options
        return codec.load_message(body).text if body else "", TurnOptions()
    except ValueError:  # damaged: it can be listed and stopped all the same
        return "", TurnOptions()
