"""Follow the turn of a response for one client, to its answer, its stream of events, or the question it meets."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import field
from typing import Any

import orjson
from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Json, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.approvals import OpenQuestion, open_questions, question_text, texts_for
from hermes.servers.api.context import CALLER, ApiParts, SessionNames
from hermes.servers.api.errors import ApiError
from hermes.servers.api.idempotency import REPLAYED, Attempt
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.events import Approvals, ResponseEvents
from hermes.servers.api.responses.feeds import ResponseFeed, ResponseFeeds
from hermes.servers.api.responses.finalizer import (
    OpenResponse,
    ResponseFinalizer,
    question_item,
    waiting_approvals,
)
from hermes.servers.api.responses.request import ResponseRequest
from hermes.servers.api.shutdown import OpenRequests
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.streams.turn_stream import EARLY_SECONDS, KEEP_ALIVE_SECONDS, follow
from hermes.servers.app import json_response
from hermes.services.events import ApprovalRequested, TurnEnded
from hermes.services.requests.outcomes import stored_usage
from hermes.services.requests.requests import RequestHandle, RequestState

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answering:
    """One request on its way to its answer. ``text`` is what its user wrote, for the language of questions.

    ``state`` is set for a turn that was begun before this request: then ``is_replay`` says so to the client.
    """

    names: SessionNames
    response: Json
    hold: OpenResponse
    handle: RequestHandle
    attempt: Attempt
    is_background: bool = False
    text: str = ""
    state: RequestState | None = None
    is_replay: bool = False
    approvals: Approvals = field(default_factory=dict)
    takes_requests: bool = True
    """False for a client that breaks at an `mcp_approval_request`: it gets the question as a message."""

    @property
    def headers(self) -> dict[str, str]:
        return {**self.names.headers(), **({REPLAYED: "true"} if self.is_replay else {})}


def answering_of(
    request: web.Request,
    asked: ResponseRequest,
    names: SessionNames,
    response: Json,
    hold: OpenResponse,
    handle: RequestHandle,
    attempt: Attempt,
    state: RequestState | None = None,
    **more: Any,
) -> Answering:
    """What a request that was read asks for, on its way to its answer."""
    return Answering(
        names,
        response,
        hold,
        handle,
        attempt,
        asked.is_background,
        asked.input.messages[-1].text if asked.input.messages else "",
        state,
        takes_requests=_takes_requests(request, asked),
        **more,
    )


def _takes_requests(request: web.Request, asked: ResponseRequest) -> bool:
    """The Agents SDK ends with an error at a request of an MCP server that its tools do not name."""
    return asked.declares_us or not request.headers.get("User-Agent", "").startswith("Agents/")


class ResponseAnswers:
    def __init__(self, parts: ApiParts, finalizer: ResponseFinalizer) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._finalizer = finalizer
        self._feeds = ResponseFeeds()
        self.calls = OpenRequests()

    # In one piece

    async def answer(self, request: web.Request, answering: Answering) -> web.Response:
        response_id, state = answering.response["id"], answering.state
        result: TurnResult | None = None
        if state is not None and state.pending:
            return await self._answer_with_question(request, answering, state.row.turn_id)
        if state is None or state.status not in results.FINAL_STATUS:
            try:
                with self.calls.waiting():
                    ended = await results.end_or_question(answering.handle, self._requests)
            except ApiError as error:  # we stop: the response goes on without this connection
                error.extras["response_id"] = response_id
                raise
            if isinstance(ended, ApprovalRequested):
                return await self._answer_with_question(request, answering, ended.turn_id)
            result = None if ended.reason == results.ANSWERED_ELSEWHERE else ended
        return await self._answer_end(answering, result)

    async def _answer_end(self, answering: Answering, result: TurnResult | None) -> web.Response:
        whole, output = await self._finalizer.ended(answering.hold, answering.response, result)
        body = await self._finished(answering, whole, output)
        if body["status"] == "failed" and not whole.text:
            failure = results.failure(whole, answering.names)
            failure.extras["response_id"] = body["id"]
            raise failure
        return with_headers(body, {**answering.headers, **results.outcome_headers(whole)})

    async def _finished(self, answering: Answering, result: TurnResult, output: Iterable[Json]) -> Json:
        body = shapes.finished(answering.response, result, list(output), now=self._gateway.clock.now())
        await self._finalizer.finish(answering.hold, body)
        return body

    # A question

    async def _answer_with_question(self, request: web.Request, answering: Answering, turn_id: str) -> web.Response:
        events = ResponseEvents(answering.response, is_late=True)
        so_far = await self._finalizer.items_so_far(answering.response, answering.hold.event_id)
        list(events.rest(so_far, last_status="completed"))
        body = await self._with_question(request, answering, events, turn_id)
        return with_headers(body[-1]["response"], {**answering.headers, **results.waiting_headers()})

    async def _with_question(
        self, request: web.Request, answering: Answering, events: ResponseEvents, turn_id: str
    ) -> list[Json]:
        """The last events of a response whose turn waits: the questions, the same as text, and its end."""
        questions: Sequence[OpenQuestion] = await self._gateway.db.read(open_questions, turn_id)
        words, now = texts_for(self._gateway, answering.text), self._gateway.clock.now()
        text = "\n\n".join(question_text(words, question, request[CALLER], now=now) for question in questions)
        if shapes.has_format(answering.response):
            text = ""  # whoever asked for a form reads every message as the answer
        state = await self._requests.state_of(answering.hold.event_id)
        usage = stored_usage(state.turn) if state is not None and state.turn is not None else Usage()
        items = [question_item(question) for question in questions] if answering.takes_requests else []
        sent = list(events.ask(items, text))
        body = {
            **answering.response,
            "status": "completed",
            "completed_at": int(now),
            "output": list(events.output),
            "usage": shapes.usage_of(usage),
            "hermes": {**answering.response["hermes"], "approvals": waiting_approvals(questions)},
        }
        await self._finalizer.note_questions(answering.hold, body)
        return [*sent, events.end(body)]

    # As a stream

    async def stream(self, request: web.Request, answering: Answering) -> web.StreamResponse:
        if answering.state is None and not answering.is_background:
            try:
                with self.calls.waiting():
                    early = await answering.handle.early_end(EARLY_SECONDS)
            except ApiError as error:  # we stop: the response goes on without this connection
                error.extras["response_id"] = answering.response["id"]
                raise
            if early is not None and early.is_rate_limited and not early.text:
                return await self._answer_end(answering, early)  # while there still is a status to say so
        stream: EventStream | None = None
        is_kept = not answering.hold.is_settled and answering.state is None
        feed = self._feeds.open(answering.response["id"]) if is_kept else None
        try:
            async with event_stream(request, answering.headers) as stream:
                stream.goes_on = feed is not None
                await self._tell(request, stream, answering, feed)
                answering.attempt.is_delivered = not stream.is_left
        except ClientGoneError:
            log.debug("Client is gone", extra={"response": answering.response["id"]})
        finally:
            if feed is not None:
                feed.end()
        return stream.response if stream is not None else web.Response(status=499)

    async def _tell(
        self, request: web.Request, stream: EventStream, answering: Answering, feed: ResponseFeed | None
    ) -> None:
        """The whole stream, to its proper end whatever happens: a broken encoding tells a client nothing."""
        events = ResponseEvents(answering.response, is_late=answering.state is not None, approvals=answering.approvals)
        response_id = answering.response["id"]
        try:
            with self.calls.waiting():
                async for event in self._events(request, stream, events, answering):
                    await send_events(stream, event, feed)
        except ApiError as error:
            error.extras["response_id"] = response_id
            answering.attempt.is_broken = True
            if error.status >= 500:
                stream.forget()
            await send_events(stream, [events.error(error)], feed)
        except ClientGoneError:
            raise
        except Exception:
            log.exception("Stream failed", extra={"response": response_id})
            message = "The gateway failed at this; its log says how."
            failed = ApiError(500, message, code="internal_error", extras={"response_id": response_id})
            answering.attempt.is_broken = True
            stream.forget()
            await send_events(stream, [events.error(failed)], feed)

    async def _events(
        self, request: web.Request, stream: EventStream, events: ResponseEvents, answering: Answering
    ) -> AsyncIterator[Iterable[Json]]:
        yield events.opening()
        state, handle = answering.state, answering.handle
        if state is not None:
            so_far = await self._finalizer.items_so_far(answering.response, answering.hold.event_id)
            if state.status in results.FINAL_STATUS:
                yield await self._end(stream, events, answering, None)
                return
            yield events.rest(so_far, last_status="completed")
            if state.pending:
                yield await self._with_question(request, answering, events, state.row.turn_id)
                return
        async for event in follow(handle):
            if isinstance(event, TurnEnded):
                yield await self._end(stream, events, answering, event.result)
                return
            if isinstance(event, ApprovalRequested) and not answering.is_background:
                yield await self._with_question(request, answering, events, event.turn_id)
                return
            if event is not None:
                yield events.of(event)
                continue
            await stream.keep_alive()
            if (result := await results.end_in_store(handle, self._requests)) is not None:
                is_elsewhere = result.reason == results.ANSWERED_ELSEWHERE
                yield await self._end(stream, events, answering, None if is_elsewhere else result)
                return

    async def _end(
        self, stream: EventStream, events: ResponseEvents, answering: Answering, result: TurnResult | None
    ) -> list[Json]:
        whole, output = await self._finalizer.ended(answering.hold, answering.response, result)
        is_completed = shapes.status_of(whole) == "completed"
        last_events = list(events.rest(output, last_status="completed" if is_completed else "incomplete"))
        body = await self._finished(answering, whole, events.output)
        if body["status"] == "failed":
            answering.attempt.is_broken = True
            stream.forget()
        return [*last_events, events.last(body, whole)]

    # A stream that is read again

    async def replay(self, request: web.Request, answering: Answering, starting_after: int) -> web.StreamResponse:
        """The events of a stored response behind a number, and those to come."""
        feed = self._feeds.find(answering.response["id"])
        stream: EventStream | None = None
        try:
            async with event_stream(request, answering.headers) as stream:
                if feed is None or starting_after >= len(feed.events):
                    await self._tell_from_store(request, stream, answering, starting_after)
                else:
                    async for raw in feed.after(starting_after, KEEP_ALIVE_SECONDS):
                        await (stream.write(raw) if raw else stream.keep_alive())
        except ClientGoneError:
            log.debug("Client is gone", extra={"response": answering.response["id"]})
        return stream.response if stream is not None else web.Response(status=499)

    async def _tell_from_store(
        self, request: web.Request, stream: EventStream, answering: Answering, starting_after: int
    ) -> None:
        """Tell the whole output anew; numbers go on behind those that the client has seen."""
        events = ResponseEvents(answering.response, is_late=True, first=starting_after + 1)
        body = answering.response
        if body["status"] not in ("queued", "in_progress"):
            whole = list(events.opening()) if starting_after < 0 else []
            whole += events.rest(body["output"], last_status="completed")
            await send_events(stream, [*whole, events.end(body)], None)
            return
        async for event in self._events(request, stream, events, answering):
            await send_events(stream, event, None)


def with_headers(body: Json, headers: dict[str, str]) -> web.Response:
    response = json_response(body)
    response.headers.update(headers)
    return response


async def send_events(stream: EventStream, events: Iterable[Json], feed: ResponseFeed | None = None) -> None:
    """Events that belong together, in one piece."""
    raw = [b"event: %s\ndata: %s\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events]
    if raw:
        if feed is not None:
            feed.add(raw)
        await stream.write(b"".join(raw))
