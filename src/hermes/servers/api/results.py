"""How the end of a turn is told to an API client: one table for what the status, finish reason and headers are.

| the turn                          | status | finish_reason               |
| --------------------------------- | ------ | --------------------------- |
| was completed                     | 200    | stop, or tool_calls         |
| ended early, and there is text    | 200    | length, and `hermes` extras |
| met a 429 of the provider         | 429    | the OpenAI error envelope   |
| failed, or was cut before a word  | 502    | the OpenAI error envelope   |
| ended otherwise (it was stopped)  | 200    | stop, and `hermes` extras   |
"""

from __future__ import annotations

import math
from typing import Any

from hermes.core.i18n.failures import sentence
from hermes.core.messages import Json, ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.core.text import one_line
from hermes.servers.api.context import SessionNames
from hermes.servers.api.errors import NO_RETRY, ApiError
from hermes.services.events import ApprovalRequested, TurnEnded
from hermes.services.requests.requests import RequestHandle, Requests, RequestState

COMPLETED_HEADER = "X-Hermes-Completed"
PARTIAL_HEADER = "X-Hermes-Partial"
ERROR_HEADER = "X-Hermes-Error"
LONGEST_HEADER = 200
LOOK_SECONDS = 10.0
LAST_WORD_SECONDS = 2.0
RETRY_SECONDS = 5.0
"""After a 429 of a provider that does not say how long to wait."""

FAILED_STATES = frozenset({"failed", "set_aside"})
FINAL_STATUS = frozenset({"completed", "failed", "cancelled"})
ANSWERED_ELSEWHERE = "the turn ended, but its answer did not come this way; the session has it"


# The table


def finish_reason(result: TurnResult) -> str:
    """As the table above says; '' stands for a failure, which is told as an error."""
    if result.is_completed and result.tool_calls:
        return "tool_calls"
    if result.is_completed and result.finish_reason != "length":
        return "content_filter" if result.finish_reason == "content_filter" else "stop"
    if result.is_partial and result.text:
        return "length"
    if result.is_partial or result.state in FAILED_STATES:
        return ""
    return "stop"  # clients know five reasons and refuse any other; the extras say that it was stopped


def error_text(result: TurnResult) -> str:
    """What went wrong, as a sentence; '' when nothing did."""
    if result.is_completed:
        return "The model's answer was cut off at its length limit." if result.finish_reason == "length" else ""
    if result.error_kind:
        return result.reason.removeprefix(f"model {result.error_kind}: ")
    first, separator, _ = result.reason.partition(": ")
    if separator and first.isidentifier():
        # An exception of our own code: its text is for the log, not for whoever asked.
        return "The turn failed; the gateway's log says how."
    return f"The turn ended without an answer: {sentence(result.reason or result.state)}"


def error_code(result: TurnResult) -> str:
    """The class of the model's error (auth, quota, rate, context, …), or turn_failed."""
    return result.error_kind or "turn_failed"


def extras(result: TurnResult) -> Json:
    return {
        "completed": result.is_completed,
        "partial": result.is_partial,
        "failed": result.state in FAILED_STATES,
        "state": result.state,
        "error": error_text(result) or None,
        "error_code": None if result.is_completed else error_code(result),
        "turn_id": result.turn_id,
        **({"notices": list(result.notices)} if result.notices else {}),
    }


def outcome_headers(result: TurnResult) -> dict[str, str]:
    headers = {
        COMPLETED_HEADER: "true" if result.is_completed and result.finish_reason != "length" else "false",
        PARTIAL_HEADER: "true" if result.is_partial else "false",
    }
    if error := error_text(result):
        # A header is one line of ASCII; the body has the words as they are.
        headers[ERROR_HEADER] = one_line(error, LONGEST_HEADER).encode("ascii", "replace").decode()
    return headers


def failure(result: TurnResult, names: SessionNames) -> ApiError:
    """The 429 and the 502 of the table."""
    headers = {**names.headers(), **outcome_headers(result), **(NO_RETRY if result.steps else {})}
    if result.is_rate_limited:
        headers["Retry-After"] = str(max(1, math.ceil(result.retry_after or RETRY_SECONDS)))
    return ApiError(
        429 if result.is_rate_limited else 502,
        error_text(result),
        code=error_code(result),
        kind="rate_limit_error" if result.is_rate_limited else "server_error",
        headers=headers,
        extras={"hermes": extras(result)},
    )


def approval_required(asked: ApprovalRequested, names: SessionNames) -> ApiError:
    """A synchronous call cannot wait for a person. Its turn does, and goes on when somebody answers."""
    return ApiError(
        409,
        f"The agent needs an approval before it goes on: {asked.question} Answer it by POST /api/approvals/"
        f"{asked.approval_id}, or with the code {asked.code}: `hermes approvals approve {asked.code}`. The turn is "
        "waiting, and its answer will be in the session.",
        code="approval_required",
        kind="approval_required",
        headers={**names.headers(), **waiting_headers()},
        extras={
            "approval_id": asked.approval_id,
            "approval_code": asked.code,
            "session_id": names.session_id,
            "turn_id": asked.turn_id,
        },
    )


def waiting_headers() -> dict[str, str]:
    """Of an answer that holds a question: the turn has not ended, and asking again would not help."""
    return {COMPLETED_HEADER: "false", PARTIAL_HEADER: "false", **NO_RETRY}


# Waiting for the end


async def end_of(
    handle: RequestHandle, requests: Requests, names: SessionNames, *, look_seconds: float = LOOK_SECONDS
) -> TurnResult:
    """Wait for the end of the turn; an approval it meets on the way is raised."""
    ended = await end_or_question(handle, requests, look_seconds=look_seconds)
    if isinstance(ended, ApprovalRequested):
        raise approval_required(ended, names)
    return ended


async def end_or_question(
    handle: RequestHandle, requests: Requests, *, look_seconds: float = LOOK_SECONDS
) -> TurnResult | ApprovalRequested:
    """Wait for the end of the turn, or for the first question it puts to a person."""
    handle.only = (ApprovalRequested, TurnEnded)
    while True:
        first = await handle.within(look_seconds)
        if first is None:
            if (result := await end_in_store(handle, requests)) is not None:
                return result
            continue
        for event in (first, *handle.ready()):
            if isinstance(event, ApprovalRequested):
                return event
            if isinstance(event, TurnEnded):
                return event.result


async def end_in_store(handle: RequestHandle, requests: Requests) -> TurnResult | None:
    """How it ended, if it did so without a word: a request that is stopped while it waits in line has no turn."""
    state = await requests.state_of(handle.event_id)
    if state is None or state.status not in FINAL_STATUS:
        return None
    if await handle.has_news(LAST_WORD_SECONDS):  # it ended just now: its last words come first, then its end
        return None
    return result_of(state)


def result_of(state: RequestState) -> TurnResult:
    """A result made from what the store knows of a request that has ended."""
    turn_id = state.turn.id if state.turn is not None else ""
    if state.status == "completed":
        return TurnResult(turn_id, "failed", reason=ANSWERED_ELSEWHERE, finish_reason="error")
    ended = "stopped" if state.status == "cancelled" else "failed"
    return TurnResult(turn_id, ended, reason=state.row.reason, finish_reason="error")


# Shapes of chat completions


def completion(result: TurnResult, *, completion_id: str, created: int, model: str) -> Json:
    """The whole answer. Not for a failure, which has no finish reason."""
    reason = finish_reason(result)
    text = result.whole_text
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None, "annotations": []}
    if result.tool_calls:
        message["tool_calls"] = [tool_call(call) for call in result.tool_calls]
    elif not text:
        message["content"] = ""
    if thinking := result.whole_thinking:
        message["reasoning_content"] = thinking
    body: Json = {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": logprobs_of(result), "finish_reason": reason}],
        "usage": usage_of(result.usage),
    }
    return {**body, "hermes": extras(result)} if has_extras(result) else body


def logprobs_of(result: TurnResult) -> Json | None:
    return {"content": list(result.logprobs), "refusal": None} if result.logprobs else None


def has_extras(result: TurnResult) -> bool:
    """Whether there is more to tell than the finish reason does."""
    return not result.is_completed or result.is_partial or bool(result.notices)


def tool_call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def usage_of(usage: Usage) -> Json:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
