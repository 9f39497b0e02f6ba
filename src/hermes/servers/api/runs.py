"""`/v1/runs`: work that is asked for now and looked up later. It outlives its connection and its process.

A run is an event of the inbox: its id carries the event's, and its status is read from the store, so that it is true
after a restart too. Only the stream of events is kept in memory (``run_events``).
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from aiohttp import hdrs, web

from hermes.core.approval import ApprovalState
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage, Json, Role, Usage
from hermes.core.requests import AgentRequest, RequestKind, TurnOptions
from hermes.core.text import storable
from hermes.servers.api import approvals, parse, results
from hermes.servers.api.bodies import DecisionBody, RunRequestBody, SessionChatRequestBody, decode, decode_message
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.context import CALLER, ApiParts, Caller, SessionNames, session_names
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.streams.run_events import RUN, SNAPSHOT, RunEvent, RunFeed, RunFeeds, run_id_of
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.streams.turn_stream import KEEP_ALIVE_SECONDS
from hermes.servers.api.transcripts import LONGEST_TEXT, answer_of, check_answers, has_transcript, message_to_dict
from hermes.servers.app import RouteAdder, json_response
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM, RequestState
from hermes.store import approvals as stored_approvals
from hermes.store import codec
from hermes.store.approvals import Approval
from hermes.store.db import Tx
from hermes.store.ids import new_id
from hermes.store.reports import trace
from hermes.store.sessions import transcripts

log = logging.getLogger(__name__)

T = TypeVar("T", bound=SessionChatRequestBody)

FEEDS = web.AppKey("feeds", RunFeeds)
STOPPING = "stopping"
STOP_AGAIN_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)
IDEMPOTENCY_KEY = "Idempotency-Key"
LARGEST_TRANSCRIPT = 256 * 1024
BEGINNING = 1000
_MODEL_ERROR = re.compile(r"model (\w+): ")

PlaceOfResponse = Callable[[str, Caller], Awaitable[SessionKey | None]]
"""Where an earlier response was answered, or None where this caller has none of that id."""


def routes(
    parts: ApiParts, limits: InputLimits = INPUT_LIMITS, place_of_response: PlaceOfResponse | None = None
) -> RouteAdder:
    def add(app: web.Application) -> None:
        runs = Runs(parts, feeds_of(app, parts.gateway), limits, place_of_response)
        app.router.add_post("/v1/runs", runs.create)
        app.router.add_get("/v1/runs/{run_id}", runs.read)
        app.router.add_get("/v1/runs/{run_id}/events", runs.events, allow_head=False)
        app.router.add_post("/v1/runs/{run_id}/approval", runs.approve)
        app.router.add_post("/v1/runs/{run_id}/stop", runs.stop)
        app.on_cleanup.append(runs.close)

    return add


def feeds_of(app: web.Application, gateway: Gateway) -> RunFeeds:
    """The feeds that all families of this app share; made by the first of them."""
    if FEEDS not in app:
        feeds = app[FEEDS] = RunFeeds(gateway.bus, gateway.clock)

        async def close(_: web.Application) -> None:
            feeds.close()

        app.on_shutdown.append(close)
    return app[FEEDS]


# What a run is


@dataclass(frozen=True, slots=True)
class Run:
    """What the store knows of a run. ``answer`` is what the agent said and did, each line with its message's id."""

    state: RequestState
    request: AgentRequest
    answer: Sequence[tuple[str, ChatMessage]] = ()

    @property
    def event_id(self) -> str:
        return self.state.row.id

    @property
    def session_id(self) -> str:
        """The name that the client gave its session; in the chat of a platform the id of the session, once it runs."""
        key = self.request.session_key
        if key.platform == PLATFORM:
            return key.chat
        return self.state.turn.session_id if self.state.turn is not None else ""

    @property
    def turn_id(self) -> str:
        return self.state.turn.id if self.state.turn is not None else ""

    @property
    def is_over(self) -> bool:
        return self.state.status in results.FINAL_STATUS

    @property
    def last_words(self) -> ChatMessage | None:
        """The agent's last message, if nothing came after it."""
        last = self.answer[-1][1] if self.answer else None
        return last if last is not None and last.role is Role.ASSISTANT else None

    @property
    def texts(self) -> list[str]:
        return [message.text for _, message in self.answer if message.role is Role.ASSISTANT]

    @property
    def answered_calls(self) -> list[str]:
        return [message.tool_call_id for _, message in self.answer if message.role is Role.TOOL]

    def transcript(self) -> list[Json]:
        """Everything; of a turn with very much in it, the beginnings of arguments and results."""
        size = sum(
            len(message.text) + sum(len(call.arguments) for call in message.tool_calls) for _, message in self.answer
        )
        longest = LONGEST_TEXT if size <= LARGEST_TRANSCRIPT else BEGINNING
        return [{"message_id": name, **message_to_dict(message, longest)} for name, message in self.answer]

    def snapshot(self) -> Json:
        """Where it stands, for whoever missed how it came there."""
        pending = [_question(asked) for asked in self.state.pending]
        return {"status": self.state.status, "transcript": self.transcript(), "approvals": pending}

    def ended(self) -> Json:
        """How it ended, in the words of both the status and the last event."""
        turn, last = self.state.turn, self.last_words
        usage = Usage(turn.prompt_tokens, turn.completion_tokens) if turn is not None else Usage()
        calls = message_to_dict(last).get("tool_calls") if last is not None else None
        return {
            "output": last.text if last is not None else None,
            "tool_calls": calls if self.state.status == "completed" else None,
            "usage": results.usage_of(usage) if self.is_over else None,
            "error": self.error(),
            "reason": self.state.row.reason if self.state.status == "cancelled" else None,
        }

    def conclusion(self) -> tuple[str, Json]:
        """The kind and the fields of the last event."""
        status = self.state.status
        return f"run.{status}", {"status": status, **self.ended(), "transcript": self.transcript()}

    def error(self) -> Json | None:
        if self.state.status != "failed":
            return None
        found = _MODEL_ERROR.match(self.state.row.reason)
        result = replace(results.result_of(self.state), error_kind=found[1] if found else "")
        return {"code": results.error_code(result), "message": results.error_text(result)}

    def to_dict(self, status: str) -> Json:
        turn, row = self.state.turn, self.state.row
        pending = [_question(asked) for asked in self.state.pending]
        return {
            "id": run_id_of(row.id),
            "run_id": run_id_of(row.id),
            "object": "run",
            "status": status,
            "session_id": self.session_id,
            "turn_id": self.turn_id or None,
            "model": (turn.model if turn is not None else "") or self.request.options.model or None,
            "created_at": row.received_at,
            "started_at": turn.created_at if turn is not None else None,
            "ended_at": row.settled_at,
            "approval": pending[0] if pending else None,
            "approvals": pending,
            **(self.ended() if self.is_over else {**self.ended(), "output": None}),
        }


def _question(asked: Approval) -> Json:
    return {
        "id": asked.id,
        "code": asked.code,
        "question": asked.question,
        "touches_host": bool(asked.touches_host),
        "expires_at": asked.expires_at,
    }


def _answer(tx: Tx, state: RequestState, inputs: int) -> list[tuple[str, ChatMessage]]:
    turn = state.turn
    if turn is None:
        return []
    return answer_of(transcripts.lines_of_turn(tx, turn.session_id, turn.id), turn.id, inputs)


class RunReader:
    """Looks runs up and tells what they do, for every family whose requests are runs."""

    def __init__(self, gateway: Gateway, feeds: RunFeeds) -> None:
        self._gateway = gateway
        self._requests = gateway.requests
        self._feeds = feeds

    async def find(self, event_id: str, caller: Caller) -> Run | None:
        """The run of an event, if it is one and this caller may see it."""
        state = await self._requests.state_of(storable(event_id))
        is_theirs = state is not None and (caller.sees_all or state.row.sender_id == caller.sender_id)
        if state is None or not is_theirs or state.row.kind != "request":
            return None
        return Run(state, codec.load_request(state.row.body))

    async def whole(self, run: Run) -> Run:
        """With what the agent said and did, as far as it is stored."""
        return replace(run, answer=await self._gateway.db.read(_answer, run.state, len(run.request.messages)))

    async def again(self, run: Run) -> Run:
        state = await self._requests.state_of(run.event_id)
        return await self.whole(replace(run, state=state or run.state))

    async def feed(self, run: Run) -> RunFeed:
        """The feed of a run; one that this process does not know begins with a snapshot."""
        async with self._feeds.making:
            known = self._feeds.find(run.event_id)
            if known is not None:
                return known
            feed = self._feeds.open(run.event_id, run.session_id, run.state.row.lane)
            feed.hold(run.turn_id)
            try:
                run = await self.again(run)
            except BaseException:
                self._feeds.discard(run.event_id)  # nobody would ever end what it holds back
                raise
            feed.resume(run.turn_id or feed.turn_id, run.snapshot(), texts=run.texts, calls=run.answered_calls)
            if run.is_over:
                self._feeds.ended(run.event_id)
            return feed

    async def tell(self, stream: EventStream, feed: RunFeed, run: Run, seen: int, *, last: str = "") -> None:
        """Every event after number ``seen``, to the end of the run, or to the first of the kind ``last``."""
        feed.readers += 1
        try:
            async for event in self._events(stream, feed, run, seen):
                if event.kind == "run.failed":
                    stream.forget()
                await stream.write(event.raw)
                if event.kind == last:
                    return
        finally:
            feed.readers -= 1

    async def _events(self, stream: EventStream, feed: RunFeed, run: Run, seen: int) -> AsyncIterator[RunEvent]:
        while not feed.is_left:
            if feed.first > seen + 1:
                seen = feed.first - 1
                run = await self.again(run)
                yield RunEvent(seen, SNAPSHOT, feed.dressed(SNAPSHOT, seen, 0, run.snapshot()))
                if feed.is_complete and not feed.after(seen):  # the last event had to make room too
                    kind, last = run.conclusion()
                    yield RunEvent(seen, kind, feed.dressed(kind, seen, 0, last))
                    return
            for event in feed.after(seen):
                seen = event.sequence
                yield event
            if not feed.is_over:
                if not await feed.changed(seen, KEEP_ALIVE_SECONDS):
                    await stream.keep_alive()
                    await self._look_for_end(run)
            elif not feed.is_complete:
                await self._conclude(feed, run)
            elif not feed.after(seen):
                return

    async def _look_for_end(self, run: Run) -> None:
        """What is stopped before it begins says nothing on the bus."""
        state = await self._requests.state_of(run.event_id)
        if state is not None and state.status in results.FINAL_STATUS:
            self._feeds.ended(run.event_id)

    async def _conclude(self, feed: RunFeed, run: Run) -> None:
        """Tell a feed the last event of its run, from what is stored."""
        run = await self.again(run)
        last = run.last_words if run.state.status == "completed" else None
        feed.conclude(*run.conclusion(), last_words=last.text if last is not None else "", number=len(run.texts))


# The routes


class Runs:
    def __init__(
        self,
        parts: ApiParts,
        feeds: RunFeeds,
        limits: InputLimits,
        place_of_response: PlaceOfResponse | None,
    ) -> None:
        self._gateway = parts.gateway
        self._requests = parts.gateway.requests
        self._feeds = feeds
        self._reader = RunReader(parts.gateway, feeds)
        self._limits = limits
        self._files = FileTexts()
        self._place_of_response = place_of_response
        self._stopping: dict[str, asyncio.Task[None]] = {}

    async def close(self, _: web.Application) -> None:
        tasks = list(self._stopping.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Asking

    async def create(self, request: web.Request) -> web.Response:
        caller = request[CALLER]
        raw = await self._files.put_in(request, await parse.read_body(request, self._limits), "input", self._limits)
        await note_left_out(request, self._gateway, raw)
        body = decode_request(raw, RunRequestBody)
        names = await self._names(request, body, caller)
        reading = partial(read_request, is_whole=not names.is_named, tools=own_tools(request))
        whole, options = await parse.apart(request, reading, body, self._limits)
        messages = whole
        if names.is_named and body.conversation_history and await has_transcript(self._gateway, names):
            messages, _ = read_request(body, self._limits, is_whole=False, has_history=False)
        if names.is_named:
            await check_answers(self._gateway, names, messages, "input")
        asked = AgentRequest(RequestKind.RUN, names.key, caller.sender_id, messages, options)
        event_id, key = new_id("ev"), request.headers.get(IDEMPOTENCY_KEY, "")
        self._feeds.open(event_id, names.session_id, str(asked.session_key)).begin()
        is_new = False
        try:
            dedupe = f"run:{caller.sender_id}:{key}" if key else ""
            async with self._requests.ask(asked, key=dedupe, event_id=event_id, role=caller.role) as handle:
                is_new = handle.is_new
        finally:
            if not is_new:
                self._feeds.discard(event_id)
        if not is_new:
            return await self._again(dedupe, asked, whole)
        return _accepted(event_id, "queued", names)

    async def _again(self, dedupe: str, asked: AgentRequest, whole: tuple[ChatMessage, ...]) -> web.Response:
        """The same run was asked for before, under one Idempotency-Key. ``whole``: with the history the client sent."""
        row = await self._gateway.db.read(trace.event_of_key, f"{PLATFORM}/{dedupe}")
        first = codec.load_request(row.body) if row is not None else None
        is_same = first is not None and first.options == asked.options and first.messages in (asked.messages, whole)
        if row is None or first is None or not is_same:
            message = f"This {IDEMPOTENCY_KEY} was used for another run. Take a new one."
            raise ApiError(422, message, code="idempotency_key_reused", param=IDEMPOTENCY_KEY)
        state = await self._requests.state_of(row.id)
        status = state.status if state is not None else "queued"
        return _accepted(row.id, status, SessionNames(first.session_key.chat, is_named=True))

    async def _names(self, request: web.Request, body: RunRequestBody, caller: Caller) -> SessionNames:
        """The body's session id wins, then the header's, then that of the response before."""
        previous = await self._place_before(storable(body.previous_response_id or ""), caller)
        names = session_names(request, session_id=previous.chat if previous is not None else "")
        if previous is not None and names.session_id == previous.chat:
            names = replace(names, person=previous.person)
        named = storable(body.session_id or "").strip()
        if named and not named.isprintable():
            raise bad_request(
                "session_id holds characters that cannot be seen.", code="invalid_value", param="session_id"
            )
        return replace(names, session_id=named, is_named=True, person=caller.person) if named else names

    async def _place_before(self, response_id: str, caller: Caller) -> SessionKey | None:
        if not response_id:
            return None
        found = await self._place_of_response(response_id, caller) if self._place_of_response is not None else None
        if found is None:
            message = f"There is no response {response_id[:80]!r} to go on from."
            raise ApiError(404, message, code="previous_response_not_found", param="previous_response_id")
        return found

    # Looking

    async def read(self, request: web.Request) -> web.Response:
        run = await self._run(request)
        if run.is_over:
            run = await self._reader.whole(run)
        return json_response(run.to_dict(self._status(run)))

    async def _run(self, request: web.Request) -> Run:
        name = request.match_info["run_id"]
        run = await self._reader.find(name.removeprefix(RUN), request[CALLER]) if name.startswith(RUN) else None
        if run is None:
            message = f"There is no run {name[:80]!r} for this key. POST /v1/runs tells the id of the one it began."
            raise not_found(message, code="run_not_found")
        return run

    def _status(self, run: Run) -> str:
        is_stopping = run.event_id in self._stopping and not run.is_over
        return STOPPING if is_stopping else run.state.status

    async def events(self, request: web.Request) -> web.StreamResponse:
        run = await self._run(request)
        feed = await self._reader.feed(run)
        seen = feed.place_of(request.headers.get("Last-Event-ID", ""))
        names = SessionNames(run.session_id, is_named=True)
        stream: EventStream | None = None
        try:
            async with event_stream(request, names.headers()) as stream:
                await self._reader.tell(stream, feed, run, seen)
        except (ClientGoneError, StoreIsDownError) as error:  # either way the client may come again
            log.debug("Stream ends early", extra={"run": run_id_of(run.event_id), "reason": str(error)})
        return stream.response if stream is not None else web.Response(status=499)

    # Answering

    async def approve(self, request: web.Request) -> web.Response:
        body = decode(await parse.read_body(request, self._limits), DecisionBody)
        decision, wanted = approvals.read_decision(body), storable(body.approval_id or "")
        run, caller = await self._run(request), request[CALLER]
        asked = await self._gateway.db.read(stored_approvals.of_turn, run.turn_id) if run.turn_id else []
        approval = _chosen(run, asked, wanted, now=self._gateway.clock.now())
        answered = await approvals.answer(self._gateway, caller, approval, decision)
        run = replace(run, state=await self._requests.state_of(run.event_id) or run.state)
        return json_response(
            {
                "run_id": run_id_of(run.event_id),
                "status": self._status(run),
                "session_id": run.session_id,
                "approval_id": approval.id,
                "decision": "approve" if decision.allow else "deny",
                "answered_by": answered["answered_by"],
                "scope": answered["scope"],
            }
        )

    # Stopping

    async def stop(self, request: web.Request) -> web.Response:
        """Answers at once. What takes a while to end is asked again, beside the answer, until it has."""
        run = await self._run(request)
        state = await self._requests.stop(run.event_id) or run.state
        run = replace(run, state=state)
        if run.is_over:
            self._feeds.ended(run.event_id)
        elif run.event_id not in self._stopping:
            task = asyncio.create_task(self._keep_stopping(run.event_id), name=f"stopping {run.event_id}")
            self._stopping[run.event_id] = task
            task.add_done_callback(lambda _: self._stopping.pop(run.event_id, None))
        return json_response(
            {"run_id": run_id_of(run.event_id), "status": self._status(run), "session_id": run.session_id}
        )

    async def _keep_stopping(self, event_id: str) -> None:
        """A run on its way from the queue into its turn, or into sleep, is in neither for a moment."""
        for pause in STOP_AGAIN_SECONDS:
            await asyncio.sleep(pause)
            try:
                state = await self._requests.stop(event_id)
            except StoreIsDownError:
                continue
            if state is None or state.status in results.FINAL_STATUS:
                self._feeds.ended(event_id)
                return
        log.warning("Run is slow to stop", extra={"event": event_id})


def _chosen(run: Run, asked: Sequence[Approval], wanted: str, *, now: float) -> Approval:
    """The question that is meant. Nobody's yes is ever taken for a question that was not named among several."""
    pending = [approval for approval in asked if approval.state == ApprovalState.PENDING and approval.expires_at > now]
    if wanted:
        found = next((approval for approval in asked if approval.id == wanted), None)
        if found is None:
            raise approvals.no_such_approval(wanted)
        if found not in pending:
            raise approvals.too_late(found)
        return found
    if len(pending) > 1:
        message = "This run waits for several approvals. Say which by approval_id."
        raise ApiError(
            400,
            message,
            code="approval_id_required",
            param="approval_id",
            extras={"approvals": [approval.id for approval in pending]},
        )
    if pending:
        return pending[0]
    if run.is_over:
        message = f"This run has ended ({run.state.status}); nothing waits for an answer."
        raise ApiError(409, message, code="run_already_ended", kind="conflict_error")
    if asked:
        raise approvals.too_late(asked[-1])
    message = "This run waits for no approval."
    raise ApiError(409, message, code="approval_not_pending", kind="conflict_error")


def read_request(
    body: SessionChatRequestBody,
    limits: InputLimits,
    *,
    is_whole: bool,
    has_history: bool = True,
    tools: tuple[str, ...] | None = None,
) -> tuple[tuple[ChatMessage, ...], TurnOptions]:
    """What is asked and how. ``is_whole``: no transcript stands before it, so every result needs its call in here.

    ``tools`` are the gateway's that it may use; None for all.
    """
    new: list[Any] | str = body.input
    if isinstance(new, str) or not all(isinstance(item, dict) and "role" in item for item in new):
        new = [{"role": "user", "content": new}]
    history = (body.conversation_history or []) if has_history else []
    messages = [decode_message(item, f"input[{index}]") for index, item in enumerate([*history, *new])]
    talk = parse.read_conversation(messages, limits, "input")
    if is_whole:
        parse.check_results(talk.messages, "input")
    given = body.instructions or ""
    if len(given) > limits.text:
        message = f"instructions is a string of at most {limits.text:,} characters."
        raise bad_request(message, code="invalid_value", param="instructions")
    instructions = "\n\n".join(text for text in (storable(given), talk.instructions) if text)
    most = body.max_output_tokens or body.max_tokens
    return talk.messages, parse.read_options(body, limits, instructions=instructions, max_tokens=most, own_tools=tools)


def decode_request(body: Mapping[str, Any], kind: type[T]) -> T:
    """``message`` and ``messages`` are other names of ``input``; ``max_tokens`` counts without its newer name only."""
    given = next((body[name] for name in ("input", "message", "messages") if body.get(name) is not None), None)
    most = body.get("max_tokens") if body.get("max_output_tokens") is None else None
    return decode({**body, "input": given, "max_tokens": most}, kind)


def _accepted(event_id: str, status: str, names: SessionNames) -> web.Response:
    run_id = run_id_of(event_id)
    response = json_response({"run_id": run_id, "status": status, "session_id": names.session_id}, 202)
    response.headers.update({hdrs.LOCATION: f"/v1/runs/{run_id}", **names.headers()})
    return response
