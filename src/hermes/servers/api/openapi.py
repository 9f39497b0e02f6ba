"""`GET /openapi.json`: the contract. Written by hand as data; a golden file guards it, and a fuzzer holds us to it.

Every route names every status it can answer with. What the gate in front of all routes may say (`api.Gate`) is added
to each.
"""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from hermes import __version__
from hermes.servers.api.context import ApiParts
from hermes.servers.api.openapi_schemas import SCHEMAS, Schema, listed, maybe, ref, text, thing, whole
from hermes.servers.app import RouteAdder

JSON_TYPE = "application/json"
STREAM_TYPE = "text/event-stream"

ERRORS = {
    400: ("BadRequest", "What was sent cannot be taken; `param` says where, `code` what is wrong with it."),
    401: ("Unauthorized", "No key, or one that is not known."),
    403: ("Forbidden", "The Host or Origin is not allowed here, or the role of the key is not enough."),
    404: ("NotFound", "There is nothing of that name for this key."),
    408: ("TooSlow", "The body did not arrive in time."),
    409: ("Conflict", "It cannot be done now: an approval is needed, or was answered, or has expired."),
    413: ("TooLarge", "The body is larger than api.max_request_bytes."),
    422: ("KeyReused", "The Idempotency-Key was used for another request."),
    429: ("TooMany", "Over a limit of this key; Retry-After says when to come again."),
    502: ("ModelFailed", "The turn failed before it had an answer; `hermes` in the error says more."),
    503: ("Unavailable", "The store is down or the gateway is stopping; nothing was stored."),
}
EVENT = thing({"id": text(), "event": text(), "data": text(description="JSON, or [DONE]")})
GATE = (401, 403, 408, 413, 429, 503)


def routes(_parts: ApiParts) -> RouteAdder:
    page = orjson.dumps(document())

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=page, content_type=JSON_TYPE)

    def add(app: web.Application) -> None:
        app.router.add_get("/openapi.json", answer)

    return add


def document() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hermes",
            "version": __version__,
            "description": "One agent, asked over HTTP in the shapes of OpenAI, and in some of its own.",
        },
        "security": [{"key": []}],
        "paths": PATHS,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": SCHEMAS,
            "responses": {name: _error(status, words) for status, (name, words) in ERRORS.items()},
        },
    }


def _error(status: int, words: str) -> Schema:
    told: Schema = {"description": words, "content": {JSON_TYPE: {"schema": ref("Error")}}}
    if status == 401:
        told["headers"] = {"WWW-Authenticate": {"schema": text()}}
    if status == 429:
        told["headers"] = {"Retry-After": {"schema": whole(minimum=1), "required": True}}
    return told


EXAMPLES: dict[str, Schema] = {
    "ChatRequest": {"model": "hermes", "messages": [{"role": "user", "content": "Hello!"}]},
    "ResponseRequest": {"model": "hermes", "input": "Hello!", "store": True},
    "RunRequest": {"input": "Tidy up my notes.", "session_id": "notes"},
    "SessionChatRequest": {"input": "And then?"},
    "SessionChange": {"title": "Plans for May"},
    "SessionFork": {"title": "Another way"},
    "Decision": {"decision": "approve", "reason": "go ahead"},
    "PairingDecision": {"platform": "telegram", "code": "K7QPM3XW", "decision": "approve"},
}

# How a route is written down


def route(
    summary: str,
    answers: dict[int, Schema],
    *errors: int,
    body: str = "",
    parameters: tuple[Schema, ...] = (),
    is_public: bool = False,
) -> Schema:
    codes = {403, *errors} if is_public else {*GATE, *errors}
    told: Schema = {
        "summary": summary,
        "responses": {
            **{str(status): answer for status, answer in answers.items()},
            **{str(code): {"$ref": f"#/components/responses/{ERRORS[code][0]}"} for code in sorted(codes)},
        },
    }
    if parameters:
        told["parameters"] = list(parameters)
    if body:
        content = {"schema": ref(body), "example": EXAMPLES[body]}
        told["requestBody"] = {"required": True, "content": {JSON_TYPE: content}}
    if is_public:
        told["security"] = []
    return told


def gives(schema: Schema, words: str = "Done.", *, streams: bool = False, links: Schema | None = None) -> Schema:
    content = {JSON_TYPE: {"schema": schema}}
    told: Schema = {
        "description": words,
        "content": {**content, STREAM_TYPE: {"schema": EVENT}} if streams else content,
    }
    return {**told, "links": links} if links else told


def link(path: str, parameter: str, found_at: str, method: str = "get") -> Schema:
    """Where an answer leads: the operation that takes the id it holds."""
    pointer = path.replace("~", "~0").replace("/", "~1")
    return {"operationRef": f"#/paths/{pointer}/{method}", "parameters": {parameter: f"$response.body#/{found_at}"}}


def events(words: str) -> Schema:
    return {"description": words, "content": {STREAM_TYPE: {"schema": EVENT}}}


def header(name: str, words: str, **schema: Any) -> Schema:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": words,
        "schema": {"type": "string", **schema},
    }


def in_path(name: str, words: str) -> Schema:
    schema = text(minLength=1, maxLength=200, pattern="^[A-Za-z0-9_-]+$")
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def in_query(name: str, words: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": words, "schema": schema}


_VISIBLE = "^[!-~]([ -~]*[!-~])?$"
SESSION_ID = header(
    "X-Hermes-Session-Id", "the session that goes on; a fresh one without it", pattern=_VISIBLE, maxLength=256
)
SESSION_KEY = header("X-Hermes-Session-Key", "the scope of long-term memory", pattern=_VISIBLE, maxLength=256)
IDEMPOTENCY = header(
    "Idempotency-Key", "sent again within a day, the same request gets the same answer", pattern=_VISIBLE, maxLength=255
)
ASKING = (SESSION_ID, SESSION_KEY, IDEMPOTENCY)
ON_DISCONNECT = header(
    "X-Hermes-On-Disconnect", "what becomes of the turn when the client goes", enum=["continue", "stop"]
)
LAST_EVENT_ID = header("Last-Event-ID", "the number of the last event that was seen", pattern=_VISIBLE)
LIMIT = in_query("limit", "how many", whole(minimum=1))
DELETED = thing({"id": text(), "object": text(), "deleted": {"const": True}}, ("id", "object", "deleted"))

SESSION_NAME = in_path("id", "of the session (s_…), or the name its client gave it")
RESPONSE_ID = in_path("id", "of the response (resp_…)")
RUN_ID = in_path("run_id", "of the run (run_…)")
APPROVAL_ID = in_path("approval_id", "of the approval (ap_…)")

PATHS: dict[str, Schema] = {
    "/health": {"get": route("Whether it is up", {200: gives(ref("Health"))}, is_public=True)},
    "/health/detailed": {
        "get": {
            **route("How it is; with a key of an admin also why", {200: gives(ref("HealthDetailed"))}),
            "security": [{}, {"key": []}],
        }
    },
    "/metrics": {
        "get": route(
            "Numbers for Prometheus",
            {200: {"description": "Text format 0.0.4.", "content": {"text/plain": {"schema": text()}}}},
        )
    },
    "/openapi.json": {"get": route("This document", {200: gives({"type": "object"})})},
    "/v1/models": {"get": route("The agent, and the names of model_routes", {200: gives(listed(ref("Model")))})},
    "/v1/models/{model}": {
        "get": route("One of them", {200: gives(ref("Model"))}, 404, parameters=(in_path("model", "its name"),))
    },
    "/v1/capabilities": {"get": route("What this server can do", {200: gives(ref("Capabilities"))})},
    "/v1/skills": {"get": route("Skills", {200: gives(listed(ref("Skill")))})},
    "/v1/toolsets": {"get": route("Toolsets, as resolved for the API", {200: gives(listed(ref("Toolset")))})},
    "/v1/chat/completions": {
        "post": route(
            "Ask the agent",
            {200: gives(ref("ChatCompletion"), "The answer, or its stream of chunks.", streams=True)},
            400,
            409,
            422,
            502,
            body="ChatRequest",
            parameters=(*ASKING, ON_DISCONNECT),
        )
    },
    "/v1/responses": {
        "post": route(
            "Ask the agent; the answer is kept",
            {
                200: gives(
                    ref("Response"),
                    "The response, or its stream of events.",
                    streams=True,
                    links={
                        "read": link("/v1/responses/{id}", "id", "id"),
                        "delete": link("/v1/responses/{id}", "id", "id", "delete"),
                    },
                )
            },
            400,
            409,
            422,
            502,
            body="ResponseRequest",
            parameters=ASKING,
        )
    },
    "/v1/responses/{id}": {
        "get": route(
            "A response that was kept",
            {200: gives(ref("Response"))},
            400,
            404,
            parameters=(RESPONSE_ID,),
        ),
        "delete": route("Forget a response", {200: gives(DELETED)}, 404, parameters=(RESPONSE_ID,)),
    },
    "/v1/responses/{id}/input_items": {
        "get": route(
            "What it was asked",
            {200: gives(listed({"type": "object"}))},
            400,
            404,
            parameters=(
                RESPONSE_ID,
                in_query("limit", "how many", whole(minimum=1, maximum=100)),
                in_query("order", "which first", {"enum": ["asc", "desc"]}),
                in_query("after", "the id of the last one that was seen", text()),
            ),
        )
    },
    "/v1/responses/{id}/cancel": {
        "post": route("Stop it", {200: gives(ref("Response"))}, 404, parameters=(RESPONSE_ID,))
    },
    "/v1/runs": {
        "post": route(
            "Ask for work that is looked up later",
            {
                202: gives(
                    ref("RunState"),
                    "Accepted; Location names it.",
                    links={
                        "read": link("/v1/runs/{run_id}", "run_id", "run_id"),
                        "events": link("/v1/runs/{run_id}/events", "run_id", "run_id"),
                        "stop": link("/v1/runs/{run_id}/stop", "run_id", "run_id", "post"),
                    },
                )
            },
            400,
            404,
            409,
            422,
            body="RunRequest",
            parameters=ASKING,
        )
    },
    "/v1/runs/{run_id}": {"get": route("Where a run stands", {200: gives(ref("Run"))}, 404, parameters=(RUN_ID,))},
    "/v1/runs/{run_id}/events": {
        "get": route(
            "What it does, as it does it",
            {200: events("Numbered events until the end of the run.")},
            404,
            parameters=(RUN_ID, LAST_EVENT_ID),
        )
    },
    "/v1/runs/{run_id}/approval": {
        "post": route(
            "Answer what it asks",
            {200: gives(ref("RunAnswered"))},
            400,
            404,
            409,
            body="Decision",
            parameters=(RUN_ID,),
        )
    },
    "/v1/runs/{run_id}/stop": {"post": route("Stop it", {200: gives(ref("RunState"))}, 404, parameters=(RUN_ID,))},
    "/api/sessions": {
        "get": route(
            "Conversations, the newest first",
            {200: gives(listed(ref("Session"), has_more={"type": "boolean"}, next_cursor=maybe(text())))},
            400,
            parameters=(
                LIMIT,
                in_query("cursor", "the next_cursor of the page before", text()),
                in_query("key", "only under this session key", text()),
                in_query("platform", "only of this platform", text()),
            ),
        )
    },
    "/api/sessions/{id}": {
        "get": route("One conversation", {200: gives(ref("Session"))}, 404, parameters=(SESSION_NAME,)),
        "patch": route(
            "Give it a title", {200: gives(ref("Session"))}, 400, 404, body="SessionChange", parameters=(SESSION_NAME,)
        ),
        "delete": route("Delete it for good", {200: gives(DELETED)}, 404, 409, parameters=(SESSION_NAME,)),
    },
    "/api/sessions/{id}/messages": {
        "get": route(
            "What was said in it",
            {200: gives(listed(ref("SessionLine"), has_more={"type": "boolean"}, next_after=maybe(whole())))},
            400,
            404,
            parameters=(SESSION_NAME, LIMIT, in_query("after", "the seq of the last one seen", whole(minimum=0))),
        )
    },
    "/api/sessions/{id}/fork": {
        "post": route(
            "Begin another with what was said in it",
            {201: gives(ref("Session"))},
            400,
            404,
            body="SessionFork",
            parameters=(SESSION_NAME,),
        )
    },
    "/api/sessions/{id}/chat": {
        "post": route(
            "Go on with it",
            {200: gives(ref("SessionChat"))},
            400,
            404,
            409,
            422,
            502,
            body="SessionChatRequest",
            parameters=(SESSION_NAME, IDEMPOTENCY),
        )
    },
    "/api/sessions/{id}/chat/stream": {
        "post": route(
            "Go on with it, as typed events",
            {200: events("The events of a run.")},
            400,
            404,
            409,
            422,
            body="SessionChatRequest",
            parameters=(SESSION_NAME, IDEMPOTENCY),
        )
    },
    "/api/approvals": {
        "get": route(
            "Questions that wait for an answer",
            {200: gives(listed(ref("Approval")))},
            parameters=(in_query("session_id", "only of this session", text()),),
        )
    },
    "/api/approvals/{approval_id}": {
        "get": route("One question", {200: gives(ref("Approval"))}, 404, parameters=(APPROVAL_ID,)),
        "post": route(
            "Answer it",
            {200: gives(ref("Approval"))},
            400,
            404,
            409,
            body="Decision",
            parameters=(APPROVAL_ID,),
        ),
    },
    "/api/pairings": {
        "get": route(
            "Who would like to talk, and who was let in",
            {200: gives(listed(ref("Pairing")))},
            400,
            parameters=(
                in_query("platform", "only of this platform", text()),
                in_query("status", "only these", {"enum": ["pending", "approved", "refused", "revoked"]}),
            ),
        ),
        "post": route(
            "Let somebody in by their code, send them away, or make them a stranger again",
            {200: gives(ref("Pairing"))},
            400,
            404,
            body="PairingDecision",
        ),
    },
}
