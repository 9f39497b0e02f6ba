"""The events of a streamed message: blocks that begin, grow and end, then how it ended and what it cost."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Json, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.anthropic import shapes
from hermes.servers.api.context import SessionNames
from hermes.servers.api.errors import ApiError
from hermes.servers.api.streams.segments import PAUSE, SegmentText
from hermes.servers.api.streams.sse import EventStream
from hermes.services.events import ReasoningArrived, SegmentEnded, TextArrived, TurnEnded, TurnEvent


@dataclass(slots=True)
class MessageWriter:
    """One stream of events. ``saw`` is told every event of the turn and says when the stream is over."""

    stream: EventStream
    names: SessionNames
    message_id: str
    model: str
    shows_thinking: bool
    text: SegmentText = field(default_factory=SegmentText)
    has_failed: bool = False
    _question: str = ""  # that waits for the end of the stream
    _open: str = ""  # the kind of the block that is being written; '' for none
    _count: int = 0  # blocks so far, the open one included

    async def begin(self) -> None:
        await self._send("message_start", message=shapes.opened(self.message_id, self.model))
        await self.keep_alive()

    async def keep_alive(self) -> None:
        await self._send("ping")

    async def close(self) -> None:
        """The last event was the end already."""

    async def saw(self, event: TurnEvent) -> bool:
        if isinstance(event, TextArrived):
            await self._write(self.text.add(event.text))
        elif isinstance(event, ReasoningArrived):
            if self.shows_thinking:
                await self._delta("thinking", shapes.thinking_block(""), "thinking_delta", thinking=event.text)
        elif isinstance(event, SegmentEnded):
            await self._write(self.text.end_segment(event.text.strip()))
        elif isinstance(event, TurnEnded):
            await self.end(event.result)
            return True
        return False

    async def end(self, result: TurnResult) -> None:
        if result.state in results.FAILED_STATES or not (reason := results.finish_reason(result)):
            await self.fail(results.failure(result, self.names))
            return
        if self.text.is_late and self.shows_thinking and result.whole_thinking:
            await self._delta("thinking", shapes.thinking_block(""), "thinking_delta", thinking=result.whole_thinking)
        if result.is_completed:
            await self._write(self.text.end_answer(result))
        if not self._count and not result.tool_calls:
            await self._delta("text", shapes.text_block(""), "text_delta", text="")
        for call in result.tool_calls:
            await self._close_block()
            arguments = orjson.dumps(shapes.arguments_of(call)).decode()
            block = shapes.tool_use_block(call, {})
            await self._delta("tool_use", block, "input_json_delta", partial_json=arguments)
        extras = {"hermes": results.extras(result)} if results.has_extras(result) else {}
        await self._stop(shapes.STOP_REASONS[reason], result.usage, extras)

    async def ask(self, question: str, *, is_formed: bool) -> None:
        """Show a question of the agent. In a form there is no place beside the answer: it comes if none follows."""
        if is_formed:
            self._question = question
            return
        await self._write(self.text.interject(question))

    async def end_with_question(self, extras: Json) -> None:
        """End the stream while the turn waits for an answer."""
        await self._write(self._question)
        await self._stop("refusal" if self._question else "end_turn", Usage(), {"hermes": extras})

    async def _stop(self, reason: str, usage: Usage, extras: Json) -> None:
        await self._close_block()
        delta = {"stop_reason": reason, "stop_sequence": None, "stop_details": None, "container": None}
        await self._send("message_delta", delta=delta, usage=shapes.last_usage(usage), **extras)
        await self._send("message_stop")

    async def fail(self, error: ApiError) -> None:
        self.has_failed = True
        if error.status >= 500:
            self.stream.forget()
        await self.stream.send(error.anthropic_body(), event="error")

    async def _write(self, text: str) -> None:
        if not text:
            return
        if self._count and self._open != "text":
            text = text.removeprefix(PAUSE)  # blocks stand apart anyway
        await self._delta("text", shapes.text_block(""), "text_delta", text=text)

    async def _delta(self, kind: str, block: Json, delta: str, **fields: Any) -> None:
        """Add to the open block, or begin one of this kind."""
        if self._open != kind:
            await self._close_block()
            self._open, self._count = kind, self._count + 1
            await self._send("content_block_start", index=self._count - 1, content_block=block)
        await self._send("content_block_delta", index=self._count - 1, delta={"type": delta, **fields})

    async def _close_block(self) -> None:
        if self._open == "thinking":
            signature = {"type": "signature_delta", "signature": ""}
            await self._send("content_block_delta", index=self._count - 1, delta=signature)
        if self._open:
            await self._send("content_block_stop", index=self._count - 1)
        self._open = ""

    async def _send(self, kind: str, **fields: Any) -> None:
        await self.stream.send({"type": kind, **fields}, event=kind)
