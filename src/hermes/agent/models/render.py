"""A ModelRequest as the JSON body of the chat_completions dialect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hermes.core.messages import ChatMessage, Json, Role, ToolCall, ToolSpec
from hermes.core.ports import ModelRequest

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
OPTIONAL = ("stream_options", "temperature", "tool_choice", "max_tokens")


def body_of(request: ModelRequest, model: str, *, with_tools: bool, without: Sequence[str] = ()) -> Json:
    """What is sent. ``without`` names optional fields that this provider has refused before."""
    body: Json = {"model": model, "messages": [message_of(message) for message in request.messages]}
    if request.stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    if request.tools and with_tools:
        body["tools"] = [tool_of(tool) for tool in request.tools]
        if request.tool_choice:
            body["tool_choice"] = choice_of(request.tool_choice)
    if request.max_tokens:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    for field in without:
        value = body.pop(field, None)
        if field == "max_tokens" and value is not None:
            body["max_completion_tokens"] = value  # OpenAI's newer name for it, and the only one o-models take
    return body


def refused_field(body: Mapping[str, Any], detail: str) -> str:
    """The optional field of this body that a refusal names, or nothing: the call may be repeated without it."""
    return next((field for field in OPTIONAL if field in body and field in detail), "")


def message_of(message: ChatMessage) -> Json:
    rendered: Json = {"role": str(message.role), "content": message.text}
    if message.role is Role.TOOL:
        rendered["tool_call_id"] = message.tool_call_id
        return rendered
    if message.images and message.role is Role.USER:
        rendered["content"] = _parts(message)
    if message.tool_calls:
        rendered["content"] = message.text or None
        rendered["tool_calls"] = [_call_of(call) for call in message.tool_calls]
    if message.name and NAME.match(message.name):  # providers refuse any other name
        rendered["name"] = message.name
    return rendered


def _parts(message: ChatMessage) -> list[Json]:
    parts: list[Json] = [{"type": "text", "text": message.text}] if message.text else []
    for image in message.images:
        parts.append({"type": "image_url", "image_url": {"url": image.url, "detail": image.detail}})
    return parts


def _call_of(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _sendable(call.arguments)}}


def _sendable(arguments: str) -> str:
    """Strict providers refuse the whole conversation for one old call whose arguments are not a JSON object."""
    try:
        if isinstance(orjson.loads(arguments), dict):
            return arguments
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps({"unreadable": scrubbed(arguments)}).decode()


def tool_of(tool: ToolSpec) -> Json:
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def choice_of(choice: str) -> str | Json:
    """``auto``, ``none`` and ``required`` as they are; anything else names a tool."""
    if choice in ("auto", "none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}


def encode(body: Json) -> bytes:
    """As JSON; half characters (lone surrogates, as file names may hold) become the replacement mark."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return orjson.dumps(scrubbed(body))


def scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {scrubbed(key): scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(item) for item in value]
    return value
