"""The chunks of a streamed chat completion: a role, words as they come, calls, how it ended, and what it cost."""

from __future__ import annotations

from dataclasses import field

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Json, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.context import SessionNames
from hermes.servers.api.errors import ApiError
from hermes.servers.api.streams import progress
from hermes.servers.api.streams.segments import SegmentText
from hermes.servers.api.streams.sse import EventStream
from hermes.services.events import (
    ReasoningArrived,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEvent,
)


@dataclass(slots=True)
class ChunkWriter:
    """One stream of chunks. ``saw`` is told every event of the turn and says when the stream is over."""

    stream: EventStream
    names: SessionNames
    completion_id: str
    created: int
    model: str
    wants_usage: bool
    text: SegmentText = field(default_factory=SegmentText)
    has_failed: bool = False
    _tools: progress.ToolProgress = field(default_factory=progress.ToolProgress)

    async def begin(self) -> None:
        await self._choice({"role": "assistant", "content": "", "refusal": None})

    async def keep_alive(self) -> None:
        await self.stream.keep_alive()

    async def close(self) -> None:
        await self.stream.done()

    async def saw(self, event: TurnEvent) -> bool:
        if isinstance(event, TextArrived):
            await self._write(self.text.add(event.text))
        elif isinstance(event, ReasoningArrived):
            await self._choice({"reasoning_content": self.text.add_thinking(event.text)})
        elif isinstance(event, SegmentEnded):
            await self._write(self.text.end_segment(event.text.strip()))
        elif isinstance(event, ToolStarted):
            await self._progress(self._tools.started(event))
        elif isinstance(event, ToolEnded):
            await self._progress(self._tools.ended(event))
        elif isinstance(event, TurnEnded):
            await self.end(event.result)
            return True
        return False

    async def end(self, result: TurnResult) -> None:
        await self._close_tools()
        if result.state in results.FAILED_STATES or not (reason := results.finish_reason(result)):
            await self.fail(results.failure(result, self.names))
            return
        if self.text.is_late and result.whole_thinking:
            await self._choice({"reasoning_content": result.whole_thinking})
        if result.is_completed:
            await self._write(self.text.end_answer(result))
        if result.tool_calls:
            calls = [{"index": index, **results.tool_call(call)} for index, call in enumerate(result.tool_calls)]
            await self._choice({"tool_calls": calls})
        extras = {"hermes": results.extras(result)} if results.has_extras(result) else {}
        await self._choice({}, reason, extras, results.logprobs_of(result))
        if self.wants_usage:
            await self.stream.send({**self._chunk(), "choices": [], "usage": results.usage_of(result.usage)})

    async def ask(self, question: str, *, is_formed: bool) -> None:
        """Show a question of the agent. Whoever asked for a form reads it as a refusal, since it is no such answer."""
        if is_formed:
            await self._choice({"refusal": question})
            return
        await self._write(self.text.interject(question))

    async def end_with_question(self, extras: Json) -> None:
        """End the stream while the turn waits for an answer."""
        await self._close_tools()
        await self._choice({}, "stop", {"hermes": extras})
        if self.wants_usage:
            await self.stream.send({**self._chunk(), "choices": [], "usage": results.usage_of(Usage())})

    async def fail(self, error: ApiError) -> None:
        self.has_failed = True
        await self._close_tools()
        if error.status >= 500:
            self.stream.forget()
        await self.stream.send(error.body())

    async def _write(self, text: str) -> None:
        if text:
            await self._choice({"content": text})

    async def _close_tools(self) -> None:
        for shown in self._tools.close():
            await self._progress(shown)

    async def _progress(self, shown: Json | None) -> None:
        """In the frame of a chunk with an empty delta: official clients hand every event to their callers as one."""
        if shown is not None:
            chunk = {**self._chunk(), "choices": [_choice({})], **self._no_usage(), **shown}
            await self.stream.send(chunk, event=progress.EVENT)

    async def _choice(
        self, delta: Json, finish_reason: str | None = None, extras: Json | None = None, logprobs: Json | None = None
    ) -> None:
        choice = _choice(delta, finish_reason, logprobs)
        await self.stream.send({**self._chunk(), "choices": [choice], **self._no_usage(), **(extras or {})})

    def _no_usage(self) -> Json:
        return {"usage": None} if self.wants_usage else {}

    def _chunk(self) -> Json:
        return {
            "id": self.completion_id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }


def _choice(delta: Json, finish_reason: str | None = None, logprobs: Json | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}
