"""Where a request goes on: at the end of its chain, in a branch of it, in a named session, or in one of its own."""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.core.roles import Action, may
from hermes.servers.api import parse
from hermes.servers.api.context import CALLER, SESSION_ID_HEADER, Caller, SessionNames, session_names
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.responses.chains import read_lines, read_tail, read_up_to
from hermes.servers.api.responses.finalizer import OpenResponse, ResponseFinalizer
from hermes.servers.api.responses.request import ResponseRequest, check_results
from hermes.servers.api.transcripts import check_answers, has_transcript
from hermes.services.gateway import Gateway
from hermes.store.api.responses import StoredResponse
from hermes.store.ids import new_id


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a request goes on: its session, what stands before its input there, and the chain's system words."""

    names: SessionNames
    before: tuple[ChatMessage, ...] = ()
    standing: str = ""


class ResponsePlaces:
    def __init__(self, gateway: Gateway, finalizer: ResponseFinalizer) -> None:
        self._gateway = gateway
        self._finalizer = finalizer

    async def place(
        self, request: web.Request, asked: ResponseRequest, hold: OpenResponse
    ) -> tuple[Continuation, ResponseRequest]:
        """Where the request goes on, and its input without what is stored there already."""
        previous = await self._previous(request[CALLER], asked)
        if previous is None:
            return await self._beginning(request, asked)
        asked = asked.without_our_calls()
        names = session_names(request, session_id=previous.session_id)
        is_said = SESSION_ID_HEADER in request.headers
        if names.session_id != previous.session_id:
            message = f"That response belongs to another session than {SESSION_ID_HEADER} names: leave the header out."
            raise bad_request(message, code="session_mismatch", param=SESSION_ID_HEADER)
        standing = "\n\n".join(text for text in (previous.standing, asked.input.instructions) if text)
        answers_calls = asked.input.messages[0].role is Role.TOOL
        tail = await self._gateway.db.read(read_tail, previous, names.key, with_lines=answers_calls)
        if tail.is_lost and not asked.conversation:
            raise _no_previous(asked.previous, "Its session was deleted")
        is_newest = tail.is_newest and not self._finalizer.is_taken(previous.session_id, previous.event_id)
        if is_newest or tail.is_open or is_said or asked.conversation:
            hold.session_id = names.session_id
            _check_results_follow(tail.messages, asked)
            return Continuation(replace(names, person=tail.key.person), (), standing), asked
        branch = tuple(await self._gateway.db.read(read_up_to, previous))
        _check_results_follow(branch, asked)
        return Continuation(replace(names, session_id=new_id("s")), branch, standing), asked

    async def _previous(self, caller: Caller, asked: ResponseRequest) -> StoredResponse | None:
        if asked.conversation:
            return await self._finalizer.newest_of(caller.sender_id, asked.conversation)
        if not asked.previous:
            return None
        stored = await self.seen_by(caller, asked.previous)
        if stored is None:
            raise _no_previous(asked.previous, "It was deleted, is older than is kept, or was not stored")
        return stored

    async def chain_of(self, caller: Caller, asked: ResponseRequest) -> list[ChatMessage]:
        """What stands before the input of a request, for whoever counts or shortens it."""
        previous = await self._previous(caller, asked)
        lines = await self._gateway.db.read(read_lines, previous) if previous is not None else []
        return [*lines, *asked.history.messages]

    async def seen_by(self, caller: Caller, response_id: str) -> StoredResponse | None:
        stored = await self._finalizer.load(response_id)
        return stored if stored is not None and is_visible(stored, caller) else None

    async def _beginning(self, request: web.Request, asked: ResponseRequest) -> tuple[Continuation, ResponseRequest]:
        names = session_names(request)
        before = asked.history.messages
        has_own = names.is_named and await has_transcript(self._gateway, names)
        if has_own:
            before, asked = (), asked.without_our_calls()
        if names.is_named and not before:
            await check_answers(self._gateway, names, asked.input.messages, "input")
        else:
            check_results(before, asked.input)
        if not has_own and any(message.tool_calls for message in asked.input.messages):
            from hermes.services.requests.legs import with_steps  # a start needs it not

            whole = await self._gateway.db.read(with_steps, request[CALLER].sender_id, asked.input.messages)
            asked = replace(asked, input=replace(asked.input, messages=whole))
        standing = "\n\n".join(text for text in (asked.history.instructions, asked.input.instructions) if text)
        return Continuation(names, before, standing), asked


async def place_of(
    finalizer: ResponseFinalizer, gateway: Gateway, response_id: str, caller: Caller
) -> SessionKey | None:
    """Where a response was answered; None where this caller has none of that id, or its session was deleted."""
    stored = await finalizer.load(response_id)
    if stored is None or not is_visible(stored, caller):
        return None
    tail = await gateway.db.read(read_tail, stored, SessionNames(stored.session_id, True, person=caller.person).key)
    return None if tail.is_lost else tail.key


def is_visible(stored: StoredResponse, caller: Caller, action: Action = Action.READ_ALL) -> bool:
    return stored.asked_by == caller.sender_id or may(caller.role, action)


def _no_previous(response_id: str, why: str) -> ApiError:
    message = (
        f"Previous response with id {response_id[:80]!r} not found. {why}: leave previous_response_id out and send the "
        "talk so far as input."
    )
    return bad_request(message, code="previous_response_not_found", param="previous_response_id")


def _check_results_follow(before: tuple[ChatMessage, ...], asked: ResponseRequest) -> None:
    """Results at the beginning of the input are of calls that the session knows."""
    parse.check_results(asked.input.messages, "input", parse.known_calls(before))
