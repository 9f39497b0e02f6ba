"""`/v1/runs`: work that is asked for now and looked up later. It outlives its connection and its process.

A run is an event of the inbox: its id carries the event's, and its status is read from the store, so that it is true
after a restart too. Only the stream of events is kept in memory (``streams/run_events``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial

from aiohttp import hdrs, web

from hermes.core.approval import ApprovalState
from hermes.core.errors import StoreIsDownError
from hermes.core.keys import SessionKey
from hermes.core.messages import ChatMessage
from hermes.core.requests import AgentRequest, RequestKind
from hermes.core.text import storable
from hermes.servers.api import approvals, parse, results
from hermes.servers.api.bodies import DecisionBody, RunRequestBody, decode
from hermes.servers.api.content import INPUT_LIMITS, InputLimits
from hermes.servers.api.context import CALLER, ApiParts, Caller, SessionNames, session_names
from hermes.servers.api.errors import ApiError, bad_request, not_found
from hermes.servers.api.input.files import FileTexts
from hermes.servers.api.input.tools import note_left_out, own_tools
from hermes.servers.api.run_reader import Run, RunReader, feeds_of
from hermes.servers.api.streams.run_events import RUN, RunFeeds, run_id_of
from hermes.servers.api.streams.sse import ClientGoneError, EventStream, event_stream
from hermes.servers.api.transcripts import check_answers, has_transcript
from hermes.servers.app import RouteAdder, json_response
from hermes.services.requests.requests import PLATFORM
from hermes.store import approvals as stored_approvals
from hermes.store import codec
from hermes.store.approvals import Approval
from hermes.store.ids import new_id
from hermes.store.reports import trace

log = logging.getLogger(__name__)

STOPPING = "stopping"
STOP_AGAIN_SECONDS = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)
IDEMPOTENCY_KEY = "Idempotency-Key"

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
        body = parse.decode_input_body(raw, RunRequestBody)
        names = await self._names(request, body, caller)
        reading = partial(parse.read_input, is_whole=not names.is_named, tools=own_tools(request))
        whole, options = await parse.apart(request, reading, body, self._limits)
        messages = whole
        if names.is_named and body.conversation_history and await has_transcript(self._gateway, names):
            messages, _ = parse.read_input(body, self._limits, is_whole=False, has_history=False)
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


def _accepted(event_id: str, status: str, names: SessionNames) -> web.Response:
    run_id = run_id_of(event_id)
    response = json_response({"run_id": run_id, "status": status, "session_id": names.session_id}, 202)
    response.headers.update({hdrs.LOCATION: f"/v1/runs/{run_id}", **names.headers()})
    return response
