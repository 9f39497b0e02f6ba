"""Bodies of requests, declared once: decoding, refusals and the schemas of `/openapi.json` follow from these structs.

A field that clients write in many forms is `Any` to the decoder and names its documented form; ``parse`` reads it.
Fields that are not declared are accepted and left alone. What two fields say together is checked by the routes.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hermes.core.messages import Json
from hermes.core.text import one_line
from hermes.servers.api.errors import ApiError, bad_request

T = TypeVar("T")

LONGEST_ID = 256
LONGEST_REASON = 1000
LONGEST_TITLE = 200
SCHEMAS = "#/components/schemas/"


def _as(name: str) -> Meta:
    """The documented form of what is read by hand."""
    return Meta(extra_json_schema={"$ref": f"{SCHEMAS}{name}"})


Name = Annotated[str, Meta(max_length=LONGEST_ID)]
Label = Annotated[str, Meta(max_length=1024)]
Title = Annotated[str, Meta(max_length=LONGEST_TITLE)]
CallId = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
ToolName = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}(?!\n)$")]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
Share = Annotated[float, Meta(ge=0, le=1)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
TokenCount = Annotated[int, Meta(ge=1, lt=2**31)]
Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]
Text = Annotated[Any, _as("Text")]
TextContent = Annotated[Any, _as("TextContent")]
UserContent = Annotated[Any, _as("UserContent")]
InputItems = Annotated[Any, _as("InputItems")]
RunInput = Annotated[str | list[Any], _as("RunInput")]
ToolChoice = Annotated[Any, _as("ToolChoice")]
Tools = list[Annotated[Json, _as("Tool")]]


# Messages and tools


class CalledFunctionBody(msgspec.Struct):
    name: ToolName
    arguments: str | Json | None = None


class ToolCallInputBody(msgspec.Struct):
    id: CallId
    function: CalledFunctionBody
    type: Annotated[Any, Meta(extra_json_schema={"const": "function"})] = "function"


class SystemMessageBody(msgspec.Struct, tag_field="role", tag="system"):
    content: TextContent = None


class DeveloperMessageBody(SystemMessageBody, tag="developer"):
    pass


class UserMessageBody(msgspec.Struct, tag_field="role", tag="user"):
    content: UserContent = None
    name: Any = None


class AssistantMessageBody(msgspec.Struct, tag_field="role", tag="assistant"):
    content: TextContent = None
    refusal: TextContent = None
    tool_calls: list[ToolCallInputBody] | None = None
    name: Any = None


class ToolMessageBody(msgspec.Struct, tag_field="role", tag="tool"):
    tool_call_id: CallId
    content: UserContent = None
    name: Any = None


MessageBody = SystemMessageBody | DeveloperMessageBody | UserMessageBody | AssistantMessageBody | ToolMessageBody
MESSAGES: dict[Any, type[MessageBody]] = {
    "system": SystemMessageBody,
    "developer": DeveloperMessageBody,
    "user": UserMessageBody,
    "assistant": AssistantMessageBody,
    "tool": ToolMessageBody,
}


class FunctionCallBody(msgspec.Struct):
    call_id: CallId
    name: ToolName
    arguments: str | Json | None = None


class FunctionCallOutputBody(msgspec.Struct):
    call_id: CallId
    output: UserContent


class McpCallBody(msgspec.Struct):
    """A call that the gateway ran itself, sent back. ``call_id`` is an addition of ours, which some clients drop."""

    name: ToolName
    id: CallId
    arguments: str | Json | None = None
    call_id: CallId | None = None
    output: TextContent = None
    error: Any = None


class McpApprovalResponseBody(msgspec.Struct):
    approval_request_id: Name
    approve: bool
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] | None = None


class FunctionBody(msgspec.Struct):
    name: ToolName
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


class FormatBody(msgspec.Struct):
    type: Literal["text", "json_object", "json_schema"] = "text"


class SchemaBody(msgspec.Struct):
    name: ToolName
    schema: Json
    strict: bool | None = None
    description: str | None = None


# One for each route


class StreamOptionsBody(msgspec.Struct):
    include_usage: bool | None = None


class ChatRequestBody(msgspec.Struct):
    messages: Annotated[list[MessageBody], Meta(extra_json_schema={"minItems": 1, "maxItems": 10_000})]
    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptionsBody | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice = None
    temperature: Temperature | None = None
    max_tokens: TokenCount | None = None
    max_completion_tokens: TokenCount | None = None
    response_format: Annotated[Json, _as("ResponseFormat")] | None = None
    n: Annotated[Any, Meta(extra_json_schema={"enum": [1, None]})] = None
    modalities: Annotated[Any, Meta(extra_json_schema={"enum": [["text"], [], None]})] = None
    functions: Annotated[Any, Meta(extra_json_schema={"enum": [[], None]})] = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    parallel_tool_calls: bool | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    reasoning_effort: str | None = None


class ResponseTextBody(msgspec.Struct):
    format: Annotated[Json, _as("TextFormat")] | None = None


class ReasoningBody(msgspec.Struct):
    effort: str | None = None
    summary: Literal["auto", "concise", "detailed"] | None = None


class ResponseRequestBody(msgspec.Struct):
    input: InputItems
    model: Name | None = None
    instructions: Text = None
    conversation_history: Annotated[Any, _as("ItemHistory")] = None
    previous_response_id: Name | None = None
    conversation: Annotated[Any, _as("ConversationName")] = None
    store: bool | None = None
    background: bool | None = None
    stream: bool | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice = None
    parallel_tool_calls: bool | None = None
    temperature: Temperature | None = None
    max_output_tokens: TokenCount | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    top_logprobs: TopLogprobs | None = None
    include: list[str] | None = None
    reasoning: ReasoningBody | None = None
    text: ResponseTextBody | None = None
    metadata: Metadata | None = None
    prompt: Annotated[Any, Meta(extra_json_schema={"type": "null"})] = None
    prompt_cache_key: Label | None = None
    safety_identifier: Label | None = None
    user: Label | None = None


class MessagesRequestBody(msgspec.Struct):
    messages: Annotated[list[Json], Meta(min_length=1, max_length=10_000)]
    model: Name | None = None
    max_tokens: TokenCount | None = None
    system: Any = None
    stream: bool | None = None
    tools: list[Json] | None = None
    tool_choice: Json | None = None
    temperature: Annotated[float, Meta(ge=0, le=1)] | None = None
    top_p: Share | None = None
    stop_sequences: list[str] | None = None
    thinking: Json | None = None
    output_config: Json | None = None


class EmbeddingsRequestBody(msgspec.Struct):
    input: Annotated[Any, Meta(extra_json_schema={"type": ["string", "array"]})]
    model: Name | None = None
    dimensions: TokenCount | None = None
    encoding_format: Literal["float", "base64"] | None = None
    user: Label | None = None


class ConversationBody(msgspec.Struct):
    metadata: Metadata | None = None
    items: Annotated[list[Json], _as("ConversationItems")] | None = None


class ConversationItemsBody(msgspec.Struct):
    items: Annotated[list[Json], _as("ConversationItems")]


class SessionChatRequestBody(msgspec.Struct):
    input: RunInput
    conversation_history: Annotated[list[Any], _as("Messages")] | None = None
    instructions: Annotated[str, _as("Text")] | None = None
    model: Name | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice = None
    temperature: Temperature | None = None
    max_output_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None


class RunRequestBody(SessionChatRequestBody):
    session_id: Name | None = None
    previous_response_id: Name | None = None


class SessionChangeBody(msgspec.Struct):
    title: Title


class SessionForkBody(msgspec.Struct):
    title: Title | None = None
    up_to: Annotated[int, Meta(ge=1)] | None = None


class DecisionBody(msgspec.Struct):
    decision: Literal["approve", "deny"] | UnsetType = UNSET
    approve: Annotated[Any, Meta(extra_json_schema={"type": ["boolean", "null"]})] = None
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] | None = None
    scope: Literal["once", "session", "always", ""] | None = None
    effect_sha256: Annotated[Name, Meta(description="of the approval as read; needed where is_long")] | None = None
    approval_id: Name | None = None


class PairingDecisionBody(msgspec.Struct):
    platform: Name
    decision: Literal["approve", "refuse", "revoke"]
    code: Annotated[Name, Meta(description="what they were shown, for approve and refuse")] | None = None
    user_id: Annotated[Name, Meta(description="their id on the platform, for revoke")] | None = None


class JobChangeBody(msgspec.Struct):
    schedule: Annotated[str, Meta(max_length=200, description="30m, every 2h, five-field cron, an ISO time")] | None = (
        None
    )
    prompt: Annotated[str, Meta(max_length=20_000)] | None = None
    name: Name | None = None
    deliver: Annotated[Label, Meta(description="local, all, a platform or platform:chat")] | None = None
    script: Name | None = None
    skills: Annotated[list[Name], Meta(max_length=20)] | None = None
    model: Name | None = None
    repeat: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    no_agent: bool | None = None
    catch_up: Literal["run_once", "run_all", "skip"] | None = None
    quiet: Annotated[str, Meta(max_length=20, description="22:00-07:00")] | None = None
    timezone: Annotated[str, Meta(max_length=64)] | None = None


class JobBody(JobChangeBody, kw_only=True):
    schedule: Annotated[
        str, Meta(min_length=1, max_length=200, description="30m, every 2h, five-field cron, an ISO time")
    ]
    prompt: Annotated[str, Meta(max_length=20_000)] = ""


class NewTaskBody(msgspec.Struct):
    title: Title
    body: str = ""
    board: Name = "main"
    priority: int = 0
    assignee: Annotated[Name, Meta(description="`agent` lets the gateway work on it")] = ""
    needs: Annotated[list[int], Meta(max_length=100, description="tasks that must be done first")] = []


class TaskChangesBody(msgspec.Struct):
    title: Title | None = None
    body: str | None = None
    priority: int | None = None
    rank: Annotated[float, Meta(description="the order within a column")] | None = None
    assignee: Name | None = None
    state: Name | None = None
    reason: Annotated[str, Meta(max_length=LONGEST_REASON)] | None = None


class TaskCommentBody(msgspec.Struct):
    text: str


# Decoding

CODES = {
    "invalid_decision": "approve decision",
    "invalid_input": "conversation_history input output",
    "invalid_messages": "messages",
    "invalid_response_format": "format response_format",
    "invalid_role": "role",
    "invalid_scope": "scope",
    "invalid_tool_call_id": "call_id id tool_call_id",
    "invalid_tool_calls": "arguments tool_calls",
    "invalid_tools": "tools",
    "invalid_value": "title",
}
CODE_OF = {field: code for code, fields in CODES.items() for field in fields.split()}
"""The code of a refusal, by the last field on the path that is listed here."""


def decode(value: Any, kind: type[T], where: str = "") -> T:
    """Make a struct of what JSON held, or refuse it with the place, which begins with ``where``, and the reason."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), kind, where) from None


def decode_message(item: Any, where: str) -> MessageBody:
    """One message, as its role says."""
    if not isinstance(item, dict):
        raise bad_request(f"{where} is no object with role and content.", code="invalid_messages", param=where)
    role = item.get("role")
    if not isinstance(role, str) or role not in MESSAGES:
        message = f"{where}.role is one of {', '.join(MESSAGES)}."
        raise bad_request(message, code="invalid_role", param=f"{where}.role")
    return decode(item, MESSAGES[role], where)


def _refusal(error: str, kind: type[Any], where: str) -> ApiError:
    reason, at, path = error.rpartition(" - at `$")
    if not at:
        reason, path = error, "`"
    missing = re.fullmatch(r"Object missing required field `(\w+)`", reason)
    param = f"{where}{path[:-1]}{'.' + missing[1] if missing else ''}".replace("[...]", "").lstrip(".")
    names = re.findall(r"\w+", param)[::-1]
    code = next((CODE_OF[name] for name in names if name in CODE_OF), "missing_field" if missing else "invalid_value")
    if missing:
        return bad_request(f"{param} is missing.", code=code, param=param)
    choices = list(MESSAGES) if names[0] == "role" else _choices(kind, names[0])
    hint = f"; it is one of {', '.join(choices)}" if choices else ""
    reason = one_line(f"{reason[0].lower()}{reason[1:]}", 160)
    return bad_request(f"{param} cannot be taken: {reason}{hint}.", code=code, param=param)


def _choices(kind: type[Any], name: str) -> list[str]:
    """The words that a field of this struct takes, where it takes only some."""
    parts = get_args(get_type_hints(kind).get(name))
    return [word for part in parts for word in (get_args(part) or (part,)) if word and isinstance(word, str)]
