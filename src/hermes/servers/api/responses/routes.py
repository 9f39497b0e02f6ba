"""`/v1/responses`: answers that are kept, read again, and gone on from.

A chain (`previous_response_id`, or a `conversation` by its name) goes on in one session: only the new input is
added to it, so the 500th response costs what the fifth did. Going on from an earlier response of a chain makes a
branch, in a session of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from aiohttp import web

from hermes.agent.prompt import unanswered
from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.requests import AgentRequest, RequestKind, TurnResult
from hermes.core.roles import Action, may
from hermes.core.text import storable
from hermes.servers.api import parse, response_format, results
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
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.idempotency import HEADER as IDEMPOTENCY_KEY
from hermes.servers.api.idempotency import IN_FLIGHT, REPLAYED, key_reused
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.sampling import check_sampling
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.events import ResponseEvents
from hermes.servers.api.responses.finalizer import OpenResponse, ResponseFinalizer, Retention
from hermes.servers.api.responses.references import with_items
from hermes.servers.api.responses.request import ResponseRequest, check_results, parse_request
from hermes.servers.api.shutdown import OpenRequests
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.streams.turn_stream import follow
from hermes.servers.api.transcripts import check_answers, has_transcript, newest_lines
from hermes.servers.app import RouteAdder, json_response
from hermes.services.events import ApprovalRequested, TurnEnded
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM, RequestHandle
from hermes.store import codec, inbox, trace
from hermes.store.api import pictures
from hermes.store.api.idempotency import KEPT_SECONDS
from hermes.store.api.responses import NewResponse, StoredResponse
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.inbox import InboxRow
from hermes.store.sessions import transcripts

log = logging.getLogger(__name__)

MOST_LISTED = 100
DEFAULT_LISTED = 20
TRIES_TO_STOP = 20
STOP_PAUSE_SECONDS = 0.05


KEEPER = web.AppKey("responses", ResponseFinalizer)


def routes(parts: ApiParts, limits: InputLimits = INPUT_LIMITS, kept: Retention | None = None) -> RouteAdder:
    def add(app: web.Application) -> None:
        finalizer = ResponseFinalizer(parts.gateway, kept)
        handlers = ResponseRoutes(parts, finalizer, limits)
        app[KEEPER] = finalizer
        app.cleanup_ctx.append(finalizer.running)
        app.on_shutdown.append(handlers.calls.end)
        app.router.add_post("/v1/responses", handlers.create)
        app.router.add_get("/v1/responses/{id}", handlers.show)
        app.router.add_delete("/v1/responses/{id}", handlers.delete)
        app.router.add_get("/v1/responses/{id}/input_items", handlers.show_input)
        app.router.add_post("/v1/responses/{id}/cancel", handlers.cancel)

    return add


async def place_of(
    finalizer: ResponseFinalizer, gateway: Gateway, response_id: str, caller: Caller
) -> SessionKey | None:
    """Where a response was answered; None where this caller has none of that id, or its session was deleted."""
    stored = await finalizer.load(response_id)
    if stored is None or not _is_visible(stored, caller):
        return None
    tail = await gateway.db.read(_tail, stored, SessionNames(stored.session_id, True, person=caller.person).key)
    return None if tail.is_lost else tail.key


def without_secrets(value: Any, hide: Callable[[str], str]) -> Any:
    """The same JSON, with secrets of ours hidden in its texts: what a client sends along is not kept."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {key: without_secrets(inner, hide) for key, inner in value.items()}
    return [without_secrets(inner, hide) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Continuation:
    """Where a request goes on: its session, what stands before its input there, and the chain's system words."""

    names: SessionNames
    before: tuple[ChatMessage, ...] = ()
    standing: str = ""


@dataclass(frozen=True, slots=True)
class Answering:
    """One request on its way to its answer."""

    asked: ResponseRequest
    names: SessionNames
    response: Json
    hold: OpenResponse
    handle: RequestHandle


class ResponseRoutes:
    def __init__(self, parts: ApiParts, finalizer: ResponseFinalizer, limits: InputLimits) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._finalizer = finalizer
        self._limits = limits
        self._naming = asyncio.Lock()
        self._files = FileTexts()
        self.calls = OpenRequests()

    async def create(self, request: web.Request) -> web.StreamResponse:
        body = await parse.read_body(request, self._limits)
        body = await with_items(body, partial(self._seen_by, request[CALLER]))
        body = await self._files.put_in(request, body, "input", self._limits)
        await note_left_out(request, self._gateway, body)
        asked = await parse.apart(request, parse_request, body, self._limits, own_tools(request))
        key, earlier = await self._begun_before(request, asked)
        if earlier is not None:
            return _replay(earlier, asked)
        response_id = new_id("resp")
        event_id = shapes.event_id_of(response_id)
        with self._finalizer.holding(event_id) as hold:
            async with self._asking(request, asked, response_id, hold, key) as answering:
                if asked.streams:
                    return await self._stream(request, answering)
                if asked.is_background:
                    return _with_headers(answering.response, answering.names.headers())
                return await self._answer(answering)

    async def _begun_before(self, request: web.Request, asked: ResponseRequest) -> tuple[str, StoredResponse | None]:
        """A name for this request, '' for none; and the response that it began before the gateway was restarted.

        What the gate remembers of an `Idempotency-Key` ends with the process, and a stored response does not.
        """
        given, caller = request.headers.get(IDEMPOTENCY_KEY, ""), request[CALLER]
        if not given or not asked.is_stored:
            return "", None
        key = f"response:{caller.sender_id}:{given}"
        row = await self._gateway.db.read(trace.event_of_key, f"{PLATFORM}/{key}")
        if row is None:
            return key, None
        stored = await self._finalizer.load(shapes.response_id_of(row.id))
        if stored is None or row.received_at < self._gateway.clock.now() - KEPT_SECONDS:
            return "", None
        stored = await self._finalizer.settled(stored)
        if stored.status in ("failed", "cancelled"):
            return "", None
        said, _ = await asyncio.to_thread(pictures.take_out, asked.said.messages)
        if codec.load_request(row.body).messages[-stored.inputs :] != said:
            raise key_reused()
        return "", stored

    @asynccontextmanager
    async def _asking(
        self, request: web.Request, asked: ResponseRequest, response_id: str, hold: OpenResponse, key: str
    ) -> AsyncIterator[Answering]:
        """Store the response and ask for it. Everything that can be refused has been refused before."""
        caller = request[CALLER]
        model = asked.options.model or self._gateway.models.model_for().label
        async with self._one_name_at_a_time(asked):
            place = await self._place(request, asked, hold)
            if asked.options.format is not None:
                await response_format.check_model(
                    self._gateway, place.names.key, asked.options, response_format.RESPONSE_PARAM
                )
            await check_sampling(self._gateway, place.names.key, asked.options)
            response = shapes.new_response(
                asked, place.names, response_id=response_id, model=model, created_at=self._gateway.clock.now()
            )
            response = await parse.apart(request, without_secrets, response, self._gateway.toolbox.hide)
            if asked.is_stored:
                await self._put(response, asked, place, caller, hold)
        ask = AgentRequest(
            RequestKind.RESPONSE if asked.is_stored else RequestKind.CHAT,
            place.names.key,
            caller.sender_id,
            (*place.before, *asked.said.messages),
            asked.with_system(place.standing).options,
        )
        request[REQUEST_ID] = hold.event_id
        async with self._requests.ask(ask, key=key, event_id=hold.event_id, role=caller.role) as handle:
            yield Answering(asked, place.names, response, hold, handle)

    async def _put(
        self, response: Json, asked: ResponseRequest, place: Continuation, caller: Caller, hold: OpenResponse
    ) -> None:
        new = NewResponse(
            response["id"],
            hold.event_id,
            place.names.session_id,
            caller.sender_id,
            response,
            len(asked.said.messages),
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

    # Where a request goes on

    async def _place(self, request: web.Request, asked: ResponseRequest, hold: OpenResponse) -> Continuation:
        previous = await self._previous(request[CALLER], asked)
        if previous is None:
            return await self._beginning(request, asked)
        names = session_names(request, session_id=previous.session_id)
        is_said = SESSION_ID_HEADER in request.headers
        if names.session_id != previous.session_id:
            message = f"That response belongs to another session than {SESSION_ID_HEADER} names: leave the header out."
            raise bad_request(message, code="session_mismatch", param=SESSION_ID_HEADER)
        standing = "\n\n".join(text for text in (previous.standing, asked.said.instructions) if text)
        answers_calls = asked.said.messages[0].role is Role.TOOL
        tail = await self._gateway.db.read(_tail, previous, names.key, with_lines=answers_calls)
        if tail.is_lost and not asked.conversation:
            raise _no_previous(asked.previous, "Its session was deleted")
        is_newest = tail.is_newest and not self._finalizer.is_taken(previous.session_id, previous.event_id)
        if is_newest or tail.is_open or is_said or asked.conversation:
            hold.session_id = names.session_id
            _check_results_follow(tail.messages, asked)
            return Continuation(replace(names, person=tail.key.person), (), standing)
        branch = tuple(await self._gateway.db.read(_up_to, previous))
        _check_results_follow(branch, asked)
        return Continuation(replace(names, session_id=new_id("s")), branch, standing)

    async def _previous(self, caller: Caller, asked: ResponseRequest) -> StoredResponse | None:
        if asked.conversation:
            return await self._finalizer.newest_of(caller.sender_id, asked.conversation)
        if not asked.previous:
            return None
        stored = await self._seen_by(caller, asked.previous)
        if stored is None:
            raise _no_previous(asked.previous, "It was deleted, is older than is kept, or was not stored")
        return stored

    async def _seen_by(self, caller: Caller, response_id: str) -> StoredResponse | None:
        stored = await self._finalizer.load(response_id)
        return stored if stored is not None and _is_visible(stored, caller) else None

    async def _beginning(self, request: web.Request, asked: ResponseRequest) -> Continuation:
        names = session_names(request)
        before = asked.history.messages
        if before and names.is_named and await has_transcript(self._gateway, names):
            before = ()
        if names.is_named and not before:
            await check_answers(self._gateway, names, asked.said.messages, "input")
        else:
            check_results(before, asked.said)
        standing = "\n\n".join(text for text in (asked.history.instructions, asked.said.instructions) if text)
        return Continuation(names, before, standing)

    # Answering

    async def _answer(self, answering: Answering) -> web.Response:
        names, response_id = answering.names, answering.response["id"]
        try:
            with self.calls.waiting():
                result = await results.end_of(answering.handle, self._requests, names)
        except ApiError as error:  # it needs an approval, or we stop: the response goes on without this connection
            error.extras["response_id"] = response_id
            raise
        result, output = await self._finalizer.ended(answering.hold, answering.response, result)
        body = await self._finished(answering, result, output)
        if body["status"] == "failed" and not result.text:
            failure = results.failure(result, names)
            failure.extras["response_id"] = response_id
            raise failure
        return _with_headers(body, {**names.headers(), **results.outcome_headers(result)})

    async def _finished(self, answering: Answering, result: TurnResult, output: Iterable[Json]) -> Json:
        body = shapes.finished(answering.response, result, list(output), now=self._gateway.clock.now())
        await self._finalizer.finish(answering.hold, body)
        return body

    async def _stream(self, request: web.Request, answering: Answering) -> web.StreamResponse:
        stream: EventStream | None = None
        try:
            async with event_stream(request, answering.names.headers()) as stream:
                await self._tell(stream, answering)
        except ClientGoneError:
            log.debug("Client is gone", extra={"response": answering.response["id"]})
        return stream.response if stream is not None else web.Response(status=499)

    async def _tell(self, stream: EventStream, answering: Answering) -> None:
        """The whole stream, to its proper end whatever happens: a broken encoding tells a client nothing."""
        events = ResponseEvents(answering.response)
        response_id = answering.response["id"]
        try:
            with self.calls.waiting():
                await self._tell_all(stream, events, answering)
        except ApiError as error:
            error.extras["response_id"] = response_id
            if error.status >= 500:
                stream.forget()
            await _send(stream, [events.error(error)])
        except ClientGoneError:
            raise
        except Exception:
            log.exception("Stream failed", extra={"response": response_id})
            message = "The gateway failed at this; its log says how."
            failed = ApiError(500, message, code="internal_error", extras={"response_id": response_id})
            stream.forget()
            await _send(stream, [events.error(failed)])

    async def _tell_all(self, stream: EventStream, events: ResponseEvents, answering: Answering) -> None:
        await _send(stream, events.opening())
        async for event in follow(answering.handle):
            if isinstance(event, TurnEnded):
                await self._tell_end(stream, events, answering, event.result)
                return
            if isinstance(event, ApprovalRequested) and not answering.asked.is_background:
                raise results.approval_required(event, answering.names)
            if event is not None:
                await _send(stream, events.of(event))
                continue
            await stream.keep_alive()
            if (result := await results.end_in_store(answering.handle, self._requests)) is not None:
                await self._tell_end(stream, events, answering, result)
                return

    async def _tell_end(
        self, stream: EventStream, events: ResponseEvents, answering: Answering, result: TurnResult
    ) -> None:
        result, output = await self._finalizer.ended(answering.hold, answering.response, result)
        is_completed = shapes.status_of(result) == "completed"
        last_events = list(events.rest(output, last_status="completed" if is_completed else "incomplete"))
        body = await self._finished(answering, result, events.output)
        if body["status"] == "failed":
            stream.forget()
        await _send(stream, [*last_events, events.last(body, result)])

    # Reading again

    async def show(self, request: web.Request) -> web.Response:
        if request.query.get("stream") in ("true", "1"):
            message = "A stored response is given whole here; ask again until its status is final."
            raise bad_request(message, code="unsupported_parameter", param="stream")
        stored = await self._finalizer.settled(await self._find(request, Action.READ_ALL))
        return _with_headers(stored.body, {SESSION_ID_HEADER: stored.session_id})

    async def show_input(self, request: web.Request) -> web.Response:
        limit, order, after = _page_of(request)
        stored = await self._find(request, Action.READ_ALL)
        row = await self._gateway.db.read(inbox.get, stored.event_id)
        messages = codec.load_request(row.body).messages[-stored.inputs :] if row is not None else ()
        if names := pictures.names_in(messages):
            messages = tuple(pictures.put_back(messages, await self._gateway.db.read(pictures.load, names)))
        items = shapes.input_items(messages, stored.id)
        items = items if order == "asc" else items[::-1]
        if after:
            ids = [item["id"] for item in items]
            items = items[ids.index(after) + 1 :] if after in ids else []
        return json_response(shapes.listed(items[:limit], has_more=len(items) > limit))

    async def delete(self, request: web.Request) -> web.Response:
        """The response goes; the session it belongs to, and a turn that still runs in it, do not."""
        stored = await self._find(request, Action.CHANGE_ALL)
        if not may(request[CALLER].role, Action.CHANGE_OWN):
            message = "The role of this key may not delete. Ask with one of a user, an admin or the owner."
            raise ApiError(403, message, code="role_not_enough", kind="permission_error")
        await self._finalizer.delete(stored.id)
        return json_response(shapes.deleted(stored.id))

    async def cancel(self, request: web.Request) -> web.Response:
        """Stop the turn of a response. One that has ended stays as it is."""
        stored = await self._find(request, Action.CHANGE_ALL)
        for _ in range(TRIES_TO_STOP):
            if not stored.is_open:
                break
            state = await self._requests.stop(stored.event_id)
            if state is None or state.status in results.FINAL_STATUS:
                stored = await self._finalizer.settled(await self._find(request, Action.CHANGE_ALL))
            if stored.is_open:
                await asyncio.sleep(STOP_PAUSE_SECONDS)
        return _with_headers(stored.body, {SESSION_ID_HEADER: stored.session_id})

    async def _find(self, request: web.Request, action: Action) -> StoredResponse:
        """The response that the path names. To others than who asked for it, it does not exist."""
        response_id = storable(request.match_info["id"])
        stored = await self._finalizer.load(response_id)
        if stored is None or not _is_visible(stored, request[CALLER], action):
            raise not_found(f"Response with id {response_id[:80]!r} not found.", code="response_not_found")
        return stored


def _is_visible(stored: StoredResponse, caller: Caller, action: Action = Action.READ_ALL) -> bool:
    return stored.asked_by == caller.sender_id or may(caller.role, action)


def _replay(earlier: StoredResponse, asked: ResponseRequest) -> web.Response:
    """A response that was begun before a restart: whole if it has ended, else where it is found."""
    if not asked.streams and (asked.is_background or not earlier.is_open):
        return _with_headers(earlier.body, {SESSION_ID_HEADER: earlier.session_id, REPLAYED: "true"})
    raise ApiError(
        409,
        f"This was begun as response {earlier.id} before the gateway was restarted, and is not begun again. Read it by "
        f"GET /v1/responses/{earlier.id}.",
        code=IN_FLIGHT,
        param=IDEMPOTENCY_KEY,
        extras={"response_id": earlier.id},
    )


def _no_previous(response_id: str, why: str) -> ApiError:
    message = (
        f"Previous response with id {response_id[:80]!r} not found. {why}: leave previous_response_id out and send the "
        "talk so far as input."
    )
    return bad_request(message, code="previous_response_not_found", param="previous_response_id")


def _check_results_follow(before: tuple[ChatMessage, ...], asked: ResponseRequest) -> None:
    """Results at the beginning of the input answer the calls that the session waits for."""
    waiting = ChatMessage(Role.ASSISTANT, tool_calls=unanswered(before))
    check_results((waiting,), asked.said)


def _with_headers(body: Json, headers: dict[str, str]) -> web.Response:
    response = json_response(body)
    response.headers.update(headers)
    return response


async def _send(stream: EventStream, events: Iterable[Json]) -> None:
    """Events that belong together, in one piece."""
    raw = b"".join(b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events)
    if raw:
        await stream.write(raw)


def _page_of(request: web.Request) -> tuple[int, str, str]:
    given, order = request.query.get("limit", str(DEFAULT_LISTED)), request.query.get("order", "desc")
    if not (given.isascii() and given.isdigit() and len(given) < 9 and 1 <= int(given) <= MOST_LISTED):
        raise bad_request(f"limit is a number from 1 to {MOST_LISTED}.", code="invalid_value", param="limit")
    if order not in ("asc", "desc"):
        raise bad_request("order is asc or desc.", code="invalid_value", param="order")
    return int(given), order, request.query.get("after", "")


# What the transcript says of a chain


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end of a session, and whether a response is the newest thing in it.

    ``key`` is where it was answered: an admin may go on from what somebody else asked, and a key may change its role.
    ``is_open``: it is still on its way, so there is nothing to branch from; what goes on from it waits behind it.
    ``is_lost``: it has ended, and its session was deleted since.
    """

    key: SessionKey
    is_newest: bool
    messages: tuple[ChatMessage, ...] = ()
    is_open: bool = False
    is_lost: bool = False


def _tail(tx: Tx, previous: StoredResponse, key: SessionKey, *, with_lines: bool = False) -> _Tail:
    """``key`` counts where nothing else is known of it.

    The lines are read only for who needs them: a long chain is not to cost more than a short one.
    """
    row = inbox.get(tx, previous.event_id)
    key = SessionKey.parse(row.lane) if row is not None else key
    lane = str(key)
    messages = tuple(newest_lines(tx, lane)) if with_lines else ()
    if row is not None and row.settled_at is None:
        return _Tail(key, is_newest=True, messages=messages, is_open=True)
    if _is_lost(tx, row, lane):
        return _Tail(key, is_newest=False, is_lost=True)
    if row is None:
        return _Tail(key, is_newest=True, messages=messages)
    later = tx.value(
        """
        SELECT 1 FROM inbox
        WHERE lane = :lane AND (state = 'queued' OR state = 'acting' OR state = 'taken') AND seq > :seq LIMIT 1
        """,
        lane=lane,
        seq=row.seq,
    )
    if later is not None:
        return _Tail(key, is_newest=False, messages=messages)
    last: Any = tx.value(
        """
        SELECT turn_id FROM transcript
        WHERE session_id = (SELECT session_id FROM lanes WHERE key = :lane) AND kind = 'message'
        ORDER BY seq DESC LIMIT 1
        """,
        lane=lane,
    )
    return _Tail(key, last is None or last == row.turn_id, messages)


def _is_lost(tx: Tx, row: InboxRow | None, lane: str) -> bool:
    """Whether the session of a response that has ended is gone. One that was never begun has nothing to lose."""
    if row is not None and not row.turn_id:
        return False
    session_id = tx.value("SELECT session_id FROM turns WHERE id = :id", id=row.turn_id) if row is not None else None
    session_id = session_id or tx.value("SELECT session_id FROM lanes WHERE key = :lane", lane=lane)
    return not tx.value("SELECT 1 FROM sessions WHERE id = :id", id=session_id or "")


def _up_to(tx: Tx, previous: StoredResponse) -> list[ChatMessage]:
    """The talk as it was when that response had ended."""
    row = inbox.get(tx, previous.event_id)
    where = tx.one(
        "SELECT session_id, MAX(seq) FROM transcript WHERE turn_id = :turn_id AND session_id = "
        "(SELECT session_id FROM turns WHERE id = :turn_id) GROUP BY session_id",
        lambda session_id, seq: (session_id, seq),
        turn_id=row.turn_id if row is not None else "",
    )
    if where is None:
        return []
    bodies = tx.all(
        "SELECT body FROM transcript WHERE session_id = :id AND seq <= :seq AND kind = 'message' "
        "ORDER BY seq DESC LIMIT :limit",
        str,
        id=where[0],
        seq=where[1],
        limit=transcripts.HISTORY_ROWS,
    )
    found = (codec.read_chat(body) for body in reversed(bodies))
    return [message for message in found if message is not None]
