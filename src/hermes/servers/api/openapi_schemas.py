"""The shapes of `/openapi.json`: what requests may hold and what answers do hold. Data, and nothing but data."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def text(**more: Any) -> Schema:
    return {"type": "string", **more}


def number(**more: Any) -> Schema:
    return {"type": "number", **more}


def whole(**more: Any) -> Schema:
    return {"type": "integer", **more}


def flag(**more: Any) -> Schema:
    return {"type": "boolean", **more}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def thing(properties: dict[str, Schema], required: tuple[str, ...] = (), **more: Any) -> Schema:
    shape: Schema = {"type": "object", "properties": properties, **more}
    return {**shape, "required": list(required)} if required else shape


def listed(items: Schema, **more: Schema) -> Schema:
    return thing({"object": {"const": "list"}, "data": array(items), **more}, ("object", "data"))


ANYTHING: Schema = thing({}, additionalProperties=True)
NAME = text(maxLength=256)

# Requests

CONTENT_PART = {
    "anyOf": [
        thing({"type": {"enum": ["text", "input_text", "output_text"]}, "text": text()}, ("type", "text")),
        thing(
            {
                "type": {"enum": ["image_url"]},
                "image_url": thing(
                    {"url": text(pattern="^(https?://[^/]|data:image/[a-z]+;base64,)"), "detail": ref("ImageDetail")},
                    ("url",),
                ),
            },
            ("type", "image_url"),
        ),
        thing(
            {
                "type": {"enum": ["input_image"]},
                "image_url": text(pattern="^(https?://[^/]|data:image/[a-z]+;base64,)"),
                "detail": ref("ImageDetail"),
            },
            ("type", "image_url"),
        ),
    ]
}
CONTENT = {"anyOf": [text(minLength=1, maxLength=16384), array(CONTENT_PART, minItems=1, maxItems=1000)]}
TEXT_CONTENT = {
    "anyOf": [
        text(maxLength=16384),
        array(thing({"type": {"enum": ["text", "input_text", "output_text"]}, "text": text()}, ("type", "text"))),
        {"type": "null"},
    ]
}
TOOL_NAME = text(pattern="^[a-zA-Z0-9_-]{1,64}$")
FUNCTION = thing(
    {"name": TOOL_NAME, "description": maybe(text(maxLength=16384)), "parameters": maybe(ANYTHING)}, ("name",)
)
CALL_ID = text(minLength=1, maxLength=256)
TOOL_CALL = thing(
    {
        "id": CALL_ID,
        "type": {"const": "function"},
        "function": thing({"name": TOOL_NAME, "arguments": text()}, ("name", "arguments")),
    },
    ("id", "type", "function"),
)
TOOL_CHOICE = {
    "anyOf": [
        {"enum": ["auto", "none", "required"]},
        thing({"type": {"const": "function"}}, ("type",), description="names one of the tools"),
        {"type": "null"},
    ]
}
SCHEMA_OF_ANSWER: Schema = {
    "name": TOOL_NAME,
    "schema": ANYTHING,
    "strict": maybe(flag()),
    "description": maybe(text(maxLength=16384)),
}
PLAIN_FORMAT = thing({"type": {"enum": ["text", "json_object"]}}, ("type",))
RESPONSE_FORMAT = {
    "anyOf": [
        PLAIN_FORMAT,
        thing(
            {"type": {"const": "json_schema"}, "json_schema": thing(SCHEMA_OF_ANSWER, ("name", "schema"))},
            ("type", "json_schema"),
        ),
        {"type": "null"},
    ]
}
TEXT_FORMAT = {
    "anyOf": [
        PLAIN_FORMAT,
        thing({"type": {"const": "json_schema"}, **SCHEMA_OF_ANSWER}, ("type", "name", "schema")),
        {"type": "null"},
    ]
}
TEMPERATURE = maybe(number(minimum=0, maximum=2))
MAX_TOKENS = maybe(whole(minimum=1, maximum=2147483647))

MESSAGE = {
    "anyOf": [
        thing({"role": {"enum": ["system", "developer"]}, "content": TEXT_CONTENT}, ("role", "content")),
        thing({"role": {"const": "user"}, "content": CONTENT, "name": text()}, ("role", "content")),
        thing(
            {"role": {"const": "assistant"}, "content": TEXT_CONTENT, "tool_calls": maybe(array(ref("ToolCall")))},
            ("role",),
        ),
        thing({"role": {"const": "tool"}, "tool_call_id": CALL_ID, "content": TEXT_CONTENT}, ("role", "tool_call_id")),
    ],
    "description": "The last one has to be a user's or a tool's, and every result has to follow its call.",
}

CHAT_REQUEST = thing(
    {
        "model": maybe(NAME),
        "messages": array(ref("Message"), minItems=1, maxItems=10000),
        "stream": maybe(flag()),
        "stream_options": maybe(thing({"include_usage": maybe(flag())})),
        "tools": maybe(array(thing({"type": {"const": "function"}, "function": FUNCTION}, ("type", "function")))),
        "tool_choice": TOOL_CHOICE,
        "temperature": TEMPERATURE,
        "max_tokens": MAX_TOKENS,
        "max_completion_tokens": MAX_TOKENS,
        "n": {"enum": [1, None]},
        "response_format": RESPONSE_FORMAT,
        "modalities": {"enum": [["text"], [], None]},
        "functions": {"enum": [[], None]},
    },
    ("messages",),
)

INPUT_ITEM = {
    "anyOf": [
        thing({"type": {"const": "message"}, "role": {"const": "user"}, "content": CONTENT}, ("role", "content")),
        thing(
            {
                "type": {"const": "message"},
                "role": {"enum": ["system", "developer", "assistant"]},
                "content": TEXT_CONTENT,
            },
            ("role", "content"),
        ),
        thing(
            {"type": {"const": "function_call"}, "call_id": CALL_ID, "name": TOOL_NAME, "arguments": text()},
            ("type", "call_id", "name", "arguments"),
        ),
        thing(
            {"type": {"const": "function_call_output"}, "call_id": CALL_ID, "output": TEXT_CONTENT},
            ("type", "call_id", "output"),
        ),
        thing({"type": {"const": "reasoning"}}, ("type",)),
        thing(
            {"type": {"const": "item_reference"}, "id": NAME},
            ("type", "id"),
            description="an item of a stored response",
        ),
    ]
}
RESPONSE_REQUEST = thing(
    {
        "model": maybe(NAME),
        "input": {"anyOf": [text(minLength=1, maxLength=16384), array(INPUT_ITEM, minItems=1, maxItems=10000)]},
        "instructions": maybe(text(maxLength=16384)),
        "conversation_history": maybe(array(INPUT_ITEM)),
        "previous_response_id": maybe(NAME),
        "conversation": {"anyOf": [NAME, thing({"id": NAME}, ("id",)), {"type": "null"}]},
        "store": maybe(flag(default=True)),
        "background": maybe(flag()),
        "stream": maybe(flag()),
        "tools": maybe(
            array(
                thing(
                    {
                        "type": {"const": "function"},
                        "name": TOOL_NAME,
                        "description": maybe(text(maxLength=16384)),
                        "parameters": maybe(ANYTHING),
                    },
                    ("type", "name"),
                )
            )
        ),
        "tool_choice": TOOL_CHOICE,
        "temperature": TEMPERATURE,
        "max_output_tokens": MAX_TOKENS,
        "text": maybe(thing({"format": TEXT_FORMAT})),
        "metadata": maybe({"type": "object", "additionalProperties": text(maxLength=512), "maxProperties": 16}),
    },
    ("input",),
)

RUN_REQUEST = thing(
    {
        "input": {
            "anyOf": [text(minLength=1, maxLength=16384), array(ref("Message"), minItems=1, maxItems=10000)],
            "description": "a text, or messages",
        },
        "conversation_history": maybe(array(ref("Message"))),
        "instructions": maybe(text(maxLength=16384)),
        "session_id": maybe(text(maxLength=256)),
        "previous_response_id": maybe(NAME),
        "model": maybe(NAME),
        "tools": maybe(array(thing({"type": {"const": "function"}, "function": FUNCTION}, ("type", "function")))),
        "tool_choice": TOOL_CHOICE,
        "temperature": TEMPERATURE,
        "max_output_tokens": MAX_TOKENS,
    },
    ("input",),
)

DECISION = thing(
    {
        "decision": {"enum": ["approve", "deny"]},
        "reason": maybe(text(maxLength=1000)),
        "scope": maybe({"enum": ["once", "session", "always"]}),
        "approval_id": maybe(NAME),
    },
    ("decision",),
)

PAIRING_DECISION = thing(
    {
        "platform": text(minLength=1, maxLength=256),
        "decision": {"enum": ["approve", "refuse", "revoke"]},
        "code": maybe(text(maxLength=256, description="what they were shown, for approve and refuse")),
        "user_id": maybe(text(maxLength=256, description="their id on the platform, for revoke")),
    },
    ("platform", "decision"),
)

# Answers

ERROR = thing(
    {
        "error": thing(
            {"message": text(), "type": text(), "param": maybe(text()), "code": maybe(text())},
            ("message", "type", "param", "code"),
            additionalProperties=True,
        )
    },
    ("error",),
)
USAGE = thing(
    {
        "prompt_tokens": whole(),
        "completion_tokens": whole(),
        "total_tokens": whole(),
        "prompt_tokens_details": ANYTHING,
    },
    ("prompt_tokens", "completion_tokens", "total_tokens"),
)
COMPLETION = thing(
    {
        "id": text(),
        "object": {"const": "chat.completion"},
        "created": whole(),
        "model": text(),
        "choices": array(
            thing(
                {
                    "index": whole(),
                    "message": thing(
                        {
                            "role": {"const": "assistant"},
                            "content": maybe(text()),
                            "refusal": maybe(text()),
                            "tool_calls": array(ref("ToolCall")),
                        },
                        ("role", "content", "refusal"),
                    ),
                    "logprobs": {"type": "null"},
                    "finish_reason": {"enum": ["stop", "length", "tool_calls", "content_filter", "error"]},
                },
                ("index", "message", "logprobs", "finish_reason"),
            )
        ),
        "usage": ref("Usage"),
        "hermes": ANYTHING,
    },
    ("id", "object", "created", "model", "choices", "usage"),
)
RESPONSE_STATUS = {"enum": ["queued", "in_progress", "completed", "failed", "incomplete", "cancelled"]}
RESPONSE = thing(
    {
        "id": text(),
        "object": {"const": "response"},
        "created_at": whole(),
        "status": RESPONSE_STATUS,
        "model": text(),
        "output": array(ANYTHING),
        "error": maybe(thing({"code": text(), "message": text()}, ("code", "message"))),
        "incomplete_details": maybe(thing({"reason": text()}, ("reason",))),
        "previous_response_id": maybe(text()),
        "conversation": maybe(thing({"id": text()}, ("id",))),
        "store": flag(),
        "background": flag(),
        "text": thing({"format": ANYTHING}, ("format",)),
        "usage": maybe(ANYTHING),
        "metadata": ANYTHING,
        "hermes": ANYTHING,
    },
    (
        "id",
        "object",
        "created_at",
        "status",
        "model",
        "output",
        "error",
        "incomplete_details",
        "previous_response_id",
        "store",
        "usage",
    ),
    additionalProperties=True,
)
RUN_STATUS = {"enum": ["queued", "running", "waiting_approval", "stopping", "completed", "failed", "cancelled"]}
RUN = thing(
    {
        "id": text(),
        "run_id": text(),
        "object": {"const": "run"},
        "status": RUN_STATUS,
        "session_id": text(),
        "turn_id": maybe(text()),
        "model": maybe(text()),
        "created_at": number(),
        "started_at": maybe(number()),
        "ended_at": maybe(number()),
        "approval": maybe(ref("Question")),
        "approvals": array(ref("Question")),
        "output": maybe(text()),
        "tool_calls": maybe(array(ref("ToolCall"))),
        "usage": maybe(ref("Usage")),
        "error": maybe(thing({"code": text(), "message": text()}, ("code", "message"))),
        "reason": maybe(text()),
    },
    ("id", "run_id", "object", "status", "session_id", "created_at", "approvals", "output", "usage", "error"),
)
QUESTION = thing(
    {"id": text(), "code": text(), "question": text(), "touches_host": flag(), "expires_at": number()},
    ("id", "code", "question", "touches_host", "expires_at"),
)
RUN_STATE = thing({"run_id": text(), "status": RUN_STATUS, "session_id": text()}, ("run_id", "status", "session_id"))
RUN_ANSWERED = thing(
    {
        **RUN_STATE["properties"],
        "approval_id": text(),
        "decision": {"enum": ["approve", "deny"]},
        "answered_by": text(),
        "scope": maybe(text()),
    },
    ("run_id", "status", "session_id", "approval_id", "decision"),
)
APPROVAL = thing(
    {
        "id": text(),
        "object": {"const": "approval"},
        "code": text(),
        "status": text(),
        "question": text(),
        "tool": text(),
        "arguments": text(),
        "touches_host": flag(),
        "platform": text(),
        "session_id": maybe(text()),
        "session_key": text(),
        "run_id": maybe(text()),
        "turn_id": text(),
        "created_at": number(),
        "expires_at": number(),
        "answered_by": maybe(text()),
        "answered_at": maybe(number()),
        "reason": text(),
        "where": maybe(text()),
        "scope": maybe(text()),
        "scopes": array({"enum": ["once", "session", "always"]}),
        "may_answer": flag(),
    },
    ("id", "object", "code", "status", "question", "touches_host", "created_at", "expires_at", "may_answer"),
)
PAIRING = thing(
    {
        "object": {"const": "pairing"},
        "platform": text(),
        "account": text(),
        "user_id": text(),
        "name": text(),
        "status": {"enum": ["pending", "approved", "refused", "revoked"]},
        "code": maybe(text()),
        "asked_at": number(),
        "expires_at": maybe(number()),
        "decided_at": maybe(number()),
        "decided_by": maybe(text()),
        "role": text(description="in the answer to an approval"),
    },
    ("object", "platform", "account", "user_id", "name", "status", "code", "asked_at"),
)
MODEL = thing(
    {"id": text(), "object": {"const": "model"}, "created": whole(), "owned_by": text()},
    ("id", "object", "created", "owned_by"),
)
CAPABILITIES = thing(
    {
        "object": {"const": "hermes.capabilities"},
        "version": text(),
        "auth": ANYTHING,
        "features": {"type": "object", "additionalProperties": {"type": ["boolean", "string"]}},
        "endpoints": {
            "type": "object",
            "additionalProperties": thing({"method": text(), "path": text()}, ("method", "path")),
        },
    },
    ("object", "version", "auth", "features", "endpoints"),
)
SKILL = thing({"name": text(), "description": text(), "category": text()}, ("name", "description"))
TOOLSET = thing(
    {
        "name": text(),
        "object": {"const": "toolset"},
        "enabled": flag(),
        "configured": flag(),
        "tools": array(thing({"name": text(), "description": text()}, ("name", "description"))),
    },
    ("name", "object", "enabled", "configured", "tools"),
)
HEALTH = thing({"status": {"const": "ok"}}, ("status",))
HEALTH_DETAILED = thing(
    {
        "status": {"enum": ["ok", "degraded"]},
        "gateway_state": text(),
        "platforms": {"type": "object", "additionalProperties": thing({"state": text()}, ("state",))},
        "active_agents": whole(),
        "waiting": {"type": "object", "additionalProperties": whole()},
        "version": text(),
        "pid": maybe(whole()),
        "home": text(),
        "troubles": array(text()),
    },
    ("status", "gateway_state", "platforms", "active_agents", "waiting"),
    description="From `version` on only with a key of an admin or the owner.",
)

SESSION = thing(
    {
        "id": text(),
        "object": {"const": "session"},
        "session_id": maybe(text()),
        "key": text(),
        "platform": text(),
        "title": text(),
        "label": text(),
        "preview": text(),
        "message_count": whole(),
        "is_busy": flag(),
        "created_at": number(),
        "updated_at": number(),
        "ended_at": maybe(number()),
        "end_reason": maybe(text()),
        "forked_from": text(),
    },
    ("id", "object", "session_id", "key", "platform", "title", "message_count", "created_at", "updated_at"),
)
SESSION_LINE = thing(
    {
        "seq": whole(),
        "turn_id": maybe(text()),
        "created_at": number(),
        "role": maybe(text()),
        "content": {"type": ["string", "array", "null"]},
        "tool_calls": array(ref("ToolCall")),
        "tool_call_id": text(),
        "name": text(),
    },
    ("seq", "created_at", "role", "content"),
)
SESSION_CHAT = thing(
    {
        "object": {"const": "session.chat"},
        "run_id": text(),
        "session_id": text(),
        "turn_id": text(),
        "message": ANYTHING,
        "finish_reason": text(),
        "usage": ref("Usage"),
        "transcript": array(ANYTHING),
        "hermes": ANYTHING,
    },
    ("object", "run_id", "session_id", "turn_id", "message", "finish_reason", "usage", "transcript"),
)
TITLE = text(maxLength=200)

SCHEMAS: dict[str, Schema] = {
    "ImageDetail": {"enum": ["auto", "low", "high", "original"]},
    "Message": MESSAGE,
    "ToolCall": TOOL_CALL,
    "ChatRequest": CHAT_REQUEST,
    "ChatCompletion": COMPLETION,
    "Usage": USAGE,
    "ResponseRequest": RESPONSE_REQUEST,
    "Response": RESPONSE,
    "RunRequest": RUN_REQUEST,
    "Run": RUN,
    "RunState": RUN_STATE,
    "RunAnswered": RUN_ANSWERED,
    "Question": QUESTION,
    "Decision": DECISION,
    "Approval": APPROVAL,
    "Pairing": PAIRING,
    "PairingDecision": PAIRING_DECISION,
    "Model": MODEL,
    "Capabilities": CAPABILITIES,
    "Skill": SKILL,
    "Toolset": TOOLSET,
    "Health": HEALTH,
    "HealthDetailed": HEALTH_DETAILED,
    "Session": SESSION,
    "SessionLine": SESSION_LINE,
    "SessionChat": SESSION_CHAT,
    "SessionChatRequest": {
        **RUN_REQUEST,
        "properties": {
            name: shape
            for name, shape in RUN_REQUEST["properties"].items()
            if name not in ("session_id", "previous_response_id")
        },
    },
    "SessionChange": thing({"title": TITLE}, ("title",)),
    "SessionFork": thing({"title": maybe(TITLE), "up_to": maybe(whole(minimum=1))}),
    "Error": ERROR,
}
