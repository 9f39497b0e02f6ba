"""`POST /v1/chat/completions`: one question, answered in one piece or as it is written.

Without `X-Hermes-Session-Id` the messages of the request are the whole talk. With it the session's own transcript
goes on, and what follows the last answer in the request is new.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions, TurnResult
from hermes.servers.api import parse, response_format, results
from hermes.servers.api.bodies import ChatRequestBody, decode
from hermes.servers.api.content import Content, InputLimits, limits_of, summary
from hermes.servers.api.context import CALLER, REQUEST_ID, ApiParts, SessionNames, session_names
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.sampling import check_sampling, read_effort
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.shutdown import OpenRequests
from hermes.servers.api.streams.chat_stream import ChunkWriter
from hermes.servers.api.streams.segments import SegmentText
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.streams.turn_stream import KEEP_ALIVE_SECONDS, follow
from hermes.servers.api.transcripts import check_answers, has_transcript
from hermes.servers.app import RouteAdder, json_response
from hermes.services.events import TurnEvent
from hermes.services.requests.requests import RequestHandle

log = logging.getLogger(__name__)

ON_DISCONNECT_HEADER = "X-Hermes-On-Disconnect"
LOOK_FOR_CLIENT_SECONDS = 0.2
TRIES_TO_STOP = 10
EARLY_SECONDS = 1.0
"""How long a stream waits for the first event before it opens: a 429 of the provider within it is the status."""


def routes(parts: ApiParts, *, keep_alive_seconds: float = KEEP_ALIVE_SECONDS) -> RouteAdder:
    def add(app: web.Application) -> None:
        chat = ChatRoutes(parts, keep_alive_seconds)
        app.router.add_post("/v1/chat/completions", chat.complete)
        app.on_shutdown.append(chat.calls.end)

    return add


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request as it was understood. ``model`` is the name that the answer carries."""

    talk: parse.Conversation
    options: TurnOptions
    names: SessionNames
    model: str
    streams: bool
    wants_usage: bool
    stops_when_left: bool


class StreamWriter(Protocol):
    """Writes one stream in the shape of its API. ``saw`` is told every event and says when the stream is over."""

    async def begin(self) -> None: ...

    async def saw(self, event: TurnEvent) -> bool: ...

    async def end(self, result: TurnResult) -> None: ...

    async def fail(self, error: ApiError) -> None: ...

    async def keep_alive(self) -> None: ...

    async def close(self) -> None: ...


class ChatRoutes:
    _takes_tasks = True

    def __init__(self, parts: ApiParts, keep_alive_seconds: float) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._keep_alive_seconds = keep_alive_seconds
        self._files = FileTexts()
        self.calls = OpenRequests()

    async def complete(self, request: web.Request) -> web.StreamResponse:
        limits = limits_of(self._gateway.config.api)
        body = await self._read_body(request, limits)
        if self._takes_tasks:
            from hermes.servers.api.direct import tasks  # with the first request: a start needs it not

            if tasks.is_background_task(body):
                return await tasks.BackgroundTasks(self._gateway).answer(request, body, limits)
        body = await self._files.put_in(request, body, "messages", limits)
        await note_left_out(request, self._gateway, body)
        default = "" if body.get("model") else self._gateway.models.model_for().label
        asked = await parse.apart(request, _read, request, body, limits, default)
        if asked.options.format is not None:
            await response_format.check_model(self._gateway, asked.names.key, asked.options, response_format.CHAT_PARAM)
        await check_sampling(self._gateway, asked.names.key, asked.options)
        caller, new = request[CALLER], await self._new_messages(asked)
        ask = AgentRequest(RequestKind.CHAT, asked.names.key, caller.sender_id, new, asked.options)
        self._note(asked)
        async with self._requests.ask(ask, role=caller.role) as handle:
            request[REQUEST_ID] = handle.event_id
            if not asked.stops_when_left:  # it goes on to its end by itself, whoever leaves
                return await self._respond(request, handle, asked)
            async with self._minding_the_client(request, handle):
                answer = await self._respond(request, handle, asked)
            return web.Response(status=499) if _is_gone(request) else answer  # half an answer is not to be kept

    async def _respond(self, request: web.Request, handle: RequestHandle, asked: ChatRequest) -> web.StreamResponse:
        return await (self._stream if asked.streams else self._answer)(request, handle, asked)

    # Reading

    async def _read_body(self, request: web.Request, limits: InputLimits) -> Json:
        return await parse.read_body(request, limits)

    async def _new_messages(self, asked: ChatRequest) -> tuple[ChatMessage, ...]:
        """What the session has not seen. A named session that is still empty takes the whole talk as its beginning."""
        talk, newest = asked.talk, asked.talk.newest
        if asked.names.is_named and len(newest) == len(talk.messages):
            await check_answers(self._gateway, asked.names, newest)
            return newest
        if asked.names.is_named and await has_transcript(self._gateway, asked.names):
            if talk.continues_answer:
                return newest
            parse.check_results(talk.messages[-len(newest) - 1 :])
            return newest
        parse.check_results(talk.messages)
        return talk.messages

    def _note(self, asked: ChatRequest) -> None:
        if log.isEnabledFor(logging.DEBUG):
            last = asked.talk.messages[-1]
            says = summary(Content(last.text, last.images))
            fields = {"session": asked.names.session_id, "label": asked.talk.label, "says": says}
            log.debug("Chat completion asked", extra=fields)

    # Answering

    async def _answer(self, request: web.Request, handle: RequestHandle, asked: ChatRequest) -> web.Response:
        with self.calls.waiting():
            result = await results.end_of(handle, self._requests, asked.names, look_seconds=self._keep_alive_seconds)
        if not results.finish_reason(result):
            raise results.failure(result, asked.names)
        response = json_response(self._to_dict(request, handle, asked, result))
        response.headers.update({**asked.names.headers(), **results.outcome_headers(result)})
        return response

    def _to_dict(self, _request: web.Request, handle: RequestHandle, asked: ChatRequest, result: TurnResult) -> Json:
        return results.completion(result, completion_id=id_of(handle), created=self._now(), model=asked.model)

    def _writer(
        self, _request: web.Request, stream: EventStream, handle: RequestHandle, asked: ChatRequest
    ) -> StreamWriter:
        return ChunkWriter(
            stream,
            asked.names,
            id_of(handle),
            self._now(),
            asked.model,
            wants_usage=asked.wants_usage,
            text=SegmentText(keeps_start=asked.talk.continues_answer),
        )

    async def _stream(self, request: web.Request, handle: RequestHandle, asked: ChatRequest) -> web.StreamResponse:
        with self.calls.waiting():
            early = await handle.early_end(EARLY_SECONDS)
        if early is not None and early.is_rate_limited and not early.text:
            raise results.failure(early, asked.names)  # while there still is a status to say so
        stream: EventStream | None = None
        try:
            async with event_stream(request, asked.names.headers()) as stream:
                telling = self._writer(request, stream, handle, asked)
                await self._tell(handle, telling)
        except ClientGoneError:
            log.debug("Client is gone", extra={"session": asked.names.session_id, "turn": handle.turn_id})
        return stream.response if stream is not None else web.Response(status=499)

    async def _tell(self, handle: RequestHandle, telling: StreamWriter) -> None:
        """The whole stream, to its proper end whatever happens: a broken encoding tells a client nothing."""
        try:
            with self.calls.waiting():
                await self._tell_all(handle, telling)
        except ApiError as error:
            await telling.fail(error)
        except ClientGoneError:
            raise
        except Exception:
            log.exception("Stream failed", extra={"turn": handle.turn_id})
            await telling.fail(internal_error())
        await telling.close()

    async def _tell_all(self, handle: RequestHandle, telling: StreamWriter) -> None:
        await telling.begin()
        async for event in follow(handle, keep_alive_seconds=self._keep_alive_seconds):
            if event is not None:
                if await telling.saw(event):
                    return
                continue
            await telling.keep_alive()
            if (result := await results.end_in_store(handle, self._requests)) is not None:
                await telling.end(result)
                return

    def _now(self) -> int:
        return int(self._gateway.clock.now())

    # A client that goes away

    @asynccontextmanager
    async def _minding_the_client(self, request: web.Request, handle: RequestHandle) -> AsyncIterator[None]:
        """Stop the turn when its client goes."""
        watcher = asyncio.create_task(self._stop_when_left(request, handle), name="watching a client")
        try:
            yield
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            if _is_gone(request):
                await self._stop(handle)

    async def _stop_when_left(self, request: web.Request, handle: RequestHandle) -> None:
        while not _is_gone(request):  # noqa: ASYNC110 - the server tells nobody when a client goes
            await asyncio.sleep(LOOK_FOR_CLIENT_SECONDS)
        await self._stop(handle)

    async def _stop(self, handle: RequestHandle) -> None:
        """Ask until it has ended: a request on its way from the queue into its turn is in neither for a moment."""
        for _ in range(TRIES_TO_STOP):
            state = await self._requests.stop(handle.event_id)
            if state is None or state.status in results.FINAL_STATUS:
                return
            await asyncio.sleep(LOOK_FOR_CLIENT_SECONDS)
        log.warning("Turn is slow to stop", extra={"turn": handle.turn_id})


def _read(request: web.Request, body: Json, limits: InputLimits, default_model: str) -> ChatRequest:
    """Everything is looked at before anything is stored. ``default_model`` is named in answers to who names none."""
    _refuse_unsupported(body)
    if body.get("max_completion_tokens") is not None:
        body = {**body, "max_tokens": None}  # the newer name counts, whatever stands under the older one
    asked = decode(body, ChatRequestBody)
    talk = parse.read_conversation(asked.messages, limits)
    options = parse.read_options(
        asked,
        limits,
        instructions=talk.instructions,
        max_tokens=asked.max_completion_tokens or asked.max_tokens,
        form=response_format.read_response_format(asked.response_format, limits),
        reasoning=read_effort(asked.reasoning_effort, "reasoning_effort"),
        own_tools=own_tools(request),
    )
    return ChatRequest(
        talk,
        options,
        session_names(request),
        options.model or default_model,
        streams=bool(asked.stream),
        wants_usage=bool(asked.stream_options and asked.stream_options.include_usage),
        stops_when_left=_stops_when_left(request),
    )


def _refuse_unsupported(body: Json) -> None:
    """What would change the answer and is not done here is refused; it is never left out in silence."""
    if body.get("n") not in (None, 1) or isinstance(body.get("n"), bool):
        message = "Only one choice is given for each request: leave n out, or send 1."
        raise bad_request(message, code="unsupported_parameter", param="n")
    if body.get("modalities") not in (None, [], ["text"]):
        message = "Only text can be asked for: leave modalities out, or send ['text']."
        raise bad_request(message, code="unsupported_parameter", param="modalities")
    if body.get("functions"):
        message = "functions are not taken any more: send them as tools."
        raise bad_request(message, code="unsupported_parameter", param="functions")


def id_of(handle: RequestHandle) -> str:
    """With the event's id in it, so that `hermes trace` finds what a client asks about."""
    return f"chatcmpl-{handle.event_id}"


def internal_error() -> ApiError:
    message = "The gateway failed at this; its log says how."
    return ApiError(500, message, code="internal_error", kind="server_error")


def _stops_when_left(request: web.Request) -> bool:
    choice = request.headers.get(ON_DISCONNECT_HEADER, "continue").strip().lower()
    if choice not in ("continue", "stop"):
        message = f"{ON_DISCONNECT_HEADER} is continue or stop."
        raise bad_request(message, code="invalid_value", param=ON_DISCONNECT_HEADER)
    return choice == "stop"


def _is_gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()
