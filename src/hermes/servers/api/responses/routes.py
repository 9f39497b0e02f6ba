"""`/v1/responses`: answers that are kept and gone on from.

A chain (`previous_response_id`, or a `conversation` by its name) goes on in one session: only the new input is
added to it, so the 500th response costs what the fifth did. Going on from an earlier response of a chain makes a
branch, in a session of its own. ``stored`` reads, streams, deletes and cancels what is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from aiohttp import web

from hermes.core.approval import ApprovalState, effect_sha256
from hermes.core.keys import SessionKey
from hermes.core.messages import Json, Role
from hermes.core.requests import AgentRequest, RequestKind
from hermes.servers.api import parse, response_format, results
from hermes.servers.api.approvals import (
    Decision,
    Seen,
    TypedAnswer,
    find_typed,
    look,
    no_such_approval,
    read_typed,
)
from hermes.servers.api.approvals import answer as answer_approval
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.context import (
    CALLER,
    REQUEST_ID,
    SESSION_ID_HEADER,
    ApiParts,
    Caller,
    SessionNames,
    session_names,
)
from hermes.servers.api.errors import NO_RETRY, ApiError, bad_request
from hermes.servers.api.idempotency import HEADER as IDEMPOTENCY_KEY
from hermes.servers.api.idempotency import REPLAYED, Attempt, Attempts, attempt_name, key_reused
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.sampling import check_sampling
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.answers import Answering, ResponseAnswers, answering_of, with_headers
from hermes.servers.api.responses.finalizer import OpenResponse, ResponseFinalizer, ResponseLimits
from hermes.servers.api.responses.places import Continuation, ResponsePlaces
from hermes.servers.api.responses.references import with_items
from hermes.servers.api.responses.request import ResponseRequest, parse_request, read_history
from hermes.servers.api.responses.stored import StoredResponseRoutes
from hermes.servers.api.security import refuse_tools
from hermes.servers.api.streams.leaving import minding_the_client, stops_when_left
from hermes.servers.app import RouteAdder
from hermes.services.requests.requests import PLATFORM, RequestHandle
from hermes.store import codec
from hermes.store.api import pictures
from hermes.store.api.idempotency import KEPT_SECONDS
from hermes.store.api.responses import NewResponse
from hermes.store.ids import new_id
from hermes.store.reports import trace
from hermes.store.turns import tool_calls

TOOL_ITEMS_HEADER = "X-Hermes-Tool-Items"


KEEPER = web.AppKey("responses", ResponseFinalizer)


def routes(parts: ApiParts, limits: InputLimits = INPUT_LIMITS, kept: ResponseLimits | None = None) -> RouteAdder:
    def add(app: web.Application) -> None:
        finalizer = ResponseFinalizer(parts.gateway, kept)
        handlers = ResponseRoutes(parts, finalizer, limits)
        app[KEEPER] = finalizer
        app.cleanup_ctx.append(finalizer.running)
        app.on_shutdown.append(handlers.answers.calls.end)
        stored = StoredResponseRoutes(parts.gateway, finalizer, handlers.answers, handlers.attempts)
        later = LaterRoutes(parts, handlers, finalizer, limits)
        app.router.add_post("/v1/responses", handlers.create)
        app.router.add_post("/v1/responses/input_tokens", later.count)
        app.router.add_post("/v1/responses/compact", later.compact)
        app.router.add_get("/v1/responses/{id}", stored.show)
        app.router.add_delete("/v1/responses/{id}", stored.delete)
        app.router.add_get("/v1/responses/{id}/input_items", stored.show_input)
        app.router.add_post("/v1/responses/{id}/cancel", stored.cancel)
        for method, path, name in CONVERSATIONS:
            app.router.add_route(method, f"/v1/conversations{path}", later.conversation(name))

    return add


def without_secrets(value: Any, hide: Callable[[str], str]) -> Any:
    """The same JSON, with secrets of ours hidden in its texts: what a client sends along is not kept."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {key: without_secrets(inner, hide) for key, inner in value.items()}
    return [without_secrets(inner, hide) for inner in value] if isinstance(value, list) else value


CONVERSATIONS = (
    ("POST", "", "create"),
    ("GET", "/{conversation_id}", "show"),
    ("POST", "/{conversation_id}", "change"),
    ("DELETE", "/{conversation_id}", "delete"),
    ("GET", "/{conversation_id}/items", "items"),
    ("POST", "/{conversation_id}/items", "add_items"),
    ("GET", "/{conversation_id}/items/{item_id}", "item"),
)


class LaterRoutes:
    """Routes that few clients use: their modules are imported by the first request."""

    def __init__(
        self, parts: ApiParts, handlers: ResponseRoutes, finalizer: ResponseFinalizer, limits: InputLimits
    ) -> None:
        self._parts = parts
        self._handlers = handlers
        self._finalizer = finalizer
        self._limits = limits

    async def count(self, request: web.Request) -> web.Response:
        from hermes.servers.api.responses.tokens import TokenRoutes

        return await TokenRoutes(self._parts, self._handlers.places.chain_of, self._limits).count(request)

    async def compact(self, request: web.Request) -> web.Response:
        from hermes.servers.api.responses.tokens import TokenRoutes

        return await TokenRoutes(self._parts, self._handlers.places.chain_of, self._limits).compact(request)

    def conversation(self, name: str) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            from hermes.servers.api.responses.conversations import ConversationRoutes

            handler: Callable[[web.Request], Awaitable[web.Response]] = getattr(
                ConversationRoutes(self._parts, self._finalizer, self._limits), name
            )
            return await handler(request)

        return answer


class ResponseRoutes:
    def __init__(self, parts: ApiParts, finalizer: ResponseFinalizer, limits: InputLimits) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._tools = parts.tools
        self._finalizer = finalizer
        self._limits = limits
        self._naming = asyncio.Lock()
        self._files = FileTexts()
        self.places = ResponsePlaces(parts.gateway, finalizer)
        self.attempts = Attempts(parts.gateway.requests, parts.gateway.clock)
        self.answers = ResponseAnswers(parts, finalizer)

    @cached_property
    def _is_template_alone(self) -> Callable[[Json, Any], bool]:
        from hermes.servers.api.direct.tasks import is_template_alone  # with the first request: a start needs it not

        return is_template_alone

    async def create(self, request: web.Request) -> web.StreamResponse:
        read = await parse.read_body(request, self._limits)
        if self._is_template_alone(read, read.get("input")):
            from hermes.servers.api.responses.tasks import answer_task

            return await answer_task(request, self._gateway, read, self._limits)
        body = await with_items(read, partial(self.places.seen_by, request[CALLER]))
        body = await self._files.put_in(request, body, "input", self._limits)
        await note_left_out(request, self._gateway, body)
        reading = partial(parse_request, own_tools=own_tools(request), tool_items=_tool_items(request))
        asked = await parse.apart(request, reading, body, self._limits)
        stops = stops_when_left(request, stops=asked.streams and not asked.is_stored)  # nobody could read it again
        asked = replace(asked, stops_when_left=True) if stops else asked
        name = await attempt_name(request, read)
        with self.attempts.attempt(request, name) as attempt:
            answered = await self._answer_questions(request, asked, attempt)
            if answered is not None:
                return answered
            key, earlier = await self._begun_before(request, asked)
            if earlier := earlier or await self.attempts.earlier(request, name):
                attempt.event_id = earlier
                answer = await self._again(request, asked, earlier, attempt)
                if answer is not None:
                    return answer
                key = ""  # it names the attempt that ended without a step
            response_id = new_id("resp")
            with self._finalizer.holding(response_id) as hold:
                async with self._asking(request, asked, response_id, hold, key, attempt) as answering:
                    attempt.event_id = hold.event_id
                    return await self._respond(request, asked, answering)

    async def _respond(self, request: web.Request, asked: ResponseRequest, answering: Answering) -> web.StreamResponse:
        request[REQUEST_ID] = answering.hold.event_id
        if asked.is_background and not asked.streams and answering.state is None:
            return with_headers(answering.response, answering.headers)
        answer = self.answers.stream if asked.streams else self.answers.answer
        if not asked.stops_when_left:
            return await answer(request, answering)
        async with minding_the_client(self._requests, self.attempts, answering.attempt, answering.handle):
            return await answer(request, answering)

    # A request that was sent before

    async def _begun_before(self, request: web.Request, asked: ResponseRequest) -> tuple[str, str]:
        """A name for this request, '' for none; and the event of the response that it began before a restart.

        What the gate remembers of an `Idempotency-Key` ends with the process, and a stored response does not.
        """
        given, caller = request.headers.get(IDEMPOTENCY_KEY, ""), request[CALLER]
        if not given or not asked.is_stored:
            return "", ""
        key = f"response:{caller.sender_id}:{given}"
        row = await self._gateway.db.read(trace.event_of_key, f"{PLATFORM}/{key}")
        if row is None:
            return key, ""
        stored = await self._finalizer.load(shapes.response_id_of(row.id))
        if stored is None or row.received_at < self._gateway.clock.now() - KEPT_SECONDS:
            return "", ""
        messages, _ = await asyncio.to_thread(pictures.take_out, asked.input.messages)
        if codec.load_request(row.body).messages[-stored.inputs :] != messages:
            raise key_reused()
        return "", row.id

    async def _again(
        self, request: web.Request, asked: ResponseRequest, event_id: str, attempt: Attempt
    ) -> web.StreamResponse | None:
        """Answer with the response that was begun before. None: it ended without a step, so it is done anew."""
        async with self._requests.join(event_id) as joined:
            if joined is None:
                return None
            handle, state = joined
            stored = await self._finalizer.load(shapes.response_id_of(event_id)) if asked.is_stored else None
            if state.status in ("failed", "cancelled"):
                is_reopened = await self._requests.reopen(event_id)
                state = await self._requests.state_of(event_id) or state
                if not is_reopened and state.status in ("failed", "cancelled"):  # else another retry was quicker
                    return None
                if stored is not None:
                    await self._finalizer.reopen(stored.id)
                    stored = await self._finalizer.load(stored.id)
            if stored is not None:
                stored = await self._finalizer.settled(stored)
                # A turn that another retry has just reopened runs, though its response still shows the failure.
                is_over = not stored.is_open and state.status in results.FINAL_STATUS
                if not asked.streams and (asked.is_background or is_over):
                    return with_headers(stored.body, {SESSION_ID_HEADER: stored.session_id, REPLAYED: "true"})
            names = replace(session_names(request), session_id=SessionKey.parse(state.row.lane).chat)
            response = stored.body if stored is not None else self._new(asked, names, new_id("resp"))
            if response["status"] not in ("queued", "in_progress"):
                response = {**response, "status": "in_progress", "output": []}
            with self._finalizer.holding(new_id("resp"), event_id) as hold:
                answering = answering_of(request, asked, names, response, hold, handle, attempt, state, is_replay=True)
                return await self._respond(request, asked, answering)

    # Answers to questions

    async def _answer_questions(
        self, request: web.Request, asked: ResponseRequest, attempt: Attempt
    ) -> web.StreamResponse | None:
        """Answer what the input answers. Where it does nothing else, the turn that asked goes on in this response.

        An answer in the middle of the input is history: it counts if the question still waits, and is no error.
        """
        caller, typed = request[CALLER], _typed_answer(asked)
        if typed is not None:
            await refuse_tools(request, self._tools)
            key = str(session_names(request).key)
            found = await self._gateway.db.read(find_typed, typed, caller, key, now=self._gateway.clock.now())
            if found is None:
                return None
            given = [found]
        elif asked.answers:
            await refuse_tools(request, self._tools)
            given = []
            for answer in asked.answers:
                seen = await self._gateway.db.read(look, answer.approval_id, caller)
                if seen is not None:
                    # The question that is answered by its id held all of the call.
                    given.append((seen, Decision(answer.allow, answer.reason, effect_sha256=_effect(seen))))
                elif asked.goes_on:
                    raise no_such_approval(answer.approval_id)
        else:
            return None
        goes_on = typed is not None or asked.goes_on
        event_id = given[-1][0].event_id if given else ""
        async with self._requests.join(event_id) as joined:
            if goes_on and joined is not None:
                await self._finalizer.take_over(event_id)
            for seen, decision in given:
                await self._decide(caller, seen, decision, is_new=goes_on)
            if not goes_on:
                return None
            if joined is None:
                message = "Answered. The question was asked in a chat, where the answer of its turn goes."
                raise ApiError(409, message, code="answered_elsewhere", kind="conflict_error", headers=NO_RETRY)
            return await self._go_on(request, asked, [seen for seen, _ in given], joined[0], attempt)

    async def _decide(self, caller: Caller, seen: Seen, decision: Decision, *, is_new: bool) -> None:
        state = ApprovalState.ALLOWED if decision.allow else ApprovalState.DENIED
        if seen.approval.state == state or not (is_new or seen.approval.is_pending):
            return  # sent again, or history
        try:
            await answer_approval(self._gateway, caller, seen.approval, decision)
        except ApiError as error:
            error.headers.update(NO_RETRY)
            raise

    async def _go_on(
        self,
        request: web.Request,
        asked: ResponseRequest,
        answered: Sequence[Seen],
        handle: RequestHandle,
        attempt: Attempt,
    ) -> web.StreamResponse:
        """A response of its own for the rest of a turn whose question was answered."""
        seen = answered[-1]
        state = await self._requests.state_of(seen.event_id)
        assert state is not None  # noqa: S101 - it was joined
        calls = [await self._gateway.db.read(tool_calls.get, answer.approval.tool_call_id) for answer in answered]
        approvals = {
            call.call_id: answer.approval.id for call, answer in zip(calls, answered, strict=True) if call is not None
        }
        names = replace(
            session_names(request),
            session_id=SessionKey.parse(state.row.lane).chat,
            person=SessionKey.parse(state.row.lane).person,
        )
        response_id = new_id("resp")
        response = self._new(asked, names, response_id)
        response["hermes"]["continues"] = next(reversed(approvals), "")
        attempt.event_id = seen.event_id
        has_ended = state.status in results.FINAL_STATUS and not handle.has_events
        with self._finalizer.holding(response_id, seen.event_id) as hold:
            if asked.is_stored:
                await self._put(response, asked, Continuation(names), request[CALLER], hold)
            begun = state if has_ended or state.pending else None
            answering = answering_of(request, asked, names, response, hold, handle, attempt, begun, approvals=approvals)
            return await self._respond(request, asked, answering)

    def _new(self, asked: ResponseRequest, names: SessionNames, response_id: str) -> Json:
        model = asked.options.model or self._gateway.models.model_for().label
        return shapes.new_response(
            asked, names, response_id=response_id, model=model, created_at=self._gateway.clock.now()
        )

    @asynccontextmanager
    async def _asking(
        self,
        request: web.Request,
        asked: ResponseRequest,
        response_id: str,
        hold: OpenResponse,
        key: str,
        attempt: Attempt,
    ) -> AsyncIterator[Answering]:
        """Store the response and ask for it. Everything that can be refused has been refused before."""
        caller = request[CALLER]
        async with self._one_name_at_a_time(asked):
            waiting = await self._waiting_items(caller, asked)
            place, asked = await self.places.place(request, asked, hold)
            if waiting:
                history = read_history(waiting, self._limits)
                standing = "\n\n".join(text for text in (place.standing, history.instructions) if text)
                place = replace(place, before=(*place.before, *history.messages), standing=standing)
            if asked.options.format is not None:
                await response_format.check_model(
                    self._gateway, place.names.key, asked.options, response_format.RESPONSE_PARAM
                )
            await check_sampling(self._gateway, place.names.key, asked.options)
            response = self._new(asked, place.names, response_id)
            response = await parse.apart(request, without_secrets, response, self._gateway.toolbox.hide)
            if asked.is_stored:
                await self._put(response, asked, place, caller, hold)
        ask = AgentRequest(
            RequestKind.RESPONSE if asked.is_stored else RequestKind.CHAT,
            place.names.key,
            caller.sender_id,
            (*place.before, *asked.input.messages),
            asked.with_system(place.standing).options,
        )
        async with self._requests.ask(
            ask, key=key, event_id=hold.event_id, role=caller.role, attempt=attempt.name
        ) as handle:
            if waiting:
                from hermes.store.api import conversations

                db = await self._finalizer.db()
                await db.write(conversations.take_items, caller.sender_id, asked.conversation, len(waiting))
            yield answering_of(request, asked, place.names, response, hold, handle, attempt)

    async def _waiting_items(self, caller: Caller, asked: ResponseRequest) -> list[Json]:
        """Items that were added to the conversation since its last response."""
        if not asked.conversation:
            return []
        from hermes.store.api import conversations

        db = await self._finalizer.db()
        made = await db.read(conversations.get, caller.sender_id, asked.conversation)
        return made.items if made is not None else []

    async def _put(
        self, response: Json, asked: ResponseRequest, place: Continuation, caller: Caller, hold: OpenResponse
    ) -> None:
        new = NewResponse(
            response["id"],
            hold.event_id,
            place.names.session_id,
            caller.sender_id,
            response,
            len(asked.input.messages),
            place.standing,
            asked.conversation,
        )
        await self._finalizer.put(hold, new)

    @asynccontextmanager
    async def _one_name_at_a_time(self, asked: ResponseRequest) -> AsyncIterator[None]:
        """Two first requests of one conversation at once are one conversation."""
        if not asked.conversation:
            yield
            return
        async with self._naming:
            yield


def _effect(seen: Seen) -> str:
    return effect_sha256(seen.tool, seen.arguments)


def _typed_answer(asked: ResponseRequest) -> TypedAnswer | None:
    """`/approve CODE` or `/deny CODE` as the last message of the user."""
    last = asked.input.messages[-1] if asked.input.messages else None
    if last is None or last.role is not Role.USER or last.images or asked.answers:
        return None
    typed = read_typed(last.text)
    return typed if typed is not None and not typed.unread else None


def _tool_items(request: web.Request) -> str:
    shape = request.headers.get(TOOL_ITEMS_HEADER, "mcp_call").strip().lower()
    if shape not in ("mcp_call", shapes.FUNCTION_ITEMS):
        message = f"{TOOL_ITEMS_HEADER} is mcp_call or {shapes.FUNCTION_ITEMS}."
        raise bad_request(message, code="invalid_value", param=TOOL_ITEMS_HEADER)
    return shape
