"""The whole API as one app: every family of routes, and the gate each request passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from aiohttp import hdrs, web

from hermes.config import ApiConfig
from hermes.servers.api import (
    approvals,
    auth,
    chat,
    health,
    metrics,
    models,
    pairings,
    runs,
    security,
    sessions,
)
from hermes.servers.api.auth import ApiKeys
from hermes.servers.api.content import InputLimits, limits_of
from hermes.servers.api.context import CALLER, STILL, ApiParts, Caller
from hermes.servers.api.errors import ApiError
from hermes.servers.api.idempotency import Repeats
from hermes.servers.api.limits import RateLimits, WrongKeys
from hermes.servers.api.metrics import Metrics
from hermes.servers.api.responses import places, routes
from hermes.servers.api.streams.turn_stream import KEEP_ALIVE_SECONDS
from hermes.servers.app import Handler, RouteAdder, make_app

if TYPE_CHECKING:
    from hermes.servers.dashboard.pages import DashboardFiles
    from hermes.servers.dashboard.sign_in import Dashboard

PUBLIC = frozenset({"/health", "/", "/dashboard", "/dashboard/{id}", "/dashboard/{id}/{id}", "/dashboard/assets/{id}"})
SIGN_IN = "/api/dashboard/sign-in"
SIGN_IN_BYTES = 10_000
BELOW_BASE = web.RequestKey("below_base", bool)
"""Set where the base path was taken off a request."""
"""The one change that needs no key: its body holds the proof."""
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


COOKIE = "hermes_dashboard"
READING = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})


def adders(parts: ApiParts) -> list[RouteAdder]:
    """Every family of routes."""
    limits = limits_of(parts.gateway.config.api)
    return [
        chat.routes(parts),
        _messages(parts),
        _embeddings(parts),
        routes.routes(parts, limits),
        _runs(parts, limits),
        sessions.routes(parts, limits),
        approvals.routes(parts),
        pairings.routes(parts),
        job_routes(parts),
        kanban_routes(parts),
        models.routes(parts),
        health.routes(parts),
        *(_made_once(parts, module, family, addresses) for (module, family), addresses in LATER.items()),
    ]


def _runs(parts: ApiParts, limits: InputLimits) -> RouteAdder:
    """Runs can go on from a response, so they are told how one is found."""

    def add(app: web.Application) -> None:
        runs.routes(parts, limits, partial(places.place_of, app[routes.KEEPER], parts.gateway))(app)

    return add


JOB_ROUTES = (
    ("GET", "/api/jobs", "listed"),
    ("POST", "/api/jobs", "create"),
    ("GET", "/api/jobs/{job_id}", "read"),
    ("PATCH", "/api/jobs/{job_id}", "change"),
    ("DELETE", "/api/jobs/{job_id}", "remove"),
    ("GET", "/api/jobs/{job_id}/history", "history"),
    ("POST", "/api/jobs/{job_id}/pause", "pause"),
    ("POST", "/api/jobs/{job_id}/resume", "resume"),
    ("POST", "/api/jobs/{job_id}/run", "run"),
)


KANBAN_ROUTES = (
    ("GET", "/api/kanban/tasks", "listed"),
    ("POST", "/api/kanban/tasks", "create"),
    ("GET", "/api/kanban/tasks/{task}", "show"),
    ("PATCH", "/api/kanban/tasks/{task}", "change"),
    ("POST", "/api/kanban/tasks/{task}/comments", "comment"),
    ("GET", "/api/kanban/events", "events"),
    ("GET", "/api/kanban/stats", "stats"),
)


LATER: Mapping[tuple[str, str], Sequence[tuple[str, str, str]]] = {
    ("watch.overview", "OverviewRoutes"): (("GET", "/api/overview", "show"),),
    ("watch.messages", "MessageListRoutes"): (
        ("GET", "/api/messages", "listed"),
        ("GET", "/api/messages/{message_id}", "show"),
        ("POST", "/api/messages/{message_id}/retry", "retry"),
    ),
    ("watch.events", "EventRoutes"): (("GET", "/api/events", "stream"),),
    ("watch.usage", "UsageRoutes"): (("GET", "/api/usage", "show"),),
    ("manage.people", "PeopleRoutes"): (
        ("GET", "/api/people", "listed"),
        ("PATCH", "/api/people/{person_id}", "change"),
        ("POST", "/api/people/{person_id}/links", "link"),
        ("GET", "/api/grants", "grants"),
        ("DELETE", "/api/grants/{grant_id}", "revoke"),
    ),
    ("manage.platforms", "PlatformRoutes"): (
        ("GET", "/api/platforms", "listed"),
        ("GET", "/api/platforms/{name}", "show"),
        ("PATCH", "/api/platforms/{name}", "change"),
        ("POST", "/api/platforms/{name}/test", "test"),
        ("POST", "/api/platforms/{name}/pause", "pause"),
        ("POST", "/api/platforms/{name}/resume", "resume"),
        ("POST", "/api/platforms/{name}/login", "begin_login"),
        ("GET", "/api/platforms/{name}/login", "login"),
        ("DELETE", "/api/platforms/{name}/login", "end_login"),
        ("POST", "/api/platforms/{name}/login/answer", "answer_login"),
    ),
    ("manage.models", "ModelRoutes"): (("GET", "/api/models", "listed"), ("POST", "/api/models/test", "test")),
    ("manage.settings", "SettingRoutes"): (("GET", "/api/settings", "listed"), ("PATCH", "/api/settings", "change")),
    ("manage.session_actions", "SessionActionRoutes"): (
        ("POST", "/api/sessions/{id}/steer", "steer"),
        ("POST", "/api/sessions/{id}/queue", "queue"),
        ("POST", "/api/sessions/{id}/stop", "stop"),
        ("POST", "/api/sessions/{id}/retry", "retry"),
        ("GET", "/api/sessions/{id}/export", "export"),
    ),
    ("watch.logs", "LogRoutes"): (("GET", "/api/logs", "listed"), ("GET", "/api/logs/events", "stream")),
}
"""Families for the dashboard: module and class, and the addresses of its methods."""


def _made_once(parts: ApiParts, module: str, family: str, addresses: Sequence[tuple[str, str, str]]) -> RouteAdder:
    """Routes of a family that the first request imports and makes. What it holds open ends with the server."""
    made: list[Any] = []

    def later(name: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if not made:
                made.append(getattr(import_module(f"hermes.servers.api.{module}"), family)(parts))
            answer: web.StreamResponse = await getattr(made[0], name)(request)
            return answer

        return handle

    async def end(app: web.Application) -> None:
        for routes_in_use in made:
            if hasattr(routes_in_use, "end"):
                await routes_in_use.end(app)

    def add(app: web.Application) -> None:
        for method, path, name in addresses:
            app.router.add_route(method, path, later(name))
        app.on_shutdown.append(end)

    return add


DASHBOARD_ROUTES = (
    ("POST", SIGN_IN, "sign_in"),
    ("GET", "/api/dashboard/session", "session"),
    ("POST", "/api/dashboard/sign-out", "sign_out"),
    ("GET", "/api/dashboard/sign-ins", "listed"),
    ("DELETE", "/api/dashboard/sign-ins/{sign_in_id}", "revoke"),
)
PAGE_ROUTES = (
    ("GET", "/", "root"),
    ("GET", "/dashboard", "page"),
    ("GET", "/dashboard/assets/{name}", "asset"),
    ("GET", "/dashboard/{page}", "page"),
    ("GET", "/dashboard/{page}/{rest}", "page"),
)


class LazyDashboard:
    """The sign-ins and the page: imported by the first request for one, or with a cookie."""

    def __init__(self, parts: ApiParts, keys: ApiKeys) -> None:
        self._parts = parts
        self._keys = keys

    @cached_property
    def sign_ins(self) -> Dashboard:
        from hermes.servers.dashboard.sign_in import Dashboard

        return Dashboard(self._parts, self._keys)

    @cached_property
    def pages(self) -> DashboardFiles:
        from hermes.servers.dashboard.pages import DashboardFiles

        return DashboardFiles(lambda: self._parts.gateway.config)

    def unwrapped(self, request: web.Request) -> web.Request:
        """Return the request as the client sent it, where it came through a proxy that counts as ours."""
        trusted = self._parts.gateway.config.dashboard.trusted_proxies
        if not trusted:
            return request
        from hermes.servers.dashboard.proxies import unwrapped

        return unwrapped(request, trusted)

    def below_base(self, request: web.Request) -> web.Request | None:
        """Return the request without the base path, if it is below it."""
        base = self._parts.gateway.config.dashboard.base_path
        if not base or BELOW_BASE in request:  # once: a path may hold the base a thousand times
            return None
        from hermes.servers.dashboard.proxies import without_base

        path = without_base(request.rel_url.raw_path, base)
        return request.clone(rel_url=request.rel_url.with_path(path, encoded=True, keep_query=True)) if path else None

    def routes(self, app: web.Application) -> None:
        def later(part: str, name: str) -> Handler:
            async def handle(request: web.Request) -> web.StreamResponse:
                answer: web.StreamResponse = await getattr(getattr(self, part), name)(request)
                return answer

            return handle

        for method, path, name in DASHBOARD_ROUTES:
            app.router.add_route(method, path, later("sign_ins", name))
        for method, path, name in PAGE_ROUTES:
            app.router.add_route(method, path, later("pages", name))


def _imported_later(parts: ApiParts, addresses: Sequence[tuple[str, str, str]], module: str, family: str) -> RouteAdder:
    """Routes whose ``family``, a class of ``module``, is imported by the first request for one of them."""

    def later(name: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            routes_of = getattr(import_module(module), family)
            handler: Handler = getattr(routes_of(parts.gateway), name)
            return await handler(request)

        return handle

    def add(app: web.Application) -> None:
        for method, path, name in addresses:
            app.router.add_route(method, path, later(name))

    return add


def _messages(parts: ApiParts) -> RouteAdder:
    """Routes of the Messages API, imported by the first request for one: a start needs none of them."""
    made: list[chat.ChatRoutes] = []

    def routes_made() -> Any:
        if not made:
            from hermes.servers.api.anthropic.routes import MessageRoutes

            made.append(MessageRoutes(parts, KEEP_ALIVE_SECONDS))
        return made[0]

    async def complete(request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse = await routes_made().complete(request)
        return answer

    async def count_tokens(request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse = await routes_made().count_tokens(request)
        return answer

    async def end(app: web.Application) -> None:
        for routes_in_use in made:
            await routes_in_use.calls.end(app)

    def add(app: web.Application) -> None:
        app.router.add_post("/v1/messages", complete)
        app.router.add_post("/v1/messages/count_tokens", count_tokens)
        app.on_shutdown.append(end)

    return add


def job_routes(parts: ApiParts) -> RouteAdder:
    return _imported_later(parts, JOB_ROUTES, "hermes.servers.api.entries.jobs", "JobRoutes")


def kanban_routes(parts: ApiParts) -> RouteAdder:
    return _imported_later(parts, KANBAN_ROUTES, "hermes.servers.api.entries.kanban", "KanbanRoutes")


def _embeddings(parts: ApiParts) -> RouteAdder:
    async def embed(request: web.Request) -> web.StreamResponse:
        from hermes.servers.api.direct import embeddings

        return await embeddings.embed(parts.gateway, request)

    def add(app: web.Application) -> None:
        app.router.add_post("/v1/embeddings", embed)

    return add


def make_api(parts: ApiParts, keys: ApiKeys) -> web.Application:
    """The app as it is served."""
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
            if not _path_of(request) and (meant := self._dashboard.below_base(request)) is not None:
                meant[BELOW_BASE] = True
                return await request.app._handle(meant)  # routed anew, and through this gate
            request = self._dashboard.unwrapped(request)
            with self._counts.request(request) as counting:
                return counting.saw(await self._passed(request, handler))

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
        if path == SIGN_IN and request.method == hdrs.METH_POST:
            # Anybody may ask this, and needs no more than a code or a key.
            scheme, remote = request.scheme, request.remote or ""  # a copy forgets what a proxy said
            request = request.clone(client_max_size=SIGN_IN_BYTES, scheme=scheme, remote=remote)
            await security.read_body(request, SIGN_IN_BYTES)
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
            if path and request.method not in READING:
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
        if COOKIE in request.headers.get(hdrs.COOKIE, ""):
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
    """The path as the routes know it, "" for one they do not."""
    resource = request.match_info.route.resource
    return _plain(resource.canonical) if resource is not None else ""
