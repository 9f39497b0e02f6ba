"""The contract of `GET /openapi.json`. Bodies of requests come from ``bodies``; answers and routes are data in here.

Imported by the first request for it. A golden file guards the contract, and a fuzzer holds us to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
import orjson

from hermes import __version__
from hermes.core.entries.kanban import TaskState
from hermes.servers.api import bodies

Schema = dict[str, Any]
JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"
TEXT: Schema = {"type": "string"}


def ref(name: str) -> Schema:
    return {"$ref": f"{bodies.SCHEMAS}{name}"}


def shape(required: str, optional: str = "", **special: Schema) -> Schema:
    """An object of fields: ``name`` is a text, ``name=a|b`` one of these words, ``name:type`` anything else.

    A type is text, flag, number, whole, null, object or the name of a schema; ``[]`` after it is an array of these,
    ``{}`` an object whose values are these, ``?`` null as well. ``special`` are schemas of fields said in no such way.
    """
    properties, names = {}, []
    for field in f"{required} {optional}".split():
        name, sign, kind = re.split(r"([=:]|$)", field, maxsplit=1)
        names.append(name)
        choices = kind.split("|")
        const = {"const": kind} if len(choices) == 1 else {"enum": choices}
        properties[name] = special.get(name) or (const if sign == "=" else typed(kind or "text"))
    names = names[: len(required.split())]
    return {"type": "object", "properties": properties, **({"required": names} if names else {})}


def typed(kind: str) -> Schema:
    match kind[-1], kind:
        case "?", _:
            return {"anyOf": [typed(kind[:-1]), {"type": "null"}]}
        case "]", _:
            return {"type": "array", "items": typed(kind[:-2])}
        case "}", _:
            return {"type": "object", "additionalProperties": typed(kind[:-2])}
        case _, "object":
            return {"type": "object", "properties": {}, "additionalProperties": True}
        case _:
            plain = {"text": "string", "flag": "boolean", "number": "number", "whole": "integer", "null": "null"}
            return {"type": plain[kind]} if kind in plain else ref(kind)


# Requests: the documented forms of what is read by hand

_TEXT = {"type": "string", "maxLength": 16384}
_SAID = {**_TEXT, "minLength": 1}
_SOME = {"type": "array", "minItems": 1, "maxItems": 10_000}
_ADDRESS = {"type": "string", "pattern": "^(https?://[^/]|data:image/[a-z]+;base64,)"}

FORMS: dict[str, Schema] = {
    "Text": {"anyOf": [_TEXT, {"type": "null"}]},
    "ImageDetail": {"enum": ["auto", "low", "high", "original"]},
    "TextPart": shape("type=text|input_text|output_text text"),
    "ImagePart": {
        "anyOf": [
            shape("type=image_url image_url", image_url=shape("url", "detail:ImageDetail", url=_ADDRESS)),
            shape("type=input_image image_url", "detail:ImageDetail", image_url=_ADDRESS),
        ]
    },
    "FilePart": {
        "anyOf": [
            shape("type=file file", file=shape("file_data", "filename")),
            shape("type=input_file file_data", "filename"),
        ],
        "description": "a file as data:TYPE;base64,…: its text is read, a picture is shown",
    },
    "ContentPart": {"anyOf": [ref("TextPart"), ref("ImagePart"), ref("FilePart")]},
    "TextContent": {"anyOf": [_TEXT, typed("TextPart[]"), {"type": "null"}]},
    "UserContent": {"anyOf": [_SAID, {**_SOME, "items": ref("ContentPart"), "maxItems": 1000}]},
    "Tool": {
        "anyOf": [shape("type=function function:Function"), {"allOf": [shape("type=function"), ref("Function")]}],
        "description": "tools of other types are left out, with a word in X-Hermes-Warning, or done by a tool of ours",
    },
    "ToolChoice": {
        "anyOf": [{"enum": ["auto", "none", "required", None]}, shape("type=function|allowed_tools")],
        "description": "a function names one of the tools",
    },
    "PlainFormat": shape("type=text|json_object"),
    "ResponseFormat": {"anyOf": [ref("PlainFormat"), shape("type=json_schema json_schema:Schema")]},
    "TextFormat": {"anyOf": [ref("PlainFormat"), {"allOf": [shape("type=json_schema"), ref("Schema")]}]},
    "ConversationName": {"anyOf": [{"type": ["string", "null"], "maxLength": 256}, shape("id")]},
    "Messages": typed("Message[]"),
    "RunInput": {"anyOf": [_SAID, {**_SOME, "items": ref("Message")}], "description": "a text, or messages"},
    "InputItem": {
        "anyOf": [
            {"allOf": [shape("", "type=message"), ref("Message")]},
            {"allOf": [shape("type=function_call"), ref("FunctionCall")]},
            {"allOf": [shape("type=function_call_output"), ref("FunctionCallOutput")]},
            {"allOf": [shape("type=mcp_call"), ref("McpCall")], "description": "a call of the gateway, sent back"},
            {"allOf": [shape("type=mcp_approval_response"), ref("McpApprovalResponse")]},
            {**shape("type=compaction encrypted_content"), "description": "from /v1/responses/compact"},
            {**shape("type=reasoning|mcp_list_tools|mcp_approval_request"), "description": "left out"},
            {**shape("type=item_reference id"), "description": "an item of a stored response"},
        ]
    },
    "InputItems": {"anyOf": [_SAID, {**_SOME, "items": ref("InputItem")}]},
    "ItemHistory": typed("InputItem[]?"),
    "ConversationItems": {"type": "array", "maxItems": 20, "items": ref("InputItem")},
}
EXAMPLES: dict[type[msgspec.Struct], Schema] = {
    bodies.ChatRequestBody: {"model": "hermes", "messages": [{"role": "user", "content": "Hello!"}]},
    bodies.MessagesRequestBody: {
        "model": "hermes",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "Hello!"}],
    },
    bodies.EmbeddingsRequestBody: {"model": "text-embedding-3-small", "input": "Hello!"},
    bodies.ResponseRequestBody: {"model": "hermes", "input": "Hello!", "store": True},
    bodies.ConversationBody: {"metadata": {"topic": "shopping"}},
    bodies.ConversationItemsBody: {"items": [{"role": "user", "content": "We need milk."}]},
    bodies.RunRequestBody: {"input": "Tidy up my notes.", "session_id": "notes"},
    bodies.SessionChatRequestBody: {"input": "And then?"},
    bodies.SessionChangeBody: {"title": "Plans for May"},
    bodies.SessionForkBody: {"title": "Another way"},
    bodies.DecisionBody: {"decision": "approve", "reason": "go ahead"},
    bodies.JobBody: {"schedule": "weekdays at 8", "prompt": "Summarize the news", "deliver": "telegram"},
    bodies.JobChangeBody: {"schedule": "every 3h"},
    bodies.NewTaskBody: {"title": "Tidy the downloads folder", "assignee": "agent"},
    bodies.TaskChangesBody: {"state": "ready"},
    bodies.TaskCommentBody: {"text": "Use the new logo."},
    bodies.PairingDecisionBody: {"platform": "telegram", "code": "K7QPM3XW", "decision": "approve"},
}

# Answers

ANSWERS: dict[str, Schema] = {
    "Error": shape("error", error=shape("message type param:text? code:text?")),
    "Event": shape("", "id event data", data={**TEXT, "description": "JSON, or [DONE]"}),
    "Deleted": shape("id object deleted", deleted={"const": True}),
    "Failure": shape("code message"),
    "Job": shape(
        "id object=job name state=active|paused|done schedule prompt deliver deliver_to:text[] next_run_at:number?",
        "reason timezone script skills:text[] model workdir no_agent:flag repeat:whole? catch_up quiet person role"
        " failures:whole next_run created_at:number event_id",
    ),
    "JobSlot": shape(
        "slot:number state=ran|late|missed|skipped outcome delivery",
        "due until:number? count:whole? reason error event_id turn_id ended_at:number?",
    ),
    "ToolCall": shape("id type=function function", function=shape("name arguments")),
    "Usage": shape(
        "prompt_tokens:whole completion_tokens:whole total_tokens:whole",
        "prompt_tokens_details:object completion_tokens_details:object",
    ),
    "Choice": shape(
        "index:whole message logprobs:object? finish_reason=stop|length|tool_calls|content_filter",
        message=shape("role=assistant content:text? refusal:text?", "tool_calls:ToolCall[] reasoning_content"),
    ),
    "ChatCompletion": shape(
        "id object=chat.completion created:whole model choices:Choice[] usage:Usage", "hermes:object"
    ),
    "MessageAnswer": shape(
        "id type=message role=assistant model content:object[] stop_reason:text? stop_sequence:text? usage:object",
        "hermes:object",
    ),
    "TokenCount": shape("input_tokens:whole"),
    "Embeddings": shape("object data:object[] model", "usage:object"),
    "Response": shape(
        "id object=response created_at:whole status=queued|in_progress|completed|failed|incomplete|cancelled model"
        " output:object[] error:Failure? incomplete_details previous_response_id:text? store:flag usage:object?",
        "conversation background:flag text metadata:object hermes:object",
        incomplete_details={"anyOf": [shape("reason"), {"type": "null"}]},
        conversation={"anyOf": [shape("id"), {"type": "null"}]},
        text=shape("format:object"),
    ),
    "InputTokens": shape("object=response.input_tokens input_tokens:whole"),
    "Compaction": shape("id object=response.compaction created_at:whole output:object[] usage:object"),
    "Conversation": shape("id object=conversation created_at:whole metadata:object"),
    "ItemPage": shape("object=list data:object[] first_id:text? last_id:text? has_more:flag"),
    "Question": shape("id code question touches_host:flag expires_at:number"),
    "RunStatus": {"enum": ["queued", "running", "waiting_approval", "stopping", "completed", "failed", "cancelled"]},
    "Run": shape(
        "id run_id object=run status:RunStatus session_id created_at:number approvals:Question[] output:text?"
        " usage:Usage? error:Failure?",
        "turn_id:text? model:text? started_at:number? ended_at:number? approval:Question? tool_calls:ToolCall[]?"
        " reason:text?",
    ),
    "RunState": shape("run_id status:RunStatus session_id"),
    "RunAnswered": shape(
        "run_id status:RunStatus session_id approval_id decision=approve|deny", "answered_by scope:text?"
    ),
    "Scope": {"enum": ["once", "session", "always"]},
    "Approval": shape(
        "id object=approval code status question touches_host:flag created_at:number expires_at:number may_answer:flag",
        "tool arguments platform session_id:text? session_key run_id:text? turn_id answered_by:text?"
        " answered_at:number? reason where:text? scope:text? scopes:Scope[]",
    ),
    "Pairing": shape(
        "object=pairing platform account user_id name status=pending|approved|refused|revoked code:text?"
        " asked_at:number",
        "expires_at:number? decided_at:number? decided_by:text? role",
        role={**TEXT, "description": "in the answer to an approval"},
    ),
    "Task": shape(
        "object=task id:whole board title body state=triage|todo|scheduled|ready|running|blocked|review|done|archived"
        " priority:whole created_at:number updated_at:number",
        "rank:number assignee:text? blocked_by:text? reason:text? result:text? attempts:whole not_before:number?"
        " session_id:text? done_at:number? needs:object[] comments:object[] links:object[] history:TaskEvent[]"
        " runs:object[]",
    ),
    "TaskEvent": shape("id:whole task:whole board kind actor detail created_at:number"),
    "KanbanStats": shape("object=kanban.stats counts:object dispatch:object"),
    "Model": shape("id object=model created:whole owned_by"),
    "Endpoint": shape("method path"),
    "Capabilities": shape(
        "object=hermes.capabilities version auth:object features endpoints:Endpoint{}",
        features={"type": "object", "additionalProperties": {"type": ["boolean", "string"]}},
    ),
    "Skill": shape("name description", "category"),
    "Toolset": shape("name object=toolset enabled:flag configured:flag tools:Skill[]"),
    "Health": shape("status=ok"),
    "PlatformHealth": shape("state"),
    "HealthDetailed": {
        **shape(
            "status=ok|degraded gateway_state platform_states:whole{} active_agents:whole waiting:whole{}",
            "platforms:PlatformHealth{} version pid:whole? home troubles:text[]",
        ),
        "description": "From `platforms` on only with a key of an admin or the owner.",
    },
    "Session": shape(
        "id object=session session_id:text? key platform title message_count:whole created_at:number updated_at:number",
        "label preview is_busy:flag may_write:flag ended_at:number? end_reason:text? forked_from snippet",
    ),
    "SessionPage": shape("object=list data:Session[]", "has_more:flag next_cursor:text? is_complete:flag"),
    "LinePage": shape("object=list data:SessionLine[]", "has_more:flag next_after:whole?"),
    "SessionLine": shape(
        "seq:whole created_at:number role:text? content",
        "turn_id:text? tool_calls:ToolCall[] tool_call_id name origin:Origin is_taken_back:flag",
        content={"type": ["string", "array", "null"]},
    ),
    "Origin": shape("platform name"),
    "SessionChat": shape(
        "object=session.chat run_id session_id turn_id message:object finish_reason usage:Usage transcript:object[]",
        "hermes:object",
    ),
}

# Routes. Every route names every status it can answer with; what the gate in front of them may say is added to each.

ERRORS = {
    400: ("BadRequest", "What was sent cannot be taken; `param` says where, `code` what is wrong with it."),
    401: ("Unauthorized", "No key, or one that is not known."),
    403: ("Forbidden", "The Host or Origin is not allowed here, or the role of the key is not enough."),
    404: ("NotFound", "There is nothing of that name for this key."),
    408: ("TooSlow", "The body did not arrive in time."),
    409: ("Conflict", "It cannot be done now: an approval is needed, or was answered, or has expired."),
    413: ("TooLarge", "The body is larger than api.max_request_bytes."),
    422: ("KeyReused", "The Idempotency-Key was used for another request."),
    429: ("TooMany", "Over a limit of this key, or too many wrong keys; Retry-After says when to come again."),
    502: ("ModelFailed", "The turn failed before it had an answer; `hermes` in the error says more."),
    503: ("Unavailable", "The store is down or the gateway is stopping; nothing was stored."),
}
HEADERS: dict[int, Schema] = {
    401: {"headers": {"WWW-Authenticate": {"schema": TEXT}}},
    429: {"headers": {"Retry-After": {"schema": {"type": "integer", "minimum": 1}, "required": True}}},
}
GATE = (401, 403, 408, 413, 429, 503)
IN_PATH = {
    "task": "the number of a task",
    "model": "its name",
    "id": "of the session (s_…) or response (resp_…), or the name its client gave the session",
    "run_id": "of the run (run_…)",
    "approval_id": "of the approval (ap_…)",
    "job_id": "of the job (job_…)",
    "conversation_id": "of the conversation (conv_…), or the name that a response gave it",
    "item_id": "of the item",
    "sign_in_id": "of the sign-in (si_…)",
    "message_id": "of an event (ev_…), a delivery (ob_…) or a turn (t_…)",
    "person_id": "of the person",
    "grant_id": "of the grant",
    "name": "of the platform",
}


def given(where: str, name: str, description: str, **schema: Any) -> Schema:
    """A parameter in the path, the query or a header."""
    wanted: Schema = {"type": "string", **schema}
    return {"name": name, "in": where, "required": where == "path", "description": description, "schema": wanted}


def link(path: str, parameter: str, method: str = "get") -> Schema:
    """Where an answer leads: the operation that takes the id it holds."""
    pointer = path.replace("/", "~1")
    return {"operationRef": f"#/paths/{pointer}/{method}", "parameters": {parameter: f"$response.body#/{parameter}"}}


def route(
    address: str,
    summary: str,
    answer: str,
    errors: tuple[int, ...] = (),
    body: type[msgspec.Struct] | None = None,
    parameters: tuple[Schema, ...] = (),
    *,
    status: int = 200,
    says: str = "Done.",
    types: tuple[str, ...] = (JSON_TYPE,),
    links: Schema | None = None,
    example: Schema | None = None,
    **more: Any,
) -> tuple[str, Schema]:
    """``answer`` is a type as in a shape, or ``[name]`` for a list of these."""
    schema = shape("object=list data", data=typed(f"{answer[1:-1]}[]")) if answer[0] == "[" else typed(answer)
    content = {kind: {"schema": ref("Event") if kind == STREAM_TYPE else schema} for kind in types}
    names = re.findall(r"\{(\w+)\}", address)
    codes = {*GATE, *errors, *([400] if body else []), *([404] if names else [])}
    codes = {403} if more.get("security") == [] else codes
    responses: Schema = {str(code): {"$ref": f"#/components/responses/{ERRORS[code][0]}"} for code in sorted(codes)}
    responses[str(status)] = {"description": says, "content": content, "links": links or {}}
    in_path = (given("path", name, IN_PATH[name], **_PATH) for name in names)
    operation: Schema = {"summary": summary, "responses": responses, "parameters": [*in_path, *parameters], **more}
    if body:
        content = {JSON_TYPE: {"schema": ref(body.__name__.removesuffix("Body")), "example": example or EXAMPLES[body]}}
        operation["requestBody"] = {"required": True, "content": content}
    return address, operation


_PATH = {"minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9_-]+$"}
_SEEN = {"pattern": "^[!-~]([ -~]*[!-~])?$"}
_SESSION = given(
    "header", "X-Hermes-Session-Id", "the session that goes on; a fresh one without it", **_SEEN, maxLength=256
)
_MEMORY = given("header", "X-Hermes-Session-Key", "the scope of long-term memory", **_SEEN, maxLength=256)
_REPEATED = "sent again within a day, the same request gets the same answer"
_REPEAT = given("header", "Idempotency-Key", _REPEATED, **_SEEN, maxLength=255)
_OWN_TOOLS = given(
    "header", "X-Hermes-Tools", "the gateway's tools that it may use: none, all, or names with commas", **_SEEN
)
_ASKING = (_SESSION, _MEMORY, _REPEAT, _OWN_TOOLS)
_LEFT = "what becomes of the turn when the client goes; without it, leaving a stream that is not stored stops its turn"
_LEAVING = given("header", "X-Hermes-On-Disconnect", _LEFT, enum=["continue", "stop"])
_SHAPES = "how calls of the gateway itself are shown"
_TOOL_ITEMS = given("header", "X-Hermes-Tool-Items", _SHAPES, enum=["mcp_call", "function_call"])
_RETRIED = "set by SDKs: above 0, the request belongs to the turn that was begun for it"
_RETRIES = given("header", "X-Stainless-Retry-Count", _RETRIED, type="integer", minimum=0)
_AS_STREAM = given("query", "stream", "its events instead of the response", enum=["true", "false"])
_SEQUENCE = given("query", "starting_after", "the sequence_number of the last event seen", type="integer", minimum=0)
_LAST_EVENT = given("header", "Last-Event-ID", "the number of the last event that was seen", **_SEEN)
_LIMIT = given("query", "limit", "how many", type="integer", minimum=1)
_ITEMS = given("query", "limit", "how many", type="integer", minimum=1, maximum=100)
_ORDER = given("query", "order", "which first", enum=["asc", "desc"])
_AFTER_ID = given("query", "after", "the id of the last one that was seen")
_AFTER = given("query", "after", "the seq of the last one seen", type="integer", minimum=0)
_CURSOR = given("query", "cursor", "the next_cursor of the page before")
_KEY = given("query", "key", "only under this session key")
_QUERY = given("query", "query", "only those with these words in their title or messages, the best match first")
_OF_SESSION = given("query", "session_id", "only of this session")
_PLATFORM = given("query", "platform", "only of this platform")
_BOARD = given("query", "board", "only of this board", pattern="^[a-z0-9-]*$", maxLength=40)
_STATE = given("query", "state", "only this column", enum=list(TaskState))
_ASSIGNEE = given("query", "assignee", "only tasks of this assignee")
_OFFSET = given("query", "offset", "how many to leave out first", type="integer", minimum=0)
_STATUS = given("query", "status", "only these", enum=["pending", "approved", "refused", "revoked"])
_CHAT = bodies.SessionChatRequestBody
_EITHER, _STREAM = (JSON_TYPE, STREAM_TYPE), (STREAM_TYPE,)
_RESPONSE_LINKS = {"read": link("/v1/responses/{id}", "id"), "delete": link("/v1/responses/{id}", "id", "delete")}
_RUN_LINKS = {
    "read": link("/v1/runs/{run_id}", "run_id"),
    "events": link("/v1/runs/{run_id}/events", "run_id"),
    "stop": link("/v1/runs/{run_id}/stop", "run_id", "post"),
}

# One route in a line or two.
# fmt: off
ROUTES = [
    route("GET /health", "Whether it is up", "Health", security=[]),
    route("GET /health/detailed", "How it is; with a key of an admin also why", "HealthDetailed",
          security=[{}, {"key": []}]),
    route("GET /metrics", "Numbers for Prometheus", "text", says="Text format 0.0.4.", types=("text/plain",)),
    route("GET /openapi.json", "This document", "object"),
    route("GET /v1/models", "The agent, and the names of model_routes", "[Model]"),
    route("GET /v1/models/{model}", "One of them", "Model"),
    route("GET /v1/capabilities", "What this server can do", "Capabilities"),
    route("GET /v1/skills", "Skills", "[Skill]"),
    route("GET /v1/toolsets", "Toolsets, as resolved for the API", "[Toolset]"),
    route("POST /v1/chat/completions", "Ask the agent", "ChatCompletion", (409, 422, 502), bodies.ChatRequestBody,
          (*_ASKING, _LEAVING, _RETRIES), says="The answer, or its stream of chunks.", types=_EITHER),
    route("POST /v1/messages", "Ask the agent, in Anthropic's shapes", "MessageAnswer", (409, 422, 502),
          bodies.MessagesRequestBody, (*_ASKING, _LEAVING), says="The answer, or its stream of events.", types=_EITHER),
    route("POST /v1/messages/count_tokens", "About how many tokens it would take", "TokenCount", (),
          bodies.MessagesRequestBody),
    route("POST /v1/embeddings", "Passed on to the provider", "Embeddings", (404, 422, 502),
          bodies.EmbeddingsRequestBody, (_REPEAT,)),
    route("POST /v1/responses", "Ask the agent; the answer is kept", "Response", (409, 422, 502),
          bodies.ResponseRequestBody, (*_ASKING, _TOOL_ITEMS, _LEAVING, _RETRIES),
          says="The response, or its stream of events.", types=_EITHER, links=_RESPONSE_LINKS),
    route("POST /v1/responses/input_tokens", "About how long a request is", "InputTokens", (),
          bodies.ResponseRequestBody),
    route("POST /v1/responses/compact", "A conversation as a summary and its newest words", "Compaction", (502,),
          bodies.ResponseRequestBody),
    route("GET /v1/responses/{id}", "A response that was kept", "Response", (400,), None, (_AS_STREAM, _SEQUENCE),
          types=_EITHER),
    route("DELETE /v1/responses/{id}", "Forget a response", "Deleted"),
    route("GET /v1/responses/{id}/input_items", "What it was asked", "[object]", (400,), None,
          (_ITEMS, _ORDER, _AFTER_ID)),
    route("POST /v1/responses/{id}/cancel", "Stop it", "Response"),
    route("POST /v1/conversations", "Make a conversation", "Conversation", (), bodies.ConversationBody),
    route("GET /v1/conversations/{conversation_id}", "A conversation", "Conversation"),
    route("POST /v1/conversations/{conversation_id}", "Change its metadata", "Conversation", (),
          bodies.ConversationBody),
    route("DELETE /v1/conversations/{conversation_id}", "Forget it", "Deleted"),
    route("GET /v1/conversations/{conversation_id}/items", "What was said in it", "ItemPage", (400,), None,
          (_ITEMS, _ORDER, _AFTER_ID)),
    route("POST /v1/conversations/{conversation_id}/items", "Add items, for its next response", "ItemPage", (),
          bodies.ConversationItemsBody),
    route("GET /v1/conversations/{conversation_id}/items/{item_id}", "One item", "object"),
    route("POST /v1/runs", "Ask for work that is looked up later", "RunState", (404, 409, 422), bodies.RunRequestBody,
          _ASKING, status=202, says="Accepted; Location names it.", links=_RUN_LINKS),
    route("GET /v1/runs/{run_id}", "Where a run stands", "Run"),
    route("GET /v1/runs/{run_id}/events", "What it does, as it does it", "Event", (), None, (_LAST_EVENT,),
          says="Numbered events until the end of the run.", types=_STREAM),
    route("POST /v1/runs/{run_id}/approval", "Answer what it asks", "RunAnswered", (409,), bodies.DecisionBody),
    route("POST /v1/runs/{run_id}/stop", "Stop it", "RunState"),
    route("GET /api/sessions", "Conversations, the newest first", "SessionPage", (400,), None,
          (_LIMIT, _CURSOR, _KEY, _PLATFORM, _QUERY)),
    route("GET /api/sessions/{id}", "One conversation", "Session"),
    route("PATCH /api/sessions/{id}", "Give it a title", "Session", (), bodies.SessionChangeBody),
    route("DELETE /api/sessions/{id}", "Delete it for good", "Deleted", (409,)),
    route("GET /api/sessions/{id}/messages", "What was said in it", "LinePage", (400,), None, (_LIMIT, _AFTER)),
    route("POST /api/sessions/{id}/fork", "Begin another with what was said in it", "Session", (),
          bodies.SessionForkBody, status=201),
    route("POST /api/sessions/{id}/chat", "Go on with it", "SessionChat", (409, 422, 502), _CHAT, (_REPEAT,)),
    route("POST /api/sessions/{id}/chat/stream", "Go on with it, as typed events", "Event", (409, 422), _CHAT,
          (_REPEAT,), says="The events of a run.", types=_STREAM),
    route("GET /api/approvals", "Questions that wait for an answer", "[Approval]", (), None, (_OF_SESSION,)),
    route("GET /api/approvals/{approval_id}", "One question", "Approval"),
    route("POST /api/approvals/{approval_id}", "Answer it", "Approval", (409,), bodies.DecisionBody),
    route("GET /api/pairings", "Who would like to talk, and who was let in", "[Pairing]", (400,), None,
          (_PLATFORM, _STATUS)),
    route("POST /api/pairings", "Let somebody in by their code, send them away, or make them a stranger again",
          "Pairing", (404,), bodies.PairingDecisionBody),
    route("GET /api/jobs", "Scheduled jobs, the next due first", "[Job]"),
    route("POST /api/jobs", "Schedule a job", "Job", (), bodies.JobBody, status=201),
    route("GET /api/jobs/{job_id}", "One job", "Job"),
    route("PATCH /api/jobs/{job_id}", "Change a job", "Job", (), bodies.JobChangeBody),
    route("DELETE /api/jobs/{job_id}", "Delete a job with its history", "Deleted"),
    route("GET /api/jobs/{job_id}/history", "What became of its due times, the newest first", "[JobSlot]"),
    route("POST /api/jobs/{job_id}/pause", "Pause it", "Job", (409,)),
    route("POST /api/jobs/{job_id}/resume", "Let it run again", "Job", (409,)),
    route("POST /api/jobs/{job_id}/run", "Run it now, beside its schedule", "Job", status=202),
    route("GET /api/kanban/tasks", "Tasks of a board", "[Task]", (400,), None,
          (_BOARD, _STATE, _ASSIGNEE, _LIMIT, _OFFSET)),
    route("POST /api/kanban/tasks", "Add a task", "Task", (400, 404), bodies.NewTaskBody, status=201),
    route("GET /api/kanban/tasks/{task}", "One task with its history", "Task", (404,)),
    route("PATCH /api/kanban/tasks/{task}", "Change or move a task", "Task", (400, 404), bodies.TaskChangesBody),
    route("POST /api/kanban/tasks/{task}/comments", "Comment on a task", "Task", (404,), bodies.TaskCommentBody,
          status=201),
    route("GET /api/kanban/events", "What happened on the board after an event", "[TaskEvent]", (400,), None,
          (_AFTER, _BOARD)),
    route("GET /api/kanban/stats", "Columns, and what dispatch does", "KanbanStats"),
]
# fmt: on


def document(
    routes: Sequence[tuple[str, Schema]] = (),
    answers: Mapping[str, Schema] = MappingProxyType({}),
    more_bodies: Sequence[type[msgspec.Struct]] = (),
) -> Schema:
    """Return the contract with further routes, their answers and their bodies."""
    needed = [bodies.FunctionBody, bodies.SchemaBody, bodies.FunctionCallBody, bodies.FunctionCallOutputBody]
    needed += [bodies.McpCallBody, bodies.McpApprovalResponseBody]
    (message, *_), declared = msgspec.json.schema_components(
        [bodies.MessageBody, *EXAMPLES, *needed, *more_bodies], ref_template=bodies.SCHEMAS + "{name}"
    )
    message["description"] = (
        "A last one of the assistant is the beginning of the answer. Every result has to follow its call."
    )
    requests = orjson.loads(orjson.dumps({"Message": message, **declared}).replace(b'Body"', b'"'))
    paths: Schema = {}
    for address, operation in (*ROUTES, *routes):
        method, path = address.split(" ")
        paths.setdefault(path, {})[method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hermes",
            "version": __version__,
            "description": "One agent, asked over HTTP in the shapes of OpenAI, and in some of its own.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {**requests, **FORMS, **ANSWERS, **answers},
            "responses": {
                name: {"description": says, "content": {JSON_TYPE: {"schema": ref("Error")}}, **HEADERS.get(status, {})}
                for status, (name, says) in ERRORS.items()
            },
        },
    }
