"""Requests as clients send them, read into our own values; whatever cannot be read is refused with its reason.

Shared by chat completions and responses. Nothing here waits or stores, so a refusal leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json, Role, TextUnit, ToolCall, ToolSpec
from hermes.core.text import length, one_line, storable
from hermes.servers.api.content import INPUT_LIMITS, InputLimits, read_content, read_text
from hermes.servers.api.errors import ApiError, bad_request

T = TypeVar("T")

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
LONGEST_ID = 256
LARGE_BODY = 256 * 1024
SYSTEM_ROLES = ("system", "developer")  # no set: what a client sends as its role may be anything


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a client sent: system messages as one text, the rest in order."""

    instructions: str
    messages: tuple[ChatMessage, ...]

    @property
    def newest(self) -> tuple[ChatMessage, ...]:
        """What follows the last answer: all that a session with a transcript of its own has not seen yet."""
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role is Role.ASSISTANT:
                return self.messages[index + 1 :]
        return self.messages

    @property
    def label(self) -> str:
        """The same for talks that begin alike. For lists and logs only: strangers may open with the same words."""
        first = next((message.text for message in self.messages if message.role is Role.USER), "")
        return hashlib.sha256(f"{self.instructions}\0{first}".encode()).hexdigest()[:12]


# The body


async def read_body(request: web.Request, limits: InputLimits = INPUT_LIMITS) -> Json:
    """The JSON object of a request, of bounded size and depth."""
    if (request.content_length or 0) > limits.body_bytes:
        raise _too_large(limits)
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(limits) from None
    if len(raw) > limits.body_bytes:
        raise _too_large(limits)
    return await apart(request, parse_object, raw)


async def apart(request: web.Request, read: Callable[..., T], *args: Any) -> T:
    """Read something out of a request; where its body is large, beside the loop, which has others to serve."""
    is_large = len(await request.read()) > LARGE_BODY  # it is there by now
    return await asyncio.to_thread(read, *args) if is_large else read(*args)


def parse_object(raw: bytes) -> Json:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        value = _without_half_characters(raw, error)
    if not isinstance(value, dict):
        raise bad_request("The body has to be a JSON object.", code="invalid_json")
    return value


def _without_half_characters(raw: bytes, error: orjson.JSONDecodeError) -> Any:
    """JavaScript cuts emoji in two and sends the half as an escape; that is no reason to refuse a message."""
    if b"\\ud" in raw.lower():
        try:
            whole = json.dumps(json.loads(raw), ensure_ascii=False)
            return orjson.loads(whole.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            pass  # it has another fault too: the first finding is told
    reason = one_line(str(error), 120)
    raise bad_request(f"The body is not JSON that can be read: {reason}.", code="invalid_json") from None


def _too_large(limits: InputLimits) -> ApiError:
    message = f"The body is larger than {limits.body_bytes:,} bytes."
    return ApiError(413, message, code="request_too_large")


# Messages


def read_conversation(value: Any, limits: InputLimits = INPUT_LIMITS, param: str = "messages") -> Conversation:
    """An array of chat messages that ends with something to answer."""
    if not isinstance(value, list):
        raise bad_request(f"{param} has to be an array of messages.", code="invalid_messages", param=param)
    if len(value) > limits.messages:
        message = f"{param} may hold at most {limits.messages:,} messages."
        raise bad_request(message, code="too_many_messages", param=param)
    instructions: list[str] = []
    messages: list[ChatMessage] = []
    for index, item in enumerate(value):
        where = f"{param}[{index}]"
        if not isinstance(item, dict):
            raise bad_request("A message is an object with role and content.", code="invalid_messages", param=where)
        if item.get("role") in SYSTEM_ROLES:
            instructions.append(read_text(item.get("content"), f"{where}.content", limits))
        else:
            messages.append(read_message(item, where, limits))
    check_turn(messages, param)
    return Conversation("\n\n".join(text for text in instructions if text), tuple(messages))


def read_message(item: Mapping[str, Any], where: str, limits: InputLimits = INPUT_LIMITS) -> ChatMessage:
    """One message of a user, the assistant or a tool."""
    role, content, name = item.get("role"), item.get("content"), _name(item)
    match role:
        case "user":
            said = read_content(content, f"{where}.content", limits)
            return ChatMessage(Role.USER, said.text, images=said.images, name=name)
        case "assistant":
            text = read_text(content, f"{where}.content", limits) or _refused(item, where, limits)
            calls = read_tool_calls(item.get("tool_calls"), f"{where}.tool_calls", limits)
            return ChatMessage(Role.ASSISTANT, text, tool_calls=calls, name=name)
        case "tool":
            call_id = read_id(item.get("tool_call_id"), f"{where}.tool_call_id")
            text = read_text(content, f"{where}.content", limits)
            return ChatMessage(Role.TOOL, text, tool_call_id=call_id, name=name)
        case _:
            message = "role is one of system, developer, user, assistant, tool."
            raise bad_request(message, code="invalid_role", param=f"{where}.role")


def _refused(item: Mapping[str, Any], where: str, limits: InputLimits) -> str:
    """What a model said that would not answer stands beside the content, which is then null."""
    return read_text(item.get("refusal"), f"{where}.refusal", limits)


def check_turn(messages: Sequence[ChatMessage], param: str = "messages") -> None:
    """There has to be something to answer: words, a picture, or the result of a call that was made."""
    if not messages:
        message = f"{param} holds nothing to answer: add a message of the user."
        raise bad_request(message, code="empty_messages", param=param)
    last, where = messages[-1], f"{param}[-1]"
    if last.role is Role.ASSISTANT:
        message = "The last message has to be one of a user or a tool."
        raise bad_request(message, code="invalid_last_message", param=where)
    if last.role is Role.USER and not last.images and not last.text.strip():
        raise bad_request("The last message is empty.", code="empty_message", param=where)


def check_results(messages: Sequence[ChatMessage], param: str = "messages") -> None:
    """In a transcript that is complete, every result follows its call: providers refuse the whole talk otherwise."""
    calls: set[str] = set()
    for message in messages:
        if message.role is Role.TOOL and message.tool_call_id not in calls:
            text = (
                f"There is no call {one_line(message.tool_call_id, 60)!r} that waits for this result. Send the message "
                "with the call before it, or go on in the session that made the call."
            )
            raise bad_request(text, code="invalid_tool_result", param=param)
        if message.role is not Role.TOOL:
            calls = {call.id for call in message.tool_calls}


def read_tool_calls(value: Any, where: str, limits: InputLimits = INPUT_LIMITS) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > limits.parts:
        message = f"tool_calls is an array of at most {limits.parts} calls."
        raise bad_request(message, code="invalid_tool_calls", param=where)
    return tuple(_tool_call(item, f"{where}[{index}]", limits) for index, item in enumerate(value))


def _tool_call(item: Any, where: str, limits: InputLimits) -> ToolCall:
    function = item.get("function") if isinstance(item, dict) else None
    if not isinstance(function, dict):
        message = "A tool call is an object with id and function."
        raise bad_request(message, code="invalid_tool_calls", param=where)
    name = read_tool_name(function.get("name"), f"{where}.function.name", code="invalid_tool_calls")
    arguments = read_arguments(function.get("arguments"), f"{where}.function.arguments", limits)
    return ToolCall(read_id(item.get("id"), f"{where}.id"), name, arguments)


def read_arguments(value: Any, where: str, limits: InputLimits = INPUT_LIMITS) -> str:
    """The JSON text of a call's arguments; some clients send the object itself."""
    if isinstance(value, dict):
        check_depth(value, where, limits)
        value = orjson.dumps(value).decode()
    if value is None:
        return "{}"
    if not isinstance(value, str):
        raise bad_request("arguments is a string of JSON.", code="invalid_tool_calls", param=where)
    if length(value, TextUnit.BYTES) > limits.text:
        message = f"arguments may have at most {limits.text:,} bytes."
        raise bad_request(message, code="content_too_long", param=where)
    return storable(value)


def read_id(value: Any, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID:
        message = f"The id of the call is missing, or longer than {LONGEST_ID} characters."
        raise bad_request(message, code="invalid_tool_call_id", param=where)
    return storable(value)


def _name(item: Mapping[str, Any]) -> str:
    """Who speaks, where that is a name a provider takes; it is decoration, so any other is left out."""
    name = item.get("name")
    return name if isinstance(name, str) and TOOL_NAME.match(name) else ""


# Tools


def read_tools(value: Any, limits: InputLimits = INPUT_LIMITS, param: str = "tools") -> tuple[ToolSpec, ...]:
    """The client's own tools, in the form of chat completions or the flat one of responses."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > limits.tools:
        raise bad_request(f"{param} is an array of at most {limits.tools} tools.", code="invalid_tools", param=param)
    specs = tuple(_tool(item, f"{param}[{index}]", limits) for index, item in enumerate(value))
    if len({spec.name for spec in specs}) < len(specs):
        raise bad_request("Two tools have the same name. Give each its own.", code="invalid_tools", param=param)
    return specs


def _tool(item: Any, where: str, limits: InputLimits) -> ToolSpec:
    if not isinstance(item, dict):
        raise bad_request("A tool is an object with type and function.", code="invalid_tools", param=where)
    if item.get("type", "function") != "function":
        message = "Only tools of type 'function' can be handed in; the agent brings its own besides."
        raise bad_request(message, code="unsupported_tool_type", param=f"{where}.type")
    nested = item.get("function")
    function = nested if isinstance(nested, dict) else item
    name = read_tool_name(function.get("name"), f"{where}.function.name", code="invalid_tools")
    description, parameters = function.get("description"), function.get("parameters")
    if not isinstance(description, str | None) or not isinstance(parameters, dict | None):
        message = "description is a string and parameters a JSON schema."
        raise bad_request(message, code="invalid_tools", param=where)
    if len(description or "") > limits.text:
        raise bad_request("The description is too long.", code="invalid_tools", param=f"{where}.function.description")
    check_depth(parameters or {}, f"{where}.function.parameters", limits)
    return ToolSpec(name, storable(description or ""), parameters or {})


def read_tool_name(value: Any, where: str, *, code: str) -> str:
    if not isinstance(value, str) or not TOOL_NAME.match(value):
        message = "The name of a tool has 1 to 64 letters, digits, _ and -."
        raise bad_request(message, code=code, param=where)
    return value


def check_depth(value: Any, where: str, limits: InputLimits = INPUT_LIMITS) -> None:
    """Level by level, without recursion: what is refused here must not exhaust the stack of whoever stores it."""
    level: list[Any] = [value]
    for _ in range(limits.schema_depth):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(inner for inner in item.values() if isinstance(inner, dict | list))
            else:
                below.extend(inner for inner in item if isinstance(inner, dict | list))
        if not below:
            return
        level = below
    message = f"This is nested deeper than {limits.schema_depth} levels."
    raise bad_request(message, code="content_too_deep", param=where)


def read_tool_choice(value: Any, tools: Sequence[ToolSpec], param: str = "tool_choice") -> str:
    """'' where the client says nothing; else auto, none, required, or the name of one of its tools."""
    if value is None:
        return ""
    if value in ("auto", "none"):
        return str(value)
    if value == "required":
        if not tools:
            message = "tool_choice 'required' needs tools to choose from."
            raise bad_request(message, code="invalid_tool_choice", param=param)
        return "required"
    name = _chosen(value)
    if name not in {tool.name for tool in tools}:
        message = "tool_choice is auto, none, required, or names one of the tools of this request."
        raise bad_request(message, code="invalid_tool_choice", param=param)
    return name


def _chosen(value: Any) -> str:
    if not isinstance(value, dict) or value.get("type") != "function":
        return ""
    nested = value.get("function")
    name = nested.get("name") if isinstance(nested, dict) else value.get("name")
    return name if isinstance(name, str) else ""


# Single fields


def read_flag(body: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise bad_request(f"{name} is true or false.", code="invalid_value", param=name)
    return value


def read_string(body: Mapping[str, Any], name: str, *, longest: int = LONGEST_ID) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > longest:
        message = f"{name} is a string of at most {longest} characters."
        raise bad_request(message, code="invalid_value", param=name)
    return storable(value)


def read_temperature(body: Mapping[str, Any]) -> float | None:
    value = body.get("temperature")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
        raise bad_request("temperature is a number from 0 to 2.", code="invalid_value", param="temperature")
    return float(value)


def read_max_tokens(body: Mapping[str, Any], *names: str) -> int:
    """The first of these fields that is there; 0 where none is."""
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
            raise bad_request(f"{name} is a whole number above 0.", code="invalid_value", param=name)
        return value
    return 0


def read_object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bad_request(f"{name} is an object.", code="invalid_value", param=name)
    return value
