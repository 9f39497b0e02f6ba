"""Keeps stored responses true: whatever becomes of a connection, every response gets its final state.

A handler holds its response while it answers. A response that nobody holds (its client is gone, it runs in the
background, the last process died) is settled here as soon as its turn has ended, from the transcript.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.core.i18n.failures import sentence
from hermes.core.messages import ChatMessage, Json, Role
from hermes.core.requests import TurnResult
from hermes.core.turn import CallState
from hermes.servers.api import results
from hermes.servers.api.approvals import OpenQuestion, open_questions
from hermes.servers.api.errors import ApiError
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.events import GOOD_OUTCOMES
from hermes.services.events import SegmentEnded, TurnEnded, TurnEvent, TurnStarted
from hermes.services.gateway import Gateway
from hermes.services.keep_running import keep_running
from hermes.services.requests.outcomes import TurnRecord, read_record, stored_result, stored_usage
from hermes.services.requests.requests import RequestState
from hermes.store.api import responses
from hermes.store.api.responses import NewResponse, StoredResponse
from hermes.store.db import Database, StoreLimits

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
BITES_PER_LOOK = 20
READERS = 1
NEVER_BEGUN = "the gateway ended before it was begun"


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """How many stored responses there may be, and how long they live."""

    most: int = responses.MAX_RESPONSES
    seconds: float = responses.LIVE_SECONDS


@dataclass(slots=True)
class OpenResponse:
    """One response in the hands of the request that asked for it."""

    name: str
    """The event that its id stands for; ``event_id`` is the one whose turn it follows, which an earlier one began."""
    event_id: str
    session_id: str = ""
    has_steps: bool = False
    """Whether its turn did more than speak once: then its output is read from the transcript."""
    is_settled: bool = True
    """False from the moment it is stored until its final state is."""


@dataclass(frozen=True, slots=True)
class _Due:
    event_id: str
    result: TurnResult | None = None


class ResponseFinalizer:
    """``running`` is a context of the web application: the store is open, and settled, while that serves."""

    def __init__(
        self, gateway: Gateway, kept: ResponseLimits | None = None, look_seconds: float = LOOK_SECONDS
    ) -> None:
        self._gateway = gateway
        self._kept = kept or ResponseLimits()
        self._look_seconds = look_seconds
        self._db: Database | None = None
        self._is_closed = False
        self._stack = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._held: dict[str, OpenResponse] = {}
        self._turns: dict[str, str] = {}  # turn id → event id, of turns under way that answer a response
        self._due: asyncio.Queue[_Due] = asyncio.Queue()
        self._trouble = ""

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        self._gateway.response_stores.append(self.db)
        try:
            await self.db()
        except ApiError as error:
            # One broken file stops nothing else: it is tried again with every request that needs it.
            self._trouble = error.message
            self._gateway.troubles.append(error.message)
        async with self._stack:
            upkeep = keep_running("settling responses", self._settle_forever, self._gateway.troubles)
            settling = asyncio.create_task(upkeep, name="settling responses")
            try:
                with self._gateway.bus.watch(self._saw), self._gateway.bus.watch_relayed(self._saw):
                    yield
            finally:
                settling.cancel()
                await asyncio.gather(settling, return_exceptions=True)
                self._gateway.response_stores.remove(self.db)
                self._db, self._is_closed = None, True

    async def db(self) -> Database:
        """The open store. One that could not be opened is tried again."""
        if self._db is not None:
            return self._db
        if self._is_closed:
            raise _closed(StoreIsDownError("the gateway stops."))
        async with self._opening:
            if self._db is None:
                gateway = self._gateway
                try:
                    self._db = await self._stack.enter_async_context(
                        responses.open_store(
                            gateway.db,
                            gateway.home,
                            on_trouble=gateway.note_trouble,
                            limits=StoreLimits(readers=READERS),
                        )
                    )
                except GatewayError as error:
                    log.error("Response store cannot be opened", extra={"reason": str(error)})
                    raise _closed(error) from error
                if self._trouble in gateway.troubles:
                    gateway.troubles.remove(self._trouble)
            return self._db

    # What handlers ask for

    @contextmanager
    def holding(self, response_id: str, event_id: str = "") -> Iterator[OpenResponse]:
        """Answer for a response; one that was put and has no final state at the end is settled in the background.

        ``event_id`` is that of a turn which was begun before; such a response is read from the store.
        """
        name = shapes.event_id_of(response_id)
        hold = self._held[name] = OpenResponse(name, event_id or name, has_steps=bool(event_id))
        try:
            yield hold
        finally:
            if self._held.get(name) is hold:
                del self._held[name]
            if not hold.is_settled:
                self._due.put_nowait(_Due(hold.event_id))

    def is_taken(self, session_id: str, but_for: str) -> bool:
        """Whether a request under way goes on in this session, other than those of that event."""
        return any(hold.session_id == session_id and hold.event_id != but_for for hold in self._held.values())

    async def put(self, hold: OpenResponse, new: NewResponse) -> None:
        db = await self.db()
        hold.is_settled = False  # from here on it is owed a final state, also if we never learn of the COMMIT
        await db.write(responses.put, new, now=self._gateway.clock.now())

    async def load(self, response_id: str) -> StoredResponse | None:
        return await responses.load(await self.db(), response_id)

    async def newest_of(self, asked_by: str, conversation: str) -> StoredResponse | None:
        db = await self.db()
        response_id = await db.read(responses.newest_of, asked_by, conversation)
        return await responses.load(db, response_id) if response_id else None

    async def reopen(self, response_id: str) -> None:
        """The turn of a response that failed or was cancelled goes on, and so does the response."""
        await (await self.db()).write(responses.reopen, response_id)

    async def delete(self, response_id: str) -> bool:
        return await (await self.db()).write(responses.delete, response_id)

    async def ended(
        self, hold: OpenResponse, response: Json, result: TurnResult | None
    ) -> tuple[TurnResult, list[Json]]:
        """The result of a turn that has just ended, for all of it, and its items. None: read it from the store."""
        if result is not None and not hold.has_steps:
            return result, _output(response, TurnRecord(shapes.answer_of(result)), result)
        result, record = await self._whole(await self._gateway.requests.state_of(hold.event_id), result)
        return result, _output(response, record, result)

    async def items_so_far(self, response: Json, event_id: str) -> list[Json]:
        """What the turn of a response has said and done until now."""
        state = await self._gateway.requests.state_of(event_id)
        if state is None or state.turn is None:
            return []
        record = await self._gateway.db.read(read_record, state.row, state.turn)
        return [item for item in output_items(response, record) if item["type"] != "function_call"]

    async def finish(self, hold: OpenResponse, body: Json) -> None:
        """Store the final state. If that fails now it is done later: the answer goes to its client all the same."""
        if hold.is_settled:
            return
        try:
            await (await self.db()).write(responses.finish, body, now=self._gateway.clock.now())
            hold.is_settled = True
        except (StoreIsDownError, ApiError) as error:
            log.warning("Response is settled later", extra={"response": body["id"], "reason": str(error)})

    # Settling

    async def settled(self, stored: StoredResponse, result: TurnResult | None = None) -> StoredResponse:
        """The response with its final state, if its turn has ended; otherwise with the state it is in."""
        if not stored.is_open or shapes.event_id_of(stored.id) in self._held:
            return stored
        state = await self._gateway.requests.state_of(stored.event_id)
        if state is not None and state.pending:
            return await self._with_questions(stored, state)
        if state is not None and state.status not in results.FINAL_STATUS:
            return _as_it_is(stored, state)
        result, record = await self._whole(state, result)
        output = _output(stored.body, record, result)
        stored.body["hermes"].pop("approvals", None)
        now = self._gateway.clock.now()
        body = shapes.finished(stored.body, result, output, now=now)
        if not await (await self.db()).write(responses.finish, body, now=now):
            return await self.load(stored.id) or replace(stored, status=body["status"], body=body)
        return replace(stored, status=body["status"], body=body)

    async def _with_questions(self, stored: StoredResponse, state: RequestState) -> StoredResponse:
        """A response whose turn waits. In the background it goes on; any other was answered with the questions.

        In the store it stays open: if the questions are answered elsewhere, it gets all that its turn did.
        """
        if stored.body["status"] == "completed":  # as it was answered
            return replace(stored, status="completed")
        questions = await self._gateway.db.read(open_questions, state.row.turn_id)
        output = [
            *await self.items_so_far(stored.body, stored.event_id),
            *(question_item(question) for question in questions),
        ]
        hermes = {**stored.body["hermes"], "approvals": waiting_approvals(questions)}
        status = "in_progress" if stored.body["background"] else "completed"
        return replace(
            stored, status=status, body={**stored.body, "status": status, "output": output, "hermes": hermes}
        )

    async def note_questions(self, hold: OpenResponse, body: Json) -> None:
        """Keep the questions as they were told. The response stays open until its turn ends, or goes on in another."""
        if hold.is_settled:
            return
        try:
            await (await self.db()).write(responses.note, body)
        except (StoreIsDownError, ApiError) as error:
            log.warning("Response is settled later", extra={"response": body["id"], "reason": str(error)})

    async def take_over(self, event_id: str) -> None:
        """End the responses of a turn with the questions they told: what follows belongs to the next response."""
        db = await self.db()
        for response_id in await db.read(responses.open_of, event_id):
            stored = await self.load(response_id)
            if stored is None or stored.body["background"] or shapes.event_id_of(response_id) in self._held:
                continue
            body = (await self.settled(stored)).body
            if body["status"] == "completed":
                await db.write(responses.finish, body, now=self._gateway.clock.now())

    async def _whole(self, state: RequestState | None, result: TurnResult | None) -> tuple[TurnResult, TurnRecord]:
        """The turn from its beginning: a result tells only of what was done since it was last taken up."""
        if state is None or state.turn is None:
            if result is None:
                reason = NEVER_BEGUN if state is None else state.row.reason
                ended = "stopped" if state is not None and state.status == "cancelled" else "failed"
                result = TurnResult("", ended, reason=reason, finish_reason="error")
            return result, TurnRecord()
        record = await self._gateway.db.read(read_record, state.row, state.turn)
        if result is None:
            return stored_result(state, state.turn, record.messages), record
        if result.state in results.FAILED_STATES and result.text:  # words that were cut off before they got there
            record = replace(record, messages=[*record.messages, ChatMessage(Role.ASSISTANT, result.text)])
        usage = replace(stored_usage(state.turn), cached_tokens=result.usage.cached_tokens)
        return replace(result, usage=usage), record

    def _saw(self, event: TurnEvent) -> None:
        """On the bus, for every event there is: it must be quick."""
        if isinstance(event, TurnStarted):
            for event_id in event.event_ids:
                if event_id.startswith(shapes.EVENT_PREFIX):
                    self._turns[event.turn_id] = event_id
                    self._note_steps(event_id, event.is_resumed)
        elif isinstance(event, SegmentEnded):
            self._note_steps(self._turns.get(event.turn_id, ""), True)
        elif isinstance(event, TurnEnded):
            event_id = self._turns.pop(event.turn_id, "")
            if event_id and event_id not in self._held:
                self._due.put_nowait(_Due(event_id, event.result))

    def _note_steps(self, event_id: str, has_steps: bool) -> None:
        if has_steps and (hold := self._held.get(event_id)) is not None:
            hold.has_steps = True

    async def _settle_forever(self) -> None:
        await self._look()
        while True:
            try:
                async with asyncio.timeout(self._look_seconds):
                    due = await self._due.get()
            except TimeoutError:
                await self._look()
                continue
            await self._settle(due)

    async def _look(self) -> None:
        """Settle what nobody told us of, and let the oldest go."""
        try:
            db = await self.db()
            for event_id in await db.read(responses.open_ones):
                await self._settle(_Due(event_id))
            clock = self._gateway.clock
            before = 0.0 if clock.is_doubtful else clock.now() - self._kept.seconds
            for _ in range(BITES_PER_LOOK):
                if await db.alone(responses.evict, most=self._kept.most, before=before) < responses.BITE:
                    break
        except (GatewayError, ApiError) as error:
            log.warning("Store is down", extra={"while": "looking after responses", "reason": str(error)})

    async def _settle(self, due: _Due) -> None:
        try:
            for response_id in await (await self.db()).read(responses.open_of, due.event_id):
                if (stored := await self.load(response_id)) is not None:
                    await self.settled(stored, due.result)
        except (GatewayError, ApiError) as error:  # the next look finds it again
            log.warning("Store is down", extra={"while": "settling a response", "reason": str(error)})


def _output(response: Json, record: TurnRecord, result: TurnResult) -> list[Json]:
    last_status = "completed" if shapes.status_of(result) == "completed" else "incomplete"
    return output_items(response, record, last_status, result.thinking)


def output_items(
    response: Json, record: TurnRecord, last_status: str = "completed", thinking: Sequence[str] = ()
) -> list[Json]:
    """The items of a response, from what its turn has stored. What the model thought is not stored."""
    outcomes = {
        call.call_id: shapes.CallOutcome(call.result, call.outcome not in GOOD_OUTCOMES, call.approval_id)
        for call in record.calls.values()
        if call.state == CallState.DONE
    }
    return shapes.output_of(
        record.messages,
        shapes.ItemIds(response["id"]),
        last_status=last_status,
        form=shapes.form_of(response),
        thinking=thinking,
        outcomes=outcomes,
    )


def _as_it_is(stored: StoredResponse, state: RequestState) -> StoredResponse:
    status = "queued" if state.status == "queued" else "in_progress"
    return replace(stored, status=status, body={**stored.body, "status": status})


def waiting_approvals(questions: Sequence[OpenQuestion]) -> list[Json]:
    """The questions as `hermes` extras tell them."""
    return [
        {
            "approval_id": question.approval.id,
            "approval_code": question.approval.code,
            "question": question.approval.question,
        }
        for question in questions
    ]


def question_item(question: OpenQuestion) -> Json:
    approval = question.approval
    return shapes.approval_request_item(
        approval.id, approval.code, approval.question, question.name, question.arguments
    )


def _closed(error: GatewayError) -> ApiError:
    reason = sentence(str(error))
    message = f"Stored responses are not available: {reason} With store set to false a response works without them."
    return ApiError(503, message, code="response_store_unavailable", kind="server_error", headers={"Retry-After": "5"})
