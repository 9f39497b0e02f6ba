"""`POST /v1/chat/completions`: one question, answered in one piece or as it is written.

Without `X-Hermes-Session-Id` the messages of the request are the whole talk. With it the session's own transcript
goes on, and what follows the last answer in the request is new.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from aiohttp import web

from hermes.core.approval import ApprovalState
from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions, TurnResult
from hermes.core.text import one_line
from hermes.servers.api import parse, response_format, results
from hermes.servers.api.approvals import TypedAnswer, find_typed, open_questions, question_text, read_typed, texts_for
from hermes.servers.api.approvals import answer as answer_approval
from hermes.servers.api.bodies import ChatRequestBody, decode
from hermes.servers.api.content import Content, InputLimits, limits_of, summary
from hermes.servers.api.context import CALLER, REQUEST_ID, ApiParts, SessionNames, session_names
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.idempotency import HEADER as IDEMPOTENCY_KEY
from hermes.servers.api.idempotency import REPLAYED, Attempt, Attempts, attempt_name
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.sampling import check_sampling, read_effort
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.security import refuse_tools
from hermes.servers.api.shutdown import OpenRequests
from hermes.servers.api.streams.chat_stream import ChunkWriter
from hermes.servers.api.streams.leaving import minding_the_client, stops_when_left
from hermes.servers.api.streams.segments import SegmentText
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.streams.turn_stream import EARLY_SECONDS, KEEP_ALIVE_SECONDS, follow
from hermes.servers.api.transcripts import check_answers, has_transcript
from hermes.servers.app import RouteAdder, json_response
from hermes.services.events import ApprovalRequested, TurnEnded, TurnEvent, TurnStarted
from hermes.services.requests.outcomes import read_result
from hermes.services.requests.requests import PLATFORM, RequestHandle, RequestState
from hermes.store.api.idempotency import KEPT_SECONDS
from hermes.store.ids import new_id
from hermes.store.reports import trace

if TYPE_CHECKING:
    from hermes.servers.api.direct.tasks import BackgroundTasks

log = logging.getLogger(__name__)


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

    @property
    def is_formed(self) -> bool:
        return self.options.format is not None


@dataclass(frozen=True, slots=True)
class Following:
    """A turn that is followed for a client. ``names`` is the turn's own session.

    ``is_late``: words of it were written before this client came, so they are sent whole at the end.
    """

    handle: RequestHandle
    names: SessionNames
    attempt: Attempt
    state: RequestState | None = None
    is_late: bool = False
    is_replay: bool = False

    @property
    def headers(self) -> dict[str, str]:
        replayed = {REPLAYED: "true"} if self.is_replay else {}
        return {**self.names.headers(), **replayed}


class StreamWriter(Protocol):
    """Writes one stream in the shape of its API. ``saw`` is told every event and says when the stream is over."""

    has_failed: bool

    async def begin(self) -> None: ...

    async def saw(self, event: TurnEvent) -> bool: ...

    async def end(self, result: TurnResult) -> None: ...

    async def ask(self, question: str, *, is_formed: bool) -> None: ...

    async def end_with_question(self, extras: Json) -> None: ...

    async def fail(self, error: ApiError) -> None: ...

    async def keep_alive(self) -> None: ...

    async def close(self) -> None: ...


class ChatRoutes:
    _takes_tasks = True

    def __init__(self, parts: ApiParts, keep_alive_seconds: float) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._tools = parts.tools
        self._keep_alive_seconds = keep_alive_seconds
        self._files = FileTexts()
        self._attempts = Attempts(parts.gateway.requests, parts.gateway.clock)
        self.calls = OpenRequests()

    @cached_property
    def _tasks(self) -> BackgroundTasks:
        from hermes.servers.api.direct.tasks import BackgroundTasks  # with the first request: a start needs it not

        return BackgroundTasks(self._gateway)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        limits = limits_of(self._gateway.config.api)
        read = await self._read_body(request, limits)
        if self._takes_tasks and self._tasks.is_task(read):
            return await self._tasks.answer(request, read, limits)
        body = await self._files.put_in(request, read, "messages", limits)
        await note_left_out(request, self._gateway, body)
        default = "" if body.get("model") else self._gateway.models.model_for().label
        asked = await parse.apart(request, _read, request, body, limits, default)
        if asked.options.format is not None:
            await response_format.check_model(self._gateway, asked.names.key, asked.options, response_format.CHAT_PARAM)
        await check_sampling(self._gateway, asked.names.key, asked.options)
        self._note(asked)
        name = await attempt_name(request, read)
        last = asked.talk.messages[-1]
        typed = read_typed(last.text) if last.role is Role.USER and not last.images else None
        if typed is not None:
            return await self._answer_question(request, asked, typed, name)
        with self._attempts.attempt(request, name) as attempt:
            key, earlier = await self._begun_before(request)
            if earlier := earlier or await self._attempts.earlier(request, name):
                attempt.event_id = earlier
                answer = await self._go_on(request, asked, earlier, attempt)
                if answer is not None:
                    return answer
                key = ""  # it names the attempt that ended without a step
            ask = AgentRequest(
                RequestKind.CHAT,
                asked.names.key,
                request[CALLER].sender_id,
                await self._new_messages(request, asked),
                asked.options,
            )
            async with self._requests.ask(ask, key=key, role=request[CALLER].role, attempt=name) as handle:
                attempt.event_id = handle.event_id
                return await self._follow(request, asked, Following(handle, asked.names, attempt))

    # A request that was sent before

    async def _begun_before(self, request: web.Request) -> tuple[str, str]:
        """The name of a request with an `Idempotency-Key`, and the event that it was stored as before a restart."""
        given = request.headers.get(IDEMPOTENCY_KEY, "")
        if not given:
            return "", ""
        key = f"chat:{request[CALLER].sender_id}:{given}"
        row = await self._gateway.db.read(trace.event_of_key, f"{PLATFORM}/{key}")
        if row is None or row.received_at < self._gateway.clock.now() - KEPT_SECONDS:
            return key if row is None else "", ""
        return key, row.id

    async def _go_on(
        self, request: web.Request, asked: ChatRequest, event_id: str, attempt: Attempt
    ) -> web.StreamResponse | None:
        """Answer with the turn that was begun before. None: it ended without a step, so it may as well be done anew."""
        async with self._requests.join(event_id) as joined:
            if joined is None:
                return None
            handle, state = joined
            is_reopened = False
            if state.status in ("failed", "cancelled"):
                is_reopened = await self._requests.reopen(event_id)
                state = await self._requests.state_of(event_id) or state
                if not is_reopened and state.status in ("failed", "cancelled"):  # else another retry was quicker
                    return None
            names = replace(asked.names, session_id=SessionKey.parse(state.row.lane).chat)
            return await self._follow(
                request, asked, Following(handle, names, attempt, state, is_late=not is_reopened, is_replay=True)
            )

    # Following a turn

    async def _follow(self, request: web.Request, asked: ChatRequest, turn: Following) -> web.StreamResponse:
        request[REQUEST_ID] = turn.handle.event_id
        if not asked.stops_when_left:  # it goes on to its end by itself, whoever leaves
            return await self._respond(request, asked, turn)
        async with minding_the_client(self._requests, self._attempts, turn.attempt, turn.handle):
            answer = await self._respond(request, asked, turn)
        # Half an answer is not to be kept.
        return web.Response(status=499) if turn.attempt.is_lost else answer

    async def _respond(self, request: web.Request, asked: ChatRequest, turn: Following) -> web.StreamResponse:
        return await (self._stream if asked.streams else self._answer)(request, asked, turn)

    # Reading

    async def _read_body(self, request: web.Request, limits: InputLimits) -> Json:
        return await parse.read_body(request, limits)

    async def _new_messages(self, request: web.Request, asked: ChatRequest) -> tuple[ChatMessage, ...]:
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
        if not any(message.tool_calls for message in talk.messages):
            return talk.messages
        from hermes.services.requests.legs import with_steps  # a start needs it not

        return await self._gateway.db.read(with_steps, request[CALLER].sender_id, talk.messages)

    def _note(self, asked: ChatRequest) -> None:
        if log.isEnabledFor(logging.DEBUG):
            last = asked.talk.messages[-1]
            says = summary(Content(last.text, last.images))
            fields = {"session": asked.names.session_id, "label": asked.talk.label, "says": says}
            log.debug("Chat completion asked", extra=fields)

    # Answering

    async def _answer(self, request: web.Request, asked: ChatRequest, turn: Following) -> web.Response:
        with self.calls.waiting():
            ended = await self._end_of(turn)
        if isinstance(ended, ApprovalRequested):
            return await self._question(request, asked, turn, ended.turn_id)
        if not results.finish_reason(ended):
            raise results.failure(ended, turn.names)
        body = self._to_dict(request, turn.handle.event_id, asked, ended)
        return _with_headers(body, {**turn.headers, **results.outcome_headers(ended)})

    def _to_dict(self, _request: web.Request, event_id: str, asked: ChatRequest, result: TurnResult) -> Json:
        return results.completion(result, completion_id=id_of(event_id), created=self._now(), model=asked.model)

    def _question_to_dict(self, request: web.Request, event_id: str, asked: ChatRequest, question: TurnResult) -> Json:
        """The same for a question, which is no answer in the form that was asked for."""
        body = self._to_dict(request, event_id, asked, question)
        if asked.is_formed:
            body["choices"][0]["message"].update(content=None, refusal=question.text)
        return body

    def _writer(
        self, _request: web.Request, stream: EventStream, event_id: str, asked: ChatRequest, text: SegmentText
    ) -> StreamWriter:
        return ChunkWriter(
            stream, asked.names, id_of(event_id), self._now(), asked.model, wants_usage=asked.wants_usage, text=text
        )

    async def _end_of(self, turn: Following) -> TurnResult | ApprovalRequested:
        """The end of the turn, or its question: from the store where they came before this client."""
        state = turn.state
        if state is not None and state.pending:
            asked = state.pending[0]
            return ApprovalRequested(state.row.lane, asked.turn_id, asked.id, asked.code, asked.question)
        if state is not None and state.status in results.FINAL_STATUS:
            return await self._gateway.db.read(read_result, state)
        ended = await results.end_or_question(turn.handle, self._requests, look_seconds=self._keep_alive_seconds)
        return ended if isinstance(ended, ApprovalRequested) else await self._whole(turn.handle, ended)

    async def _whole(self, handle: RequestHandle, result: TurnResult) -> TurnResult:
        """The same end with its words, where these came by the store alone."""
        if result.reason != results.ANSWERED_ELSEWHERE:
            return result
        state = await self._requests.state_of(handle.event_id)
        return result if state is None else await self._gateway.db.read(read_result, state)

    async def _question(self, request: web.Request, asked: ChatRequest, turn: Following, turn_id: str) -> web.Response:
        """The question as the answer: no client asks again after a 200, and people read it where they wrote."""
        text, extras = await self._question_text(request, asked, turn_id)
        body = self._question_to_dict(request, turn.handle.event_id, asked, TurnResult(turn_id, "done", text))
        return _with_headers({**body, "hermes": extras}, {**turn.headers, **results.waiting_headers()})

    async def _question_text(self, request: web.Request, asked: ChatRequest, turn_id: str) -> tuple[str, Json]:
        questions = await self._gateway.db.read(open_questions, turn_id)
        words, now = texts_for(self._gateway, asked.talk.messages[-1].text), self._gateway.clock.now()
        text = "\n\n".join(question_text(words, question, request[CALLER], now=now) for question in questions)
        waiting = [
            {"approval_id": one.approval.id, "approval_code": one.approval.code, "question": one.approval.question}
            for one in questions
        ]
        extras = {"completed": False, "partial": False, "failed": False, "state": "waiting", "turn_id": turn_id}
        return text or words.APPROVALS_NOTHING_HERE, {**extras, "approvals": waiting}

    async def _stream(self, request: web.Request, asked: ChatRequest, turn: Following) -> web.StreamResponse:
        if turn.state is None:
            with self.calls.waiting():
                early = await turn.handle.early_end(EARLY_SECONDS)
            if early is not None and early.is_rate_limited and not early.text:
                raise results.failure(early, turn.names)  # while there still is a status to say so
        stream: EventStream | None = None
        try:
            async with event_stream(request, turn.headers) as stream:
                text = SegmentText(keeps_start=asked.talk.continues_answer, is_late=turn.is_late)
                named = replace(asked, names=turn.names)
                telling = self._writer(request, stream, turn.handle.event_id, named, text)
                await self._tell(request, asked, turn, telling)
                turn.attempt.is_broken = telling.has_failed
                # Many clients close the connection at the last event, before the end of the encoding.
                turn.attempt.is_delivered = not stream.is_left
        except ClientGoneError:
            log.debug("Client is gone", extra={"session": turn.names.session_id, "turn": turn.handle.turn_id})
        return stream.response if stream is not None else web.Response(status=499)

    async def _tell(self, request: web.Request, asked: ChatRequest, turn: Following, telling: StreamWriter) -> None:
        """The whole stream, to its proper end whatever happens: a broken encoding tells a client nothing."""
        try:
            with self.calls.waiting():
                await self._tell_all(request, asked, turn, telling)
        except ApiError as error:
            await telling.fail(error)
        except ClientGoneError:
            raise
        except Exception:
            log.exception("Stream failed", extra={"turn": turn.handle.turn_id})
            await telling.fail(internal_error())
        await telling.close()

    async def _tell_all(self, request: web.Request, asked: ChatRequest, turn: Following, telling: StreamWriter) -> None:
        await telling.begin()
        handle, state, asked_at = turn.handle, turn.state, 0.0
        wait = self._gateway.config.api.approval_wait_seconds
        extras: Json = {}
        if turn.is_late:
            handle.take_only(TurnStarted, ApprovalRequested, TurnEnded)
        if state is not None and state.status in results.FINAL_STATUS:
            await telling.end(await self._gateway.db.read(read_result, state))
            return
        if state is not None and state.pending:
            asked_at, extras = await self._show_question(request, asked, telling, state.row.turn_id)
        clock = asyncio.get_running_loop().time

        def pause() -> float:
            """Until the next sign of life, or until nobody is likely to answer the question any more."""
            return self._keep_alive_seconds if not extras else max(0.0, asked_at + wait - clock())

        async for event in follow(handle, patience=pause):
            if isinstance(event, ApprovalRequested):
                if not extras:  # one text holds all that the turn asks
                    asked_at, extras = await self._show_question(request, asked, telling, event.turn_id)
            elif isinstance(event, TurnStarted):
                extras = {}
            elif event is not None and await telling.saw(event):
                return
            if extras and clock() >= asked_at + wait:
                await telling.end_with_question(extras)
                return
            if event is None:
                await telling.keep_alive()
                if (result := await results.end_in_store(handle, self._requests)) is not None:
                    await telling.end(await self._whole(handle, result))
                    return

    async def _show_question(
        self, request: web.Request, asked: ChatRequest, telling: StreamWriter, turn_id: str
    ) -> tuple[float, Json]:
        """When a question was shown, and what the end of the stream says of it if nobody answers."""
        text, extras = await self._question_text(request, asked, turn_id)
        await telling.ask(text, is_formed=asked.is_formed)
        return asyncio.get_running_loop().time(), extras

    # An answer that is typed

    async def _answer_question(
        self, request: web.Request, asked: ChatRequest, typed: TypedAnswer, name: str
    ) -> web.StreamResponse:
        """`/approve CODE` and `/deny CODE` answer a question; what its turn says then is the answer."""
        await refuse_tools(request, self._tools)
        caller, words = request[CALLER], texts_for(self._gateway, asked.talk.messages[0].text)
        if typed.unread:
            return await self._say(request, asked, words.APPROVE_UNREAD.format(word=one_line(typed.unread, 40)))
        found = await self._gateway.db.read(
            find_typed, typed, caller, str(asked.names.key), now=self._gateway.clock.now()
        )
        if found is None:
            return await self._say(request, asked, words.APPROVALS_NO_SUCH)
        seen, decision = found
        async with self._requests.join(seen.event_id) as joined:
            try:
                await answer_approval(self._gateway, caller, seen.approval, decision)
            except ApiError as refusal:
                is_same = seen.approval.state == (ApprovalState.ALLOWED if decision.allow else ApprovalState.DENIED)
                if not is_same or refusal.code != "approval_already_answered":
                    return await self._say(request, asked, refusal.message)
            if joined is None:  # it was asked in a chat, where its answer goes too
                return await self._say(request, asked, words.ANSWER_ALLOWED if decision.allow else words.ANSWER_DENIED)
            handle, state = joined
            state = await self._requests.state_of(seen.event_id) or state
            names = replace(asked.names, session_id=SessionKey.parse(state.row.lane).chat)
            with self._attempts.attempt(request, name) as attempt:
                attempt.event_id = seen.event_id
                has_ended = state.status in results.FINAL_STATUS and not handle.has_events
                turn = Following(handle, names, attempt, state if has_ended or state.pending else None)
                return await self._follow(request, asked, turn)

    async def _say(self, request: web.Request, asked: ChatRequest, text: str) -> web.StreamResponse:
        """Answer in words of ours, without a turn."""
        event_id, result = new_id("ev"), TurnResult("", "done", text)
        if not asked.streams:
            return _with_headers(self._to_dict(request, event_id, asked, result), asked.names.headers())
        async with event_stream(request, asked.names.headers()) as stream:
            telling = self._writer(request, stream, event_id, asked, SegmentText())
            await telling.begin()
            await telling.end(result)
            await telling.close()
        return stream.response

    def _now(self) -> int:
        return int(self._gateway.clock.now())


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
        stops_when_left=stops_when_left(request, stops=bool(asked.stream)),
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


def id_of(event_id: str) -> str:
    """With the event's id in it, so that `hermes trace` finds what a client asks about."""
    return f"chatcmpl-{event_id}"


def internal_error() -> ApiError:
    message = "The gateway failed at this; its log says how."
    return ApiError(500, message, code="internal_error", kind="server_error")


def _with_headers(body: Json, headers: dict[str, str]) -> web.Response:
    response = json_response(body)
    response.headers.update(headers)
    return response
