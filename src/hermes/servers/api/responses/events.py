"""The typed events of a streamed response, made of the turn's own events. Pure: in goes one, out come some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes.core.messages import Json, ToolCall
from hermes.core.requests import TurnResult
from hermes.servers.api.errors import ApiError
from hermes.servers.api.responses import shapes
from hermes.servers.api.responses.request import approval_id_of, call_text
from hermes.services.events import (
    ReasoningArrived,
    SegmentEnded,
    TextArrived,
    ToolEnded,
    ToolStarted,
    TurnEvent,
    TurnStarted,
)

Approvals = Mapping[str, str]
"""The questions that were answered for calls, by the calls' ids."""

NONE: Approvals = {}
GOOD_OUTCOMES = frozenset({"ok", "asked"})
LAST_EVENT = {
    "completed": "response.completed",
    "failed": "response.failed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",  # there is no event of its own for it; its status tells
}


class ResponseEvents:
    """One stream. ``output`` holds the items told so far, each at the index it was told with.

    ``is_late``: whoever follows came in the middle of the turn. What the model writes then is told when it is whole.
    ``approvals`` are those that the request answered.
    """

    def __init__(self, response: Json, *, is_late: bool = False, first: int = 0, approvals: Approvals = NONE) -> None:
        self._response = response
        self._ids = shapes.ItemIds(response["id"])
        self._sequence = first
        self._text: list[str] = []  # of the message that is being written; empty: none is
        self._thinking: list[str] = []  # likewise
        self._emitted: set[tuple[str, str]] = set()
        self._running: dict[str, tuple[int, ToolCall]] = {}  # calls of the gateway: index and call
        self._has_function_items = shapes.has_function_items(response)
        self._is_late = self._tells_thoughts = is_late
        self._approvals = approvals
        self._messages = 0
        self.output: list[Json] = []

    def opening(self) -> Iterator[Json]:
        yield self._event("response.created", response=self._response)
        kind = "response.queued" if self._response["status"] == "queued" else "response.in_progress"
        yield self._event(kind, response=self._response)

    def of(self, event: TurnEvent) -> Iterator[Json]:
        if isinstance(event, TextArrived):
            if not self._is_late:
                yield from self._write(event.text)
        elif isinstance(event, ReasoningArrived):
            if not self._is_late:
                yield from self._think(event.text)
        elif isinstance(event, SegmentEnded):
            self._is_late = False
            yield from self._end_segment(event.text)
        elif isinstance(event, ToolStarted):
            yield from self._start_call(ToolCall(event.call_id, event.name, event.arguments))
        elif isinstance(event, ToolEnded):
            outcome = shapes.CallOutcome(event.result, event.outcome not in GOOD_OUTCOMES)
            yield from self._end_call(ToolCall(event.call_id, event.name, ""), outcome)
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
            match item["type"]:
                case "reasoning":
                    # Told as it came, unless this client came later.
                    if self._tells_thoughts and messages >= self._messages and item["summary"]:
                        yield from self._tell_thought(item["summary"][0]["text"])
                case "message":
                    messages += 1
                    if messages > self._messages:
                        yield from self._write(item["content"][0]["text"])
                        yield from self._end_message(item["status"])
                case "mcp_call":
                    call = ToolCall(item["call_id"], item["name"], item["arguments"])
                    has_text = item["output"] is not None or item["error"] is not None
                    text = call_text(item["output"], item["error"]) if has_text else ""
                    approval = approval_id_of(item["approval_request_id"] or "")
                    yield from self._start_call(call)
                    yield from self._end_call(call, shapes.CallOutcome(text, item["status"] == "failed", approval))
                case "mcp_approval_request":
                    if self._is_new("approval", item["id"]):
                        yield from self._close_message()
                        yield self._added(item)
                        yield self._done(item)
                case "function_call":
                    yield from self._tell_call(ToolCall(item["call_id"], item["name"], item["arguments"]))
                case _:
                    yield from self._tell_call_output(item["call_id"], item["output"])

    def ask(self, questions: Sequence[Json], text: str) -> Iterator[Json]:
        """The questions of a turn that waits, and the same as a message for people."""
        yield from self._close_message()
        yield from self.rest(questions, last_status="completed")
        if text:
            yield from self._write(text, shapes.question_message_id(self._response["id"]))
            yield from self._end_message("completed")
            self._messages -= 1  # no model wrote it

    def last(self, response: Json, result: TurnResult) -> Json:
        clients_calls = frozenset(call.id for call in result.tool_calls)
        return self._event(LAST_EVENT[response["status"]], response=shapes.last_of_stream(response, clients_calls))

    def end(self, response: Json) -> Json:
        """The last event of a response that is told as it is stored."""
        return self._event(LAST_EVENT[response["status"]], response=response)

    def error(self, error: ApiError) -> Json:
        """For what ends a stream and not its response."""
        return self._event("error", code=error.code, message=error.message, param=error.param, **error.extras)

    # Messages

    def _write(self, text: str, item_id: str = "") -> Iterator[Json]:
        if not text:
            return
        if not self._text:
            yield from self._end_thinking()
            item = shapes.message_item(item_id or self._ids.message(), None, "in_progress")
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

    def _tell_thought(self, text: str) -> Iterator[Json]:
        if self._is_new("thought", text):
            yield from self._close_message()
            yield from self._think(text)
            yield from self._end_thinking()

    def _end_thinking(self) -> Iterator[Json]:
        if not self._thinking:
            return
        text = "".join(self._thinking)
        self._thinking.clear()
        self._emitted.add(("thought", text))
        yield self._summary("response.reasoning_summary_text.done", text=text)
        yield self._summary("response.reasoning_summary_part.done", part=shapes.summary_part(text))
        yield self._done(shapes.reasoning_item(self.output[-1]["id"], text))

    def _summary(self, kind: str, **fields: Any) -> Json:
        where = {"item_id": self.output[-1]["id"], "output_index": len(self.output) - 1, "summary_index": 0}
        return self._event(kind, **where, **fields)

    # Calls

    def _start_call(self, call: ToolCall) -> Iterator[Json]:
        """A call that the gateway runs itself."""
        if self._has_function_items:
            yield from self._tell_call(call)
            return
        if not self._is_new("call", call.id):
            return
        yield from self._close_message()
        item_id = self._ids.mcp_call()
        yield self._added(shapes.mcp_call_item(item_id, ToolCall(call.id, call.name, "")))
        index = len(self.output) - 1
        self.output[index] = shapes.mcp_call_item(item_id, call)
        self._running[call.id] = index, call
        where = {"item_id": item_id, "output_index": index}
        yield self._event("response.mcp_call.in_progress", **where)
        yield self._event("response.mcp_call_arguments.delta", **where, delta=call.arguments)
        yield self._event("response.mcp_call_arguments.done", **where, arguments=call.arguments)

    def _end_call(self, ended: ToolCall, outcome: shapes.CallOutcome) -> Iterator[Json]:
        if self._has_function_items:
            yield from self._tell_call_output(ended.id, outcome.output)
            return
        if ended.id not in self._running:
            return
        index, call = self._running.pop(ended.id)
        if not outcome.approval_id and ended.id in self._approvals:
            outcome = replace(outcome, approval_id=self._approvals[ended.id])
        item = shapes.mcp_call_item(self.output[index]["id"], call, outcome)
        self.output[index] = item
        kind = "failed" if outcome.is_error else "completed"
        yield self._event(f"response.mcp_call.{kind}", item_id=item["id"], output_index=index)
        yield self._event("response.output_item.done", output_index=index, item=item)

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
        if (kind, call_id) in self._emitted:
            return False
        self._emitted.add((kind, call_id))
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
