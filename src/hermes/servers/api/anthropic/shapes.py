"""Messages as Anthropic shapes them. Pure; times and ids are handed in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from hermes.core.messages import Json, ToolCall, Usage
from hermes.core.requests import TurnResult
from hermes.servers.api import results
from hermes.servers.api.streams.segments import PAUSE

STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def message_id_of(event_id: str) -> str:
    """With the event's id in it, so that `hermes trace` finds what a client asks about."""
    return f"msg_{event_id}"


def opened(message_id: str, model: str) -> Json:
    """A message of which nothing is known yet."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": usage_of(Usage()),
    }


def whole(result: TurnResult, message_id: str, model: str, *, shows_thinking: bool) -> Json:
    reason = results.finish_reason(result)
    body = {
        **opened(message_id, model),
        "content": blocks_of(result, shows_thinking=shows_thinking),
        "stop_reason": STOP_REASONS[reason],
        "usage": usage_of(result.usage),
    }
    return {**body, "hermes": results.extras(result)} if results.has_extras(result) else body


def blocks_of(result: TurnResult, *, shows_thinking: bool) -> list[Json]:
    """The blocks of an answer in the order in which a stream brings them; texts without a thought between are one."""
    texts: Sequence[str] = (*result.segments, result.text)
    if result.tool_calls and result.segments[-1:] == (result.text.strip(),):
        texts = result.segments
    thinking = result.thinking if shows_thinking else ()
    thoughts = [*[""] * (len(texts) - len(thinking)), *thinking[max(0, len(thinking) - len(texts)) :]]
    blocks: list[Json] = []
    for thought, text in zip(thoughts, texts, strict=True):
        if thought:
            blocks.append(thinking_block(thought))
        if text and blocks and blocks[-1]["type"] == "text":
            blocks[-1] = text_block(f"{blocks[-1]['text']}{PAUSE}{text}")
        elif text:
            blocks.append(text_block(text))
    blocks += [tool_use_block(call, arguments_of(call)) for call in result.tool_calls]
    return blocks or [text_block("")]


def text_block(text: str) -> Json:
    """Without citations: an empty array, since some clients refuse null there."""
    return {"type": "text", "text": text, "citations": []}


def thinking_block(text: str) -> Json:
    """Without a signature: what comes back of it is left out, whichever model thought it."""
    return {"type": "thinking", "thinking": text, "signature": ""}


def tool_use_block(call: ToolCall, arguments: Json) -> Json:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments, "caller": {"type": "direct"}}


def arguments_of(call: ToolCall) -> Json:
    """The arguments as an object; a model that wrote something else is passed on as it wrote it."""
    try:
        parsed: Any = orjson.loads(call.arguments or "{}")
    except orjson.JSONDecodeError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"unreadable": call.arguments}


def usage_of(usage: Usage) -> Json:
    """What was read from the provider's cache is counted apart from the rest of the input."""
    return {**last_usage(usage), "cache_creation": None, "inference_geo": None, "service_tier": None}


def last_usage(usage: Usage) -> Json:
    """The same as the last events of a stream tell it."""
    return {
        "input_tokens": max(0, usage.prompt_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "server_tool_use": None,
    }
