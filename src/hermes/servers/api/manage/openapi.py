"""`GET /openapi.json` as it is served: the contract of the API, and the routes behind the dashboard."""

from __future__ import annotations

from functools import lru_cache

import orjson

from hermes.servers.api.manage import bodies
from hermes.servers.api.openapi.document import document as document_with
from hermes.servers.api.openapi.routes import given, route
from hermes.servers.api.openapi.shapes import STREAM_TYPE, Schema, shape
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
_FORMAT = given("query", "format", "of the file", enum=["markdown", "jsonl"])
_AFTER_NUMBER = given("query", "after", "the number of the state that was seen")
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
    "PersonAccount": shape("platform user_id name"),
    "Person": shape(
        "id object=person name role language accounts:PersonAccount[] may_change:flag", "created_at:number"
    ),
    "PersonPage": shape("object=list data:Person[] has_more:flag next_before:text?"),
    "Grant": shape(
        "id object=grant person_id person scope subject session_id touches_host:whole granted_by granted_at:number"
        " reason by",
        "revoked_at:number?",
    ),
    "PlatformSetting": shape(
        "name label help type is_secret:flag is_required:flag is_asked:flag value is_set:flag source env"
    ),
    "PlatformAccount": shape(
        "name platform state sentence since:number? last_frame_age:number? in_today:whole out_today:whole cure"
        " is_paused:flag"
    ),
    "Platform": shape(
        "name object=platform label is_set_up:flag is_enabled:flag missing:text[] accounts:PlatformAccount[]"
        " settings:PlatformSetting[] has_login:flag get:text[] ids link"
    ),
    "PlatformTest": shape("object=platform.test ok:flag name sentence cure seconds:number"),
    "PlatformLogin": shape(
        "object=platform.login state=idle|starting|code|asking|done|failed code modules:text[] lines:text[] question"
        " sentence number:whole"
    ),
    "Provider": shape(
        "name label is_ready:flag has_key:flag key_hint base_url default_model is_local:flag is_current:flag env"
    ),
    "Models": shape(
        "object=models current fallbacks:text[] routes:text{} providers:Provider[] keys",
        current=shape("provider model label"),
        keys={"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
    ),
    "ModelTest": shape("object=model.test provider model label ok:flag seconds:number text sentence"),
    "Setting": shape(
        "name object=setting value written source default type=text|secret|flag|whole|number|list|choice|url"
        " choices:text[] help env:text[] is_set:flag is_secret:flag section needs_restart:flag note"
    ),
    "SessionSteer": shape("object=session.steer event_id session_id"),
    "SessionStop": shape("object=session.stop session_id turn_id:text? set_aside:whole"),
    "SessionRun": shape("object=run run_id:text? status session_id"),
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
    route("GET /api/people", "Everybody the agent knows, the newest first", "PersonPage", (400,), None,
          (_QUERY, _LIMIT, _BEFORE)),
    route("PATCH /api/people/{person_id}", "Give a person a role", "Person", (409,), bodies.PersonChangeBody,
          example={"role": "user"}),
    route("POST /api/people/{person_id}/links", "Link another account to a person", "Person", (409,), bodies.LinkBody,
          example={"account": "telegram:5550142"}),
    route("GET /api/grants", "What is allowed without asking", "[Grant]"),
    route("DELETE /api/grants/{grant_id}", "End a grant: it is asked about again", "Deleted"),
    route("GET /api/platforms", "Platforms, their accounts and settings", "[Platform]", (), None, (_LANGUAGE,)),
    route("GET /api/platforms/{name}", "One platform", "Platform", (), None, (_LANGUAGE,)),
    route("PATCH /api/platforms/{name}", "Write settings of a platform", "Platform", (), bodies.PlatformChangeBody,
          example={"settings": {"token": "123456:ABC-DEF"}}),
    route("POST /api/platforms/{name}/test", "Ask the platform who we are", "PlatformTest", (),
          bodies.PlatformTestBody, example={"settings": {"token": "123456:ABC-DEF"}}),
    route("POST /api/platforms/{name}/pause", "Switch a platform off", "Platform", (400, 409)),
    route("POST /api/platforms/{name}/resume", "Switch it on again", "Platform", (400, 409)),
    route("POST /api/platforms/{name}/login", "Begin to sign in by QR code", "PlatformLogin", (409,), status=202),
    route("GET /api/platforms/{name}/login", "Where that sign-in is; waits for news after a number", "PlatformLogin",
          (), None, (_LANGUAGE, _AFTER_NUMBER)),
    route("DELETE /api/platforms/{name}/login", "End that sign-in", "Deleted"),
    route("POST /api/platforms/{name}/login/answer", "Answer what it asks", "PlatformLogin", (409,),
          bodies.LoginAnswerBody, example={"text": "yes"}),
    route("GET /api/models", "Providers, and which model answers", "Models"),
    route("POST /api/models/test", "Ask a model for one word", "ModelTest", (), bodies.ModelTestBody,
          example={"provider": "openai"}),
    route("GET /api/settings", "Every setting, and where its value comes from", "[Setting]", (), None,
          (_QUERY, _LANGUAGE)),
    route("PATCH /api/settings", "Change settings", "[Setting]", (), bodies.SettingsChangeBody,
          example={"settings": {"agent.busy_mode": "queue"}}),
    route("POST /api/sessions/{id}/steer", "Hand words to the turn that runs", "SessionSteer", (409,),
          bodies.SteerBody, example={"text": "Shorter, please."}, status=202),
    route("POST /api/sessions/{id}/queue", "Ask something for after the turn that runs", "SessionRun", (409,),
          bodies.SteerBody, example={"text": "And then the other one."}, status=202),
    route("POST /api/sessions/{id}/stop", "Stop the turn that runs, and what waits behind it", "SessionStop", (409,)),
    route("POST /api/sessions/{id}/retry", "Ask the last thing again", "SessionRun", (409,), status=202),
    route("GET /api/sessions/{id}/export", "The whole session as a file", "text", (400,), None, (_FORMAT,),
          types=("text/markdown", "application/x-ndjson")),
    route("GET /api/overview", "Whether all is well, and the numbers of today", "Overview", (), None, (_LANGUAGE,)),
]
# fmt: on
BODIES = (
    bodies.SignInBody,
    bodies.PersonChangeBody,
    bodies.LinkBody,
    bodies.PlatformChangeBody,
    bodies.PlatformTestBody,
    bodies.LoginAnswerBody,
    bodies.ModelTestBody,
    bodies.SettingsChangeBody,
    bodies.SteerBody,
)


@lru_cache(maxsize=1)
def page() -> bytes:
    return orjson.dumps(document())


def document() -> Schema:
    return document_with(ROUTES, ANSWERS, BODIES)
