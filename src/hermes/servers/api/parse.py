"""Requests as clients send them, read into our own values; whatever cannot be read is refused with its reason.

Shared by all routes that ask the agent. Nothing here waits or stores, so a refusal leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from aiohttp import web

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json, OutputFormat, Role, TextUnit, ToolCall, ToolSpec
from hermes.core.requests import TurnOptions
from hermes.core.text import length, one_line, storable
from hermes.servers.api import bodies
from hermes.servers.api.bodies import decode
from hermes.servers.api.content import INPUT_LIMITS, InputLimits, read_content, read_text
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.input import tools
from hermes.servers.api.input.sampling import read_sampling

T = TypeVar("T")
B = TypeVar("B", bound=bodies.SessionChatRequestBody)

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
LARGE_BODY = 256 * 1024
GO_ON = "Go on exactly where your last message ends. Write only what follows."


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a client sent: system messages as one text, the rest in order."""

    instructions: str
    messages: tuple[ChatMessage, ...]

    @property
    def newest(self) -> tuple[ChatMessage, ...]:
        """What follows the last answer: all that a session with a transcript of its own has not seen yet.

        Where the last message is that answer, the session is asked to go on with it.
        """
        if self.continues_answer:
            return (ChatMessage(Role.USER, GO_ON),)
        for index in range(len(self.messages) - 1, -1, -1):
            if self.messages[index].role is Role.ASSISTANT:
                return self.messages[index + 1 :]
        return self.messages

    @property
    def continues_answer(self) -> bool:
        """Whether the client wrote the beginning of the answer: prefill, or `Continue` of Open WebUI."""
        return bool(self.messages) and self.messages[-1].role is Role.ASSISTANT

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


def read_conversation(
    items: Sequence[bodies.MessageBody], limits: InputLimits = INPUT_LIMITS, param: str = "messages"
) -> Conversation:
    """Chat messages that end with something to answer."""
    if len(items) > limits.messages:
        message = f"{param} may hold at most {limits.messages:,} messages."
        raise bad_request(message, code="too_many_messages", param=param)
    instructions: list[str] = []
    messages: list[ChatMessage] = []
    for index, item in enumerate(items):
        where = f"{param}[{index}]"
        if isinstance(item, bodies.SystemMessageBody):
            instructions.append(read_text(item.content, f"{where}.content", limits))
        else:
            messages.append(read_message(item, where, limits))
    if not messages and (last := next((text for text in reversed(instructions) if text.strip()), "")):
        # Nothing but system messages: the last of them is what is asked. Many models answer only a user.
        instructions.remove(last)
        messages.append(ChatMessage(Role.USER, last))
    check_turn(messages, param)
    return Conversation("\n\n".join(text for text in instructions if text), tuple(messages))


def read_message(item: bodies.MessageBody, where: str, limits: InputLimits = INPUT_LIMITS) -> ChatMessage:
    """One message of a user, the assistant or a tool."""
    if isinstance(item, bodies.UserMessageBody):
        content = read_content(item.content, f"{where}.content", limits)
        return ChatMessage(Role.USER, content.text, images=content.images, name=_name(item.name))
    if isinstance(item, bodies.ToolMessageBody):
        given = read_content(item.content, f"{where}.content", limits)
        call_id, name = storable(item.tool_call_id), _name(item.name)
        return ChatMessage(Role.TOOL, given.text, tool_call_id=call_id, images=given.images, name=name)
    text = read_text(item.content, f"{where}.content", limits)
    if isinstance(item, bodies.AssistantMessageBody):
        text = text or read_text(item.refusal, f"{where}.refusal", limits)  # of a model that would not answer
        calls = read_tool_calls(item.tool_calls, f"{where}.tool_calls", limits)
        return ChatMessage(Role.ASSISTANT, text, tool_calls=calls, name=_name(item.name))
    raise AssertionError(item)  # there are no other kinds


def check_turn(messages: Sequence[ChatMessage], param: str = "messages") -> None:
    """There has to be something to answer: words, a picture, or the result of a call that was made.

    A last message of the assistant is the beginning of the answer, which goes on from there.
    """
    if not messages:
        message = f"{param} holds nothing to answer: add a message of the user."
        raise bad_request(message, code="empty_messages", param=param)
    last, where = messages[-1], f"{param}[-1]"
    if last.role is Role.ASSISTANT and last.tool_calls:
        message = "The last message has calls without results: send the results after it."
        raise bad_request(message, code="invalid_last_message", param=where)
    if last.role is not Role.TOOL and not last.images and not last.text.strip():
        raise bad_request("The last message is empty.", code="empty_message", param=where)


def check_results(messages: Sequence[ChatMessage], param: str = "messages", known: Iterable[str] = ()) -> None:
    """In a transcript that is complete, every result follows its call: providers refuse the whole talk otherwise.

    ``known`` are calls of the session before. The result of a call that has one already is left out of the prompt:
    clients answer calls that the gateway ran itself, and send results twice.
    """
    calls: set[str] = set()
    answered = set(known)
    for message in messages:
        if message.role is Role.TOOL and message.tool_call_id not in (calls | answered):
            text = (
                f"There is no call {one_line(message.tool_call_id, 60)!r} that waits for this result. Send the message "
                "with the call before it, or go on in the session that made the call."
            )
            raise bad_request(text, code="invalid_tool_result", param=param)
        if message.role is Role.TOOL:
            answered.add(message.tool_call_id)
        else:
            calls = {call.id for call in message.tool_calls}


def known_calls(messages: Sequence[ChatMessage]) -> set[str]:
    """The ids of all calls in a piece of a transcript, also of those that lie before its beginning."""
    found = {call.id for message in messages for call in message.tool_calls}
    return found | {message.tool_call_id for message in messages if message.role is Role.TOOL}


def read_tool_calls(
    items: Sequence[bodies.ToolCallInputBody] | None, where: str, limits: InputLimits = INPUT_LIMITS
) -> tuple[ToolCall, ...]:
    if not items:
        return ()
    if len(items) > limits.parts:
        message = f"tool_calls is an array of at most {limits.parts} calls."
        raise bad_request(message, code="invalid_tool_calls", param=where)
    return tuple(
        read_call(item.id, item.function, f"{where}[{index}].function", limits) for index, item in enumerate(items)
    )


def read_call(
    call_id: str, function: bodies.CalledFunctionBody | bodies.FunctionCallBody, where: str, limits: InputLimits
) -> ToolCall:
    """A call with the JSON text of its arguments; some clients send the object itself."""
    value, where = function.arguments, f"{where}.arguments"
    if isinstance(value, dict):
        check_depth(value, where, limits)
        value = orjson.dumps(value).decode()
    value = "{}" if value is None else value
    if length(value, TextUnit.BYTES) > limits.text:
        message = f"arguments may have at most {limits.text:,} bytes."
        raise bad_request(message, code="content_too_long", param=where)
    return ToolCall(storable(call_id), function.name, storable(value))


def _name(name: Any) -> str:
    """Who speaks, where that is a name a provider takes; it is decoration, so any other is left out."""
    return name if isinstance(name, str) and TOOL_NAME.match(name) else ""


# Tools


def read_tools(
    items: Sequence[Json] | None, limits: InputLimits = INPUT_LIMITS, param: str = "tools"
) -> tuple[ToolSpec, ...]:
    """The client's own functions, in the form of chat completions or the flat one of responses."""
    if not items:
        return ()
    if len(items) > limits.tools:
        raise bad_request(f"{param} is an array of at most {limits.tools} tools.", code="invalid_tools", param=param)
    specs = tuple(
        _tool(item, f"{param}[{index}]", limits) for index, item in enumerate(items) if tools.is_function(item)
    )
    if len({spec.name for spec in specs}) < len(specs):
        raise bad_request("Two tools have the same name. Give each its own.", code="invalid_tools", param=param)
    return specs


def _tool(item: Json, where: str, limits: InputLimits) -> ToolSpec:
    nested, where = item.get("function"), f"{where}.function"
    function = decode(nested if isinstance(nested, dict) else item, bodies.FunctionBody, where)
    description, parameters = function.description or "", function.parameters or {}
    if len(description) > limits.description:
        raise bad_request("The description is too long.", code="invalid_tools", param=f"{where}.description")
    check_depth(parameters, f"{where}.parameters", limits)
    return ToolSpec(function.name, storable(description), parameters, function.strict)


def check_depth(value: Any, where: str, limits: InputLimits = INPUT_LIMITS) -> None:
    """Level by level, without recursion: what is refused here must not exhaust the stack of whoever stores it."""
    level: list[Any] = [value]
    for _ in range(limits.schema_depth):
        below: list[Any] = []
        for item in level:
            inners = item.values() if isinstance(item, dict) else item
            below += [inner for inner in inners if isinstance(inner, (dict, list))]
        if not below:
            return
        level = below
    message = f"This is nested deeper than {limits.schema_depth} levels."
    raise bad_request(message, code="content_too_deep", param=where)


def read_options(
    body: bodies.ChatRequestBody | bodies.ResponseRequestBody | bodies.SessionChatRequestBody,
    limits: InputLimits,
    *,
    instructions: str,
    max_tokens: int | None,
    form: OutputFormat | None = None,
    reasoning: str = "",
    own_tools: tuple[str, ...] | None = None,
) -> TurnOptions:
    """How the agent is to answer, for every route that asks it."""
    choice, functions = tools.read_tool_choice(body.tool_choice, read_tools(body.tools, limits), body.tools)
    return TurnOptions(
        instructions=instructions,
        tools=functions,
        tool_choice=choice,
        model=storable(body.model or ""),
        temperature=body.temperature,
        max_tokens=max_tokens or 0,
        format=form,
        sampling=read_sampling(body),
        reasoning=reasoning,
        own_tools=own_tools,
    )


# Requests whose messages are called `input`: runs, and turns of a session


def decode_input_body(body: Mapping[str, Any], kind: type[B]) -> B:
    """``message`` and ``messages`` are other names of ``input``; ``max_tokens`` counts without its newer name only."""
    given = next((body[name] for name in ("input", "message", "messages") if body.get(name) is not None), None)
    most = body.get("max_tokens") if body.get("max_output_tokens") is None else None
    return decode({**body, "input": given, "max_tokens": most}, kind)


def read_input(
    body: bodies.SessionChatRequestBody,
    limits: InputLimits,
    *,
    is_whole: bool,
    has_history: bool = True,
    tools: tuple[str, ...] | None = None,
) -> tuple[tuple[ChatMessage, ...], TurnOptions]:
    """What is asked and how. ``is_whole``: no transcript stands before it, so every result needs its call in here.

    ``tools`` are the gateway's that it may use; None for all.
    """
    new: list[Any] | str = body.input
    if isinstance(new, str) or not all(isinstance(item, dict) and "role" in item for item in new):
        new = [{"role": "user", "content": new}]
    history = (body.conversation_history or []) if has_history else []
    messages = [bodies.decode_message(item, f"input[{index}]") for index, item in enumerate([*history, *new])]
    talk = read_conversation(messages, limits, "input")
    if is_whole:
        check_results(talk.messages, "input")
    given = body.instructions or ""
    if len(given) > limits.text:
        message = f"instructions is a string of at most {limits.text:,} characters."
        raise bad_request(message, code="invalid_value", param="instructions")
    instructions = "\n\n".join(text for text in (storable(given), talk.instructions) if text)
    most = body.max_output_tokens or body.max_tokens
    return talk.messages, read_options(body, limits, instructions=instructions, max_tokens=most, own_tools=tools)
