"""Schemas of requests that are read by hand, and of all answers."""

from __future__ import annotations

from hermes.servers.api.openapi.shapes import TEXT, Schema, ref, shape, typed

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
