"""Describe every route: its parameters, its body, its answer, and every status it can answer with."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hermes.core.entries.kanban import TaskState
from hermes.servers.api import bodies
from hermes.servers.api.openapi.shapes import JSON_TYPE, STREAM_TYPE, TEXT, Schema, ref, shape, typed

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
    route("GET /health/detailed", "State of the gateway and its parts; an admin also sees the reasons",
          "HealthDetailed", security=[{}, {"key": []}]),
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
