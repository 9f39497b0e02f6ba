"""Responses as OpenAI shapes them: the object, its items and its usage. Pure; times and ids are handed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json, Role, ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.context import SessionNames
from hermes.servers.api.responses.request import ResponseRequest, approval_request_id

PREFIX = "resp_"
EVENT_PREFIX = "ev_resp_"
LONGEST_ARGUMENTS = 100 * 1024
"""Bytes of a call's arguments in the last event of a stream; longer ones have been told whole by then."""

SERVER_LABEL = "hermes"
"""The gateway runs its tools as OpenAI runs those of an MCP server of this name."""

_ERROR_CODES = {"rate": "rate_limit_exceeded", "quota": "rate_limit_exceeded"}


def event_id_of(response_id: str) -> str:
    """A response and its event in the inbox carry one name, so each is found by the other."""
    return EVENT_PREFIX + response_id.removeprefix(PREFIX)


def response_id_of(event_id: str) -> str:
    """'' when the event is not one of a response."""
    return PREFIX + event_id.removeprefix(EVENT_PREFIX) if event_id.startswith(EVENT_PREFIX) else ""


FUNCTION_ITEMS = "function_call"
"""The older shape of the gateway's own calls, for clients that show it: `X-Hermes-Tool-Items: function_call`."""


def has_function_items(response: Json) -> bool:
    return bool(response.get("hermes", {}).get("tool_items") == FUNCTION_ITEMS)


# The response


def new_response(
    asked: ResponseRequest, names: SessionNames, *, response_id: str, model: str, created_at: float
) -> Json:
    """A response that has just been asked for. Every field is there, also where it is null."""
    hermes = {"session_id": names.session_id}
    if asked.has_function_items:
        hermes["tool_items"] = FUNCTION_ITEMS
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(created_at),
        "status": "queued" if asked.is_background else "in_progress",
        "background": asked.is_background,
        "completed_at": None,
        "conversation": {"id": asked.conversation} if asked.conversation else None,
        "error": None,
        "incomplete_details": None,
        "max_tool_calls": None,
        "model": model,
        "output": [],
        "previous_response_id": asked.previous or None,
        "service_tier": "default",
        "store": asked.is_stored,
        "truncation": "auto",
        "usage": None,
        **asked.echo,
        "hermes": {**hermes, "session_key": names.memory_key} if names.memory_key else hermes,
    }


def finished(response: Json, result: TurnResult, output: Sequence[Json], *, now: float) -> Json:
    """The same response in its final state."""
    status = status_of(result)
    output = _with_logprobs(output, result) if result.logprobs else output
    cut_by = "content_filter" if result.finish_reason == "content_filter" else "max_output_tokens"
    return {
        **response,
        "status": status,
        "completed_at": int(now) if status == "completed" else None,
        "error": error_of(result) if status == "failed" else None,
        "incomplete_details": {"reason": cut_by} if status == "incomplete" else None,
        "output": list(output),
        "usage": usage_of(result.usage),
    }


def _with_logprobs(output: Sequence[Json], result: TurnResult) -> list[Json]:
    """The same items; the log probabilities of the last answer stand in the last message."""
    items = list(output)
    if items and items[-1]["type"] == "message" and items[-1]["content"]:
        part = {**items[-1]["content"][0], "logprobs": list(result.logprobs)}
        items[-1] = {**items[-1], "content": [part]}
    return items


def status_of(result: TurnResult) -> str:
    """completed, incomplete (the model was cut off), failed or cancelled."""
    if result.is_completed:
        return "incomplete" if result.finish_reason in ("length", "content_filter") else "completed"
    return "failed" if result.state in results.FAILED_STATES else "cancelled"


def error_of(result: TurnResult) -> Json:
    code = _ERROR_CODES.get(result.error_kind, "server_error")
    return {"code": code, "message": results.error_text(result)}


def usage_of(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


# Items of the output


class ItemIds:
    """Names for the items of one response, the same whenever they are counted anew."""

    def __init__(self, response_id: str) -> None:
        self._name = response_id.removeprefix(PREFIX)
        self._count: dict[str, int] = {}

    def next(self, prefix: str) -> str:
        number = self._count.get(prefix, 0)
        self._count[prefix] = number + 1
        return f"{prefix}_{self._name}_{number}"

    def message(self) -> str:
        return self.next("msg")

    def call(self) -> str:
        return self.next("fc")

    def reasoning(self) -> str:
        return self.next("rs")

    def call_output(self) -> str:
        return self.next("fco")

    def mcp_call(self) -> str:
        return self.next("mcp")


def text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(item_id: str, text: str | None, status: str = "completed") -> Json:
    """``text`` None: nothing of it is known yet."""
    content = [] if text is None else [text_part(text)]
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def summary_part(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def reasoning_item(item_id: str, text: str | None, status: str = "completed") -> Json:
    """What the model thought, in the field that every client shows. ``text`` None: nothing of it is known yet."""
    return {
        "id": item_id,
        "type": "reasoning",
        "status": status,
        "summary": [] if text is None else [summary_part(text)],
    }


def call_item(item_id: str, call: ToolCall, status: str = "completed") -> Json:
    return {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def call_output_item(item_id: str, call_id: str, output: str) -> Json:
    return {"id": item_id, "type": "function_call_output", "status": "completed", "call_id": call_id, "output": output}


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call of the gateway ended. ``approval_id`` is the question that was answered for it, '' for none."""

    output: str
    is_error: bool = False
    approval_id: str = ""


def mcp_call_item(item_id: str, call: ToolCall, outcome: CallOutcome | None = None) -> Json:
    """A call that the gateway ran itself; without an outcome it is running. ``call_id`` is the model's name for it."""
    is_error = outcome is not None and outcome.is_error
    done = "failed" if is_error else "completed"
    approval_id = outcome.approval_id if outcome is not None else ""
    return {
        "id": item_id,
        "type": "mcp_call",
        "status": "in_progress" if outcome is None else done,
        "approval_request_id": approval_request_id(approval_id) if approval_id else None,
        "arguments": call.arguments,
        "error": execution_error(outcome.output) if outcome is not None and is_error else None,
        "name": call.name,
        "output": outcome.output if outcome is not None and not is_error else None,
        "server_label": SERVER_LABEL,
        "call_id": call.id,
    }


def execution_error(text: str) -> Json:
    """What a tool said as it failed, as OpenAI shows the failure of an MCP server's tool."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def approval_request_item(approval_id: str, code: str, question: str, name: str, arguments: str) -> Json:
    """A question that waits for an `mcp_approval_response`. Code and question are ours, for people."""
    return {
        "id": approval_request_id(approval_id),
        "type": "mcp_approval_request",
        "arguments": arguments,
        "name": name,
        "server_label": SERVER_LABEL,
        "approval_code": code,
        "question": question,
    }


def question_message_id(response_id: str) -> str:
    return f"msg_{response_id.removeprefix(PREFIX)}_q0"


def has_format(response: Json) -> bool:
    """Whether its answer was asked for in a form."""
    return bool(response["text"]["format"]["type"] != "text")


NO_OUTCOMES: Mapping[str, CallOutcome] = {}


@dataclass(frozen=True, slots=True)
class OutputForm:
    """How the output of a response is written.

    ``is_formed``: words beside a call are no message, since whoever asked for a form reads every message as the answer.
    ``has_function_items``: calls of the gateway have the older shape. ``since`` is the call whose question a response
    answered: what came before that stands in the response which asked it.
    """

    is_formed: bool = False
    has_function_items: bool = False
    since: str = ""


PLAIN = OutputForm()


def form_of(response: Json) -> OutputForm:
    hermes = response["hermes"]
    return OutputForm(has_format(response), has_function_items(response), str(hermes.get("continues", "")))


def output_of(
    messages: Sequence[ChatMessage],
    ids: ItemIds,
    *,
    last_status: str = "completed",
    form: OutputForm = PLAIN,
    outcomes: Mapping[str, CallOutcome] = NO_OUTCOMES,
    thinking: Sequence[str] = (),
) -> list[Json]:
    """What a turn said and did, as items: calls of the gateway with their results; calls of the client have none.

    ``last_status`` is that of the last message: 'incomplete' where the turn was cut off in it. ``thinking`` is what
    the model thought before each of its messages, the last ones where there are more messages.
    """
    messages = _since(messages, form.since)
    count = sum(message.role is Role.ASSISTANT for message in messages)
    thoughts = iter([*[""] * (count - len(thinking)), *thinking[max(0, len(thinking) - count) :]])
    items: list[Json] = []
    calls: dict[str, ToolCall] = {}
    for message in messages:
        if message.role is Role.TOOL:
            call = calls.pop(message.tool_call_id, None)
            if form.has_function_items:
                items += [call_item(ids.call(), call)] if call is not None else []
                items.append(call_output_item(ids.call_output(), message.tool_call_id, message.text))
            elif call is not None:
                outcome = outcomes.get(call.id) or CallOutcome(message.text)
                items.append(mcp_call_item(ids.mcp_call(), call, outcome))
        elif message.role is Role.ASSISTANT:
            items += [call_item(ids.call(), call) for call in calls.values()]
            if thought := next(thoughts, ""):
                items.append(reasoning_item(ids.reasoning(), thought))
            calls = {call.id: call for call in message.tool_calls}
            if message.text and not (form.is_formed and calls):
                items.append(message_item(ids.message(), message.text))
    items += [call_item(ids.call(), call) for call in calls.values()]
    if items and items[-1]["type"] == "message":
        items[-1]["status"] = last_status
    return items


def _since(messages: Sequence[ChatMessage], call_id: str) -> Sequence[ChatMessage]:
    """The messages from the one that made this call, without its words; all of them where none did."""
    for index, message in enumerate(messages):
        if call_id and any(call.id == call_id for call in message.tool_calls):
            return (replace(message, text=""), *messages[index + 1 :])
    return messages


def answer_of(result: TurnResult) -> list[ChatMessage]:
    """What a turn without any step said: its last words are all there is."""
    return [ChatMessage(Role.ASSISTANT, result.text, tool_calls=result.tool_calls)]


# Two shapes


def for_stream(item: Json) -> Json:
    """In a stream the result of a call is an array of parts; in an answer that comes whole it is a string."""
    if item["type"] != "function_call_output":
        return item
    return {**item, "output": [{"type": "input_text", "text": item["output"]}]}


def last_of_stream(response: Json, clients_calls: frozenset[str]) -> Json:
    """Return the response of the last event: arguments of our own calls are trimmed, those of the client's are not."""
    output = [
        item if item.get("call_id") in clients_calls else _trimmed(for_stream(item)) for item in response["output"]
    ]
    return {**response, "output": output}


def _trimmed(item: Json) -> Json:
    if item["type"] not in ("function_call", "mcp_call") or len(item["arguments"]) <= LONGEST_ARGUMENTS // 4:
        return item
    raw = item["arguments"].encode()
    if len(raw) <= LONGEST_ARGUMENTS:
        return item
    return {**item, "arguments": raw[:LONGEST_ARGUMENTS].decode(errors="ignore"), "arguments_trimmed": True}


# The input, shown again


def input_items(messages: Sequence[ChatMessage], response_id: str) -> list[Json]:
    ids = ItemIds(response_id)
    items: list[Json] = []
    for message in messages:
        match message.role:
            case Role.TOOL:
                items.append(call_output_item(ids.next("in"), message.tool_call_id, message.text))
            case Role.ASSISTANT:
                if message.text:
                    items.append(message_item(ids.next("in"), message.text))
                items += [call_item(ids.next("in"), call) for call in message.tool_calls]
            case _:
                items.append(_message_item(ids.next("in"), message))
    return items


def _message_item(item_id: str, message: ChatMessage) -> Json:
    content: list[dict[str, Any]] = [{"type": "input_text", "text": message.text}] if message.text else []
    content += [
        {"type": "input_image", "image_url": image.url, "detail": image.detail, "file_id": None}
        for image in message.images
    ]
    return {"id": item_id, "type": "message", "status": "completed", "role": message.role.value, "content": content}


def listed(items: Sequence[Json], *, has_more: bool = False) -> Json:
    return {
        "object": "list",
        "data": list(items),
        "first_id": items[0]["id"] if items else None,
        "last_id": items[-1]["id"] if items else None,
        "has_more": has_more,
    }


def deleted(response_id: str) -> Json:
    return {"id": response_id, "object": "response", "deleted": True}
