"""`GET /openapi.json` as it is served: the contract of the API, and the routes behind the dashboard."""

from __future__ import annotations

from functools import lru_cache

import orjson

from hermes.servers.api import openapi
from hermes.servers.api.manage import bodies
from hermes.servers.api.openapi import Schema, given, route, shape

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
    route("GET /api/overview", "Whether all is well, and the numbers of today", "Overview", (), None, (_LANGUAGE,)),
]
# fmt: on
BODIES = (bodies.SignInBody,)


@lru_cache(maxsize=1)
def page() -> bytes:
    return orjson.dumps(document())


def document() -> Schema:
    return openapi.document(ROUTES, ANSWERS, BODIES)
