"""Look runs up in the store and stream what they do, for every family whose requests are runs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json, Role, Usage
from hermes.core.requests import AgentRequest
from hermes.core.text import storable
from hermes.servers.api import results
from hermes.servers.api.context import Caller
from hermes.servers.api.streams.run_events import SNAPSHOT, RunEvent, RunFeed, RunFeeds, run_id_of
from hermes.servers.api.streams.sse import EventStream
from hermes.servers.api.streams.turn_stream import KEEP_ALIVE_SECONDS
from hermes.servers.api.transcripts import LONGEST_TEXT, answer_of, message_to_dict
from hermes.services.gateway import Gateway
from hermes.services.requests.requests import PLATFORM, RequestState
from hermes.store import codec
from hermes.store.approvals import Approval
from hermes.store.db import Tx
from hermes.store.sessions import transcripts

FEEDS = web.AppKey("feeds", RunFeeds)
LARGEST_TRANSCRIPT = 256 * 1024
BEGINNING = 1000
_MODEL_ERROR = re.compile(r"model (\w+): ")


def feeds_of(app: web.Application, gateway: Gateway) -> RunFeeds:
    """The feeds that all families of this app share; made by the first of them."""
    if FEEDS not in app:
        feeds = app[FEEDS] = RunFeeds(gateway.bus, gateway.clock)

        async def close(_: web.Application) -> None:
            feeds.close()

        app.on_shutdown.append(close)
    return app[FEEDS]


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
