"""The whole API as one app: every family of routes, and the gate each request passes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from aiohttp import hdrs, web

from hermes.config import ApiConfig
from hermes.servers.api import approvals, auth, chat, health, models, runs, security, sessions
from hermes.servers.api.auth import ApiKeys
from hermes.servers.api.content import InputLimits, limits_of
from hermes.servers.api.context import CALLER, STILL, ApiParts, Caller
from hermes.servers.api.errors import ApiError
from hermes.servers.api.idempotency import Repeats
from hermes.servers.api.lazy_routes import FAMILIES, lazy_routes
from hermes.servers.api.limits import RateLimits, WrongKeys
from hermes.servers.api.responses import places, routes
from hermes.servers.api.watch import metrics
from hermes.servers.api.watch.metrics import Metrics
from hermes.servers.app import Handler, RouteAdder, make_app
from hermes.servers.dashboard.lazy import PAGE_PATHS, SIGN_IN_BYTES, SIGN_IN_PATH, LazyDashboard

PUBLIC = frozenset({"/health"}) | PAGE_PATHS
PUBLIC_IN_PART = frozenset({"/health/detailed"})

WORK = frozenset(
    {
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/runs",
        "/api/sessions/{id}/chat",
        "/api/sessions/{id}/chat/stream",
    }
)
"""What makes the agent work: only these count as concurrent, so that a stop or an approval never waits behind them."""


def adders(parts: ApiParts) -> list[RouteAdder]:
    """Every family of routes."""
    limits = limits_of(parts.gateway.config.api)
    return [
        chat.routes(parts),
        routes.routes(parts, limits),
        _runs(parts, limits),
        sessions.routes(parts, limits),
        approvals.routes(parts),
        models.routes(parts),
        health.routes(parts),
        *(lazy_routes(family, parts) for family in FAMILIES),
    ]


def _runs(parts: ApiParts, limits: InputLimits) -> RouteAdder:
    """Add the routes of runs, with the lookup of responses: a run can go on from one."""

    def add(app: web.Application) -> None:
        runs.routes(parts, limits, partial(places.place_of, app[routes.KEEPER], parts.gateway))(app)

    return add


def make_api(parts: ApiParts, keys: ApiKeys) -> web.Application:
    """Return the app as it is served."""
    counts, dashboard = Metrics(parts), LazyDashboard(parts, keys)
    app = make_app(
        [*adders(parts), metrics.routes(counts), dashboard.routes],
        middlewares=[Gate(parts, keys, counts, dashboard).middleware],
        largest_body=parts.gateway.config.api.max_request_bytes,
    )
    app.on_response_prepare.append(security.add_headers(lambda: parts.gateway.config.api))
    return app


class Gate:
    """What every request passes before its handler: name, page, key, pace and body, in this order."""

    def __init__(self, parts: ApiParts, keys: ApiKeys, counts: Metrics, dashboard: LazyDashboard) -> None:
        self._config: Callable[[], ApiConfig] = lambda: parts.gateway.config.api
        self._keys = keys
        self._counts = counts
        self._dashboard = dashboard
        self._limits = RateLimits(self._config, parts.gateway.clock)
        self._wrong_keys = WrongKeys(parts.gateway.clock)
        self._repeats = Repeats(parts.gateway.db, parts.gateway.clock)
        self._tools = parts.tools
        self._largest_body = parts.gateway.config.api.max_request_bytes

    @property
    def middleware(self) -> Any:
        @web.middleware
        async def gate(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not _path_of(request) and (inner := self._dashboard.below_base(request)) is not None:
                return await request.app._handle(inner)  # routed anew, and through this gate
            request = self._dashboard.unwrapped(request)
            return await self._counts.counted(request, self._passed(request, handler))

        return gate

    async def _passed(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        api = self._config()
        security.check_host(request, api)
        security.check_origin(request, api)
        if security.is_preflight(request):
            return security.preflight_answer(request)
        path = _path_of(request)
        if path in PUBLIC:
            return await handler(request)
        if path == SIGN_IN_PATH and request.method == hdrs.METH_POST:
            # Anybody may ask this, and needs no more than a code or a key.
            scheme, remote = request.scheme, request.remote or ""  # a copy forgets what a proxy said
            request = request.clone(client_max_size=SIGN_IN_BYTES, scheme=scheme, remote=remote)
            await security.read_body(request, SIGN_IN_BYTES, is_fixed=True)
            await security.refuse_tools(request, self._tools)
            return await handler(request)
        token = auth.bearer(request)
        caller = await self._caller(request, token)
        if caller is None:
            if path in PUBLIC_IN_PART and not token:
                return await handler(request)
            raise (self._wrong_keys.refuse(request) if token else None) or auth.unauthorized(token)
        request[CALLER] = caller
        request[STILL] = partial(self._is_still, request, token, caller)
        await self._limits.pace(caller.id)
        await security.read_body(request, self._largest_body)
        if request.method != hdrs.METH_POST or path not in WORK:
            if path and request.method not in security.READING_METHODS:
                await security.refuse_tools(request, self._tools)
            return await handler(request)
        slots = await self._limits.take_slot(caller.id)
        try:
            if request.transport is None:
                raise ApiError(408, "The client left before its turn came.", code="client_gone")
            return await self._repeats.answer(request, caller, handler)
        finally:
            self._limits.give_back(slots)

    async def _caller(self, request: web.Request, token: str) -> Caller | None:
        if token:
            return await self._keys.who(token)
        if auth.DASHBOARD_COOKIE in request.headers.get(hdrs.COOKIE, ""):
            return await self._dashboard.sign_ins.caller(request)
        return None

    async def _is_still(self, request: web.Request, token: str, caller: Caller) -> bool:
        try:
            return await self._caller(request, token) == caller
        except ApiError:
            return False


@lru_cache(maxsize=256)
def _plain(canonical: str) -> str:
    return models.plain_path(canonical)


def _path_of(request: web.Request) -> str:
    """Return the path as the routes know it; "" where no route matches."""
    resource = request.match_info.route.resource
    return _plain(resource.canonical) if resource is not None else ""
