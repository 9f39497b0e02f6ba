"""The typed events of a streamed response, made of the turn's own events. Pure: in goes one, out come some."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hermes.core.messages import Json, ToolCall
from hermes.core.requests import TurnResult
from hermes.servers.api.errors import ApiError
from hermes.servers.api.responses import shapes
from hermes.services.events import (
    ReasoningArrived,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEvent,
    TurnStarted,
)

LAST_EVENT = {
    "completed": "response.completed",
    "failed": "response.failed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",  # there is no event of its own for it; its status tells
}


class ResponseEvents:
    """One stream. ``output`` holds the items told so far, each at the index it was told with."""

    def __init__(self, response: Json) -> None:
        self._response = response
        self._ids = shapes.ItemIds(response["id"])
        self._sequence = 0
        self._text: list[str] = []  # of the message that is being written; empty: none is
        self._thinking: list[str] = []  # likewise
        self._told: set[tuple[str, str]] = set()
        self._messages = 0
        self.output: list[Json] = []

    def opening(self) -> Iterator[Json]:
        yield self._event("response.created", response=self._response)
        kind = "response.queued" if self._response["status"] == "queued" else "response.in_progress"
        yield self._event(kind, response=self._response)

    def of(self, event: TurnEvent) -> Iterator[Json]:
        if isinstance(event, TextArrived):
            yield from self._write(event.text)
        elif isinstance(event, ReasoningArrived):
            yield from self._think(event.text)
        elif isinstance(event, SegmentEnded):
            yield from self._end_segment(event.text)
        elif isinstance(event, ToolStarted):
            yield from self._tell_call(ToolCall(event.call_id, event.name, event.arguments))
        elif isinstance(event, ToolEnded):
            yield from self._tell_call_output(event.call_id, event.result)
        elif isinstance(event, TurnStarted) and self._response["status"] == "queued":
            self._response = {**self._response, "status": "in_progress"}
            yield self._event("response.in_progress", response=self._response)

    def rest(self, items: Sequence[Json], *, last_status: str) -> Iterator[Json]:
        """What the turn turned out to hold and was not told yet: calls that were refused, words never streamed."""
        yield from self._end_thinking()
        if self._text:
            yield from self._end_message(last_status)
        messages = 0
        for item in items:
            if item["type"] == "reasoning":
                continue  # told as it came
            if item["type"] == "message":
                messages += 1
                if messages > self._messages:
                    yield from self._write(item["content"][0]["text"])
                    yield from self._end_message(item["status"])
            elif item["type"] == "function_call":
                yield from self._tell_call(ToolCall(item["call_id"], item["name"], item["arguments"]))
            else:
                yield from self._tell_call_output(item["call_id"], item["output"])

    def last(self, response: Json, result: TurnResult) -> Json:
        clients_calls = frozenset(call.id for call in result.tool_calls)
        return self._event(LAST_EVENT[response["status"]], response=shapes.last_of_stream(response, clients_calls))

    def error(self, error: ApiError) -> Json:
        """For what ends a stream and not its response."""
        return self._event("error", code=error.code, message=error.message, param=error.param, **error.extras)

    # Messages

    def _write(self, text: str) -> Iterator[Json]:
        if not text:
            return
        if not self._text:
            yield from self._end_thinking()
            item = shapes.message_item(self._ids.message(), None, "in_progress")
            yield self._added(item)
            yield self._part("response.content_part.added", part=shapes.text_part(""))
        self._text.append(text)
        yield self._part("response.output_text.delta", delta=text, logprobs=[])

    def _end_segment(self, text: str) -> Iterator[Json]:
        yield from self._end_thinking()
        if not self._text:
            yield from self._write(text)
        if self._text:
            yield from self._end_message("completed")

    def _end_message(self, status: str) -> Iterator[Json]:
        text = "".join(self._text)
        yield self._part("response.output_text.done", text=text, logprobs=[])
        yield self._part("response.content_part.done", part=shapes.text_part(text))
        self._text.clear()
        self._messages += 1
        yield self._done(shapes.message_item(self.output[-1]["id"], text, status))

    def _part(self, kind: str, **fields: Any) -> Json:
        return self._event(
            kind, item_id=self.output[-1]["id"], output_index=len(self.output) - 1, content_index=0, **fields
        )

    # Thinking

    def _think(self, text: str) -> Iterator[Json]:
        if not text:
            return
        if not self._thinking:
            if self._text:
                yield from self._end_message("completed")
            yield self._added(shapes.reasoning_item(self._ids.reasoning(), None, "in_progress"))
            yield self._summary("response.reasoning_summary_part.added", part=shapes.summary_part(""))
        self._thinking.append(text)
        yield self._summary("response.reasoning_summary_text.delta", delta=text)

    def _end_thinking(self) -> Iterator[Json]:
        if not self._thinking:
            return
        text = "".join(self._thinking)
        self._thinking.clear()
        yield self._summary("response.reasoning_summary_text.done", text=text)
        yield self._summary("response.reasoning_summary_part.done", part=shapes.summary_part(text))
        yield self._done(shapes.reasoning_item(self.output[-1]["id"], text))

    def _summary(self, kind: str, **fields: Any) -> Json:
        where = {"item_id": self.output[-1]["id"], "output_index": len(self.output) - 1, "summary_index": 0}
        return self._event(kind, **where, **fields)

    # Calls

    def _tell_call(self, call: ToolCall) -> Iterator[Json]:
        if not self._is_new("call", call.id):
            return
        yield from self._close_message()
        item_id = self._ids.call()
        yield self._added(shapes.call_item(item_id, ToolCall(call.id, call.name, ""), "in_progress"))
        where = {"item_id": item_id, "output_index": len(self.output) - 1}
        yield self._event("response.function_call_arguments.delta", **where, delta=call.arguments)
        done = "response.function_call_arguments.done"
        yield self._event(done, **where, name=call.name, arguments=call.arguments)
        yield self._done(shapes.call_item(item_id, call))

    def _tell_call_output(self, call_id: str, output: str) -> Iterator[Json]:
        if not self._is_new("output", call_id):
            return
        yield from self._close_message()
        item = shapes.call_output_item(self._ids.call_output(), call_id, output)
        yield self._added(item)
        yield self._done(item)

    def _close_message(self) -> Iterator[Json]:
        yield from self._end_thinking()
        if self._text:
            yield from self._end_message("completed")

    def _is_new(self, kind: str, call_id: str) -> bool:
        if (kind, call_id) in self._told:
            return False
        self._told.add((kind, call_id))
        return True

    # Events

    def _added(self, item: Json) -> Json:
        self.output.append(item)
        index = len(self.output) - 1
        return self._event("response.output_item.added", output_index=index, item=shapes.for_stream(item))

    def _done(self, item: Json) -> Json:
        self.output[-1] = item
        index = len(self.output) - 1
        return self._event("response.output_item.done", output_index=index, item=shapes.for_stream(item))

    def _event(self, kind: str, **fields: Any) -> Json:
        event = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return event
