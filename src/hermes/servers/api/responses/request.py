"""What `POST /v1/responses` is asked: input as text or items, and everything that goes with it, read or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.messages import ChatMessage, Json, Role, Sampling, ToolCall
from hermes.core.requests import TurnOptions
from hermes.core.text import one_line, storable
from hermes.servers.api import bodies, parse, response_format
from hermes.servers.api.bodies import decode, decode_message
from hermes.servers.api.content import INPUT_LIMITS, InputLimits, read_content, read_text
from hermes.servers.api.errors import bad_request
from hermes.servers.api.input.sampling import read_effort
from hermes.servers.api.input.tools import is_ours
from hermes.servers.api.parse import Conversation

IGNORED_ITEMS = frozenset({"reasoning", "mcp_list_tools", "mcp_approval_request"})
"""Clients send back what they were given; it means nothing to another model, or is stored here."""


APPROVAL_PREFIX = "mcpr_"


def approval_request_id(approval_id: str) -> str:
    return APPROVAL_PREFIX + approval_id.removeprefix("ap_")


def approval_id_of(request_id: str) -> str:
    """The approval that an `approval_request_id` means; the approval's own id is taken too."""
    return f"ap_{request_id.removeprefix(APPROVAL_PREFIX)}" if request_id.startswith(APPROVAL_PREFIX) else request_id


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """An `mcp_approval_response`."""

    approval_id: str
    allow: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class InputRead:
    """Items as they were read. ``our_calls`` are calls that the gateway ran itself, sent back as `mcp_call`.

    ``ends_with_answer``: nothing follows the last answer to a question, so that question's turn goes on.
    """

    talk: Conversation
    answers: tuple[ApprovalAnswer, ...] = ()
    our_calls: frozenset[str] = frozenset()
    ends_with_answer: bool = False


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """``input`` is what is new, ``history`` what the client says came before, ``echo`` the repeated fields."""

    input: Conversation
    history: Conversation
    options: TurnOptions
    previous: str
    conversation: str
    streams: bool
    is_stored: bool
    is_background: bool
    echo: Json
    answers: tuple[ApprovalAnswer, ...] = ()
    our_calls: frozenset[str] = frozenset()
    goes_on: bool = False
    """The request only answers questions: their turn goes on."""
    has_function_items: bool = False
    declares_us: bool = False
    """Its tools name the gateway as an MCP server, so it knows what an `mcp_approval_request` is."""
    stops_when_left: bool = False

    def without_our_calls(self) -> ResponseRequest:
        """For a session that has these calls in its own transcript."""
        if not self.our_calls:
            return self
        kept = tuple(
            message
            for message in self.input.messages
            if message.tool_call_id not in self.our_calls
            and not any(call.id in self.our_calls for call in message.tool_calls)
        )
        return replace(self, input=replace(self.input, messages=kept or self.input.messages))

    def without_input(self) -> ResponseRequest:
        return replace(self, input=Conversation("", ()))

    def with_system(self, *texts: str) -> ResponseRequest:
        """System words of a chain stand beside this request's own instructions."""
        if not any(texts):
            return self
        whole = "\n\n".join(text for text in (self.options.instructions, *texts) if text)
        return replace(self, options=replace(self.options, instructions=whole))


def parse_request(
    body: Json,
    limits: InputLimits = INPUT_LIMITS,
    *,
    own_tools: tuple[str, ...] | None = None,
    tool_items: str = "",
    is_whole: bool = True,
) -> ResponseRequest:
    """Everything is looked at before anything is stored. ``tool_items`` is the shape of the gateway's own calls.

    ``own_tools`` are the gateway's tools that the request may use; None for all. ``is_whole`` False: the input need not
    end with something to answer.
    """
    tools = body.get("tools")
    others = [tool for tool in tools if not is_ours(tool)] if isinstance(tools, list) else tools
    declares_us = others != tools
    body = {**body, "tools": others} if declares_us else body
    if body.get("prompt") is not None:  # what would change the answer and is not done here is never left out in silence
        message = "Prompt templates are not kept here; send instructions and input."
        raise bad_request(message, code="unsupported_parameter", param="prompt")
    if body.get("input") is None:
        raise bad_request("input is missing: send a text, or an array of items.", code="missing_input", param="input")
    sent = decode(body, bodies.ResponseRequestBody)
    options = parse.read_options(
        sent,
        limits,
        instructions=read_text(sent.instructions, "instructions", limits),
        max_tokens=sent.max_output_tokens,
        form=response_format.read_text_format(sent.text, limits),
        reasoning=read_effort(sent.reasoning.effort if sent.reasoning else None, "reasoning.effort"),
        own_tools=own_tools,
    )
    talk = read_items(sent.input, limits, is_whole=is_whole)
    asked = ResponseRequest(
        talk.talk,
        _read_items(sent.conversation_history or [], "conversation_history", limits).talk,
        options,
        previous=storable(sent.previous_response_id or ""),
        conversation=_read_conversation_name(sent.conversation),
        streams=bool(sent.stream),
        is_stored=sent.store is not False,
        is_background=bool(sent.background),
        echo=_echo(sent, options),
        answers=talk.answers,
        our_calls=talk.our_calls,
        goes_on=talk.ends_with_answer,
        has_function_items=tool_items == "function_call",
        declares_us=declares_us,
    )
    _check_together(asked)
    return asked


def _check_together(asked: ResponseRequest) -> None:
    """Fields that are fine one by one and contradict each other."""
    if asked.previous and asked.conversation:
        message = "previous_response_id and conversation both say what came before: send one of them."
        raise bad_request(message, code="mutually_exclusive", param="conversation")
    if asked.history.messages and (asked.previous or asked.conversation):
        message = "previous_response_id and conversation bring their own history: leave conversation_history out."
        raise bad_request(message, code="mutually_exclusive", param="conversation_history")
    if asked.conversation and not asked.is_stored:
        message = "A conversation is the chain of its stored responses: it needs store to be true."
        raise bad_request(message, code="store_required", param="store")
    if asked.is_background and not asked.is_stored:
        message = "A response in the background is read later: it needs store to be true."
        raise bad_request(message, code="store_required", param="store")


def _read_conversation_name(value: Any) -> str:
    if value is None:
        return ""
    name = value.get("id") if isinstance(value, dict) else value
    if not isinstance(name, str) or not name.strip() or len(name) > bodies.LONGEST_ID:
        message = f"conversation is a name of at most {bodies.LONGEST_ID} characters, or an object with the name as id."
        raise bad_request(message, code="invalid_value", param="conversation")
    return storable(name)


def _echo(sent: bodies.ResponseRequestBody, options: TurnOptions) -> Json:
    choice, sampling = options.tool_choice, options.sampling or Sampling()
    reasoning = sent.reasoning or bodies.ReasoningBody()
    is_word = choice in ("", "auto", "none", "required")
    form = {"type": "text"} if options.format is None else response_format.format_to_dict(options.format)
    return {
        "instructions": options.instructions or None,
        "max_output_tokens": options.max_tokens or None,
        "metadata": sent.metadata or {},
        "parallel_tool_calls": sent.parallel_tool_calls is not False,
        "prompt_cache_key": storable(sent.prompt_cache_key or "") or None,
        "safety_identifier": storable(sent.safety_identifier or "") or None,
        "temperature": 1.0 if options.temperature is None else options.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
        "top_logprobs": sampling.top_logprobs,
        "reasoning": {"effort": reasoning.effort, "summary": reasoning.summary},
        "text": {"format": form},
        "tool_choice": (choice or "auto") if is_word else {"type": "function", "name": choice},
        "tools": [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description or None,
                "parameters": tool.parameters,
                "strict": tool.strict,
            }
            for tool in options.tools
        ],
        "user": storable(sent.user or "") or None,
    }


# Items


def read_input(value: Any, limits: InputLimits = INPUT_LIMITS) -> Conversation:
    """A text, or items; there has to be something to answer."""
    return read_items(value, limits).talk


def read_history(items: list[Json], limits: InputLimits = INPUT_LIMITS, param: str = "items") -> Conversation:
    """Items that stand before an input."""
    return _read_items(items, param, limits).talk


def read_items(value: Any, limits: InputLimits = INPUT_LIMITS, *, is_whole: bool = True) -> InputRead:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    read = _read_items(value, "input", limits)
    talk = read.talk
    if not talk.messages and talk.instructions.strip() and not read.answers:
        # Nothing but system messages: they are what is asked.
        read = replace(
            read, talk=Conversation("", (ChatMessage(Role.USER, talk.instructions),)), ends_with_answer=False
        )
    if is_whole and not read.ends_with_answer:
        parse.check_turn(read.talk.messages, "input")
    return read


def _read_items(value: Any, param: str, limits: InputLimits) -> InputRead:
    if not isinstance(value, list):
        raise bad_request(f"{param} has to be an array of items.", code="invalid_input", param=param)
    if len(value) > limits.messages:
        raise bad_request(f"{param} may hold at most {limits.messages:,} items.", code="too_many_items", param=param)
    system: list[str] = []
    messages: list[ChatMessage] = []
    answers: list[ApprovalAnswer] = []
    our_calls: set[str] = set()
    answered_at = -1
    for index, item in enumerate(value):
        where = f"{param}[{index}]"
        if not isinstance(item, dict):
            raise bad_request("An item is an object.", code="invalid_input", param=where)
        match item.get("type", "message"):
            case "message":
                message = decode_message(item, where)
                if isinstance(message, bodies.SystemMessageBody):
                    system.append(read_text(message.content, f"{where}.content", limits))
                else:
                    messages.append(parse.read_message(message, where, limits))
            case "function_call":
                call = decode(item, bodies.FunctionCallBody, where)
                calls = (parse.read_call(call.call_id, call, where, limits),)
                messages.append(ChatMessage(Role.ASSISTANT, tool_calls=calls))
            case "function_call_output":
                messages.append(_read_call_output(item, where, limits))
            case "mcp_call":
                ours = _read_mcp_call(item, where, limits)
                our_calls.update(call.id for message in ours for call in message.tool_calls)
                messages += ours
            case "mcp_approval_response":
                answers.append(_read_approval_response(item, where))
                answered_at = len(messages)
            case "compaction":
                from hermes.servers.api.responses.compaction import read_compaction

                messages.append(read_compaction(item, where, limits))
            case kind if isinstance(kind, str) and kind in IGNORED_ITEMS:
                pass
            case kind:
                name = repr(one_line(kind, 40)) if isinstance(kind, str) else "that is no name"
                reason = (
                    f"Items of type {name} are not taken; send message, function_call and function_call_output items, "
                    "or what came before as previous_response_id."
                )
                raise bad_request(reason, code="unsupported_item_type", param=f"{where}.type")
    talk = Conversation("\n\n".join(text for text in system if text), _joined(messages))
    return InputRead(talk, tuple(answers), frozenset(our_calls), answered_at == len(messages))


def _read_mcp_call(item: Json, where: str, limits: InputLimits) -> list[ChatMessage]:
    """A call of the gateway's own with its result, as the model reads them; one that never ended is left out."""
    sent = decode(item, bodies.McpCallBody, where)
    if sent.output is None and sent.error is None:
        return []
    text = call_text(sent.output, sent.error)
    function = bodies.CalledFunctionBody(sent.name, sent.arguments)
    call = parse.read_call(sent.call_id or sent.id, function, where, limits)
    result = ChatMessage(Role.TOOL, read_text(text, f"{where}.output", limits), tool_call_id=call.id, name=call.name)
    return [ChatMessage(Role.ASSISTANT, tool_calls=(call,)), result]


def call_text(output: Any, error: Any) -> str:
    """The text of a call's result. Errors of earlier releases are plain texts."""
    given = output if output is not None else error
    if isinstance(given, dict) and given.get("type") == "mcp_tool_execution_error":
        content = given.get("content")
        parts = content if isinstance(content, list) else []
        texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
        if texts and len(texts) == len(parts):
            return "\n".join(texts)
    return given if isinstance(given, str) else orjson.dumps(given).decode()


def _read_approval_response(item: Json, where: str) -> ApprovalAnswer:
    sent = decode(item, bodies.McpApprovalResponseBody, where)
    return ApprovalAnswer(approval_id_of(storable(sent.approval_request_id)), sent.approve, storable(sent.reason or ""))


def _read_call_output(item: Json, where: str, limits: InputLimits) -> ChatMessage:
    result = decode(item, bodies.FunctionCallOutputBody, where)
    if result.output is None:
        raise bad_request("The output of the call is missing.", code="invalid_input", param=f"{where}.output")
    given = read_content(result.output, f"{where}.output", limits)
    return ChatMessage(Role.TOOL, given.text, tool_call_id=storable(result.call_id), images=given.images)


def _joined(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Calls of one answer are items of their own here, and one message with them all everywhere else."""
    joined: list[tuple[ChatMessage, list[ToolCall]]] = []
    for message in messages:
        is_call = bool(message.tool_calls) and not message.text
        if is_call and joined and joined[-1][0].role is Role.ASSISTANT:
            joined[-1][1].extend(message.tool_calls)
        else:
            joined.append((message, list(message.tool_calls)))
    return tuple(replace(message, tool_calls=tuple(calls)) if calls else message for message, calls in joined)


def check_results(before: Sequence[ChatMessage], conversation: Conversation) -> None:
    """Every result follows its call. ``before`` is what stands before the input, or the end of it."""
    parse.check_results((*before, *conversation.messages), "input")
