"""`GET /openapi.json` as it is served: the contract of the API, and the routes behind the dashboard."""

from __future__ import annotations

from functools import lru_cache

import orjson

from hermes.servers.api import openapi
from hermes.servers.api.manage import bodies
from hermes.servers.api.openapi import STREAM_TYPE, Schema, given, route, shape
from hermes.store.inbox import InboxState
from hermes.store.outbox import OutboxState

_DIRECTION = given("query", "direction", "only inbound, or only outbound", enum=["in", "out"])
_STATE = given(
    "query", "state", "only those in this state; dead: dead letters",
    enum=sorted({*InboxState, *OutboxState}),
)  # fmt: skip
_PLATFORM = given("query", "platform", "only of this platform")
_QUERY = given("query", "query", "only those with these words")
_LIMIT = given("query", "limit", "how many", type="integer", minimum=1)
_BEFORE = given("query", "before", "the next_before of the page before")
_LAST_EVENT = given(
    "header", "Last-Event-ID", "the id of the last event that was seen", pattern="^[!-~]([ -~]*[!-~])?$"
)
_DAYS = given("query", "days", "how many days, with today", type="integer", minimum=1)
_LEVEL = given("query", "level", "this level and above", enum=["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
_LANGUAGE = given("query", "language", "of the sentences in the answer", enum=["en", "zh"])

ANSWERS: dict[str, Schema] = {
    "DashboardSession": shape(
        "object=dashboard.session id name role csrf language version node base_path pages:text[] signed_in_at:number"
        " expires_at:number"
    ),
    "DashboardSignIn": shape(
        "id object=dashboard.sign_in name role created_at:number seen_at:number expires_at:number address agent"
        " is_this:flag"
    ),
    "PlatformState": shape(
        "name platform state sentence since:number? last_frame_age:number? in_today:whole out_today:whole cure"
    ),
    "NodeState": shape("name state host version is_this:flag lanes:whole turns:whole beat_age:number accounts:text[]"),
    "Overview": shape(
        "object=overview sentence is_well:flag state=running|degraded|stopping version started_at:number? node"
        " platforms:PlatformState[] nodes:NodeState[] messages latency tokens_today turns_today:whole"
        " cost_today:number? alerts:text[] approvals_waiting:whole dead_letters:whole model remote:object?",
        messages=shape("in_today:whole out_today:whole waiting:whole oldest_age:number? answers_waiting:whole"),
        latency=shape("p50:number? p95:number? count:whole"),
        tokens_today=shape("in:whole out:whole"),
        model=shape("label last_answer_age:number? note"),
    ),
    "MessageRow": shape(
        "id object=message direction=in|out at:number platform chat person kind text outcome reason state"
        " turn_id:text? session_key:text? can_retry:flag"
    ),
    "MessagePage": shape("object=list data:MessageRow[] has_more:flag next_before:text?"),
    "TraceStep": shape("at:number kind=in|turn|model|tool|ask|out title detail state seconds:number? id"),
    "TraceTurn": shape(
        "id state model prompt_tokens:whole completion_tokens:whole steps:whole attempts:whole reason session_id"
        " session_key created_at:number ended_at:number?"
    ),
    "MessageTrace": shape(
        "id object=message.trace headline outcome turn:TraceTurn? steps:TraceStep[]", "steps_left_out:whole"
    ),
    "UsageDay": shape("day tokens_in:whole tokens_out:whole cost:number? turns:whole messages:whole"),
    "ModelUsage": shape("model tokens_in:whole tokens_out:whole cost:number? turns:whole"),
    "PersonUsage": shape("person tokens_in:whole tokens_out:whole cost:number? turns:whole"),
    "UsageReport": shape("object=usage days:whole by_day:UsageDay[] by_model:ModelUsage[] by_person:PersonUsage[]"),
    "LogLine": shape("at:number level source text fields:text{}"),
    "LogPage": shape("object=list data:LogLine[] has_more:flag"),
}

_SIGN_IN_EXAMPLE: Schema = {"code": "u6jkPIWZrGDrsIVv-2l6tQ"}

# One route in a line or two.
# fmt: off
ROUTES = [
    route("POST /api/dashboard/sign-in", "Sign in to the dashboard; the answer sets a cookie", "DashboardSession",
          (401, 404, 429), bodies.SignInBody, example=_SIGN_IN_EXAMPLE,
          security=[{}, {"key": []}]),
    route("GET /api/dashboard/session", "Who is signed in, by the cookie", "DashboardSession"),
    route("POST /api/dashboard/sign-out", "End this sign-in", "Deleted"),
    route("GET /api/dashboard/sign-ins", "Sign-ins that count, the last used first", "[DashboardSignIn]"),
    route("DELETE /api/dashboard/sign-ins/{sign_in_id}", "End a sign-in", "Deleted"),
    route("GET /api/messages", "Messages of all chats, the newest first", "MessagePage", (400,), None,
          (_DIRECTION, _STATE, _PLATFORM, _QUERY, _LIMIT, _BEFORE)),
    route("GET /api/messages/{message_id}", "The life of a message, step by step", "MessageTrace"),
    route("POST /api/messages/{message_id}/retry", "Send a dead letter again", "MessageRow", (409,)),
    route("GET /api/events", "What changes, live: ids and states", "Event", (), None, (_LAST_EVENT,),
          says="Numbered events until the client leaves.", types=(STREAM_TYPE,)),
    route("GET /api/usage", "Tokens by day, by model and by person", "UsageReport", (400,), None, (_DAYS,)),
    route("GET /api/logs", "The newest lines of the log that match, the oldest first", "LogPage", (400,), None,
          (_LEVEL, _QUERY, _LIMIT)),
    route("GET /api/logs/events", "The lines that follow", "Event", (400,), None, (_LEVEL, _QUERY),
          says="One event for each line.", types=(STREAM_TYPE,)),
    route("GET /api/overview", "Whether all is well, and the numbers of today", "Overview", (), None, (_LANGUAGE,)),
]
# fmt: on
BODIES = (bodies.SignInBody,)


@lru_cache(maxsize=1)
def page() -> bytes:
    return orjson.dumps(document())


def document() -> Schema:
    return openapi.document(ROUTES, ANSWERS, BODIES)
