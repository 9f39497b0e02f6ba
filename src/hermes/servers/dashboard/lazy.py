"""The dashboard as the API server knows it: routes and checks that import the rest when a request needs it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from aiohttp import web

from hermes.servers.api.auth import ApiKeys
from hermes.servers.api.context import ApiParts
from hermes.servers.app import Handler

if TYPE_CHECKING:
    from hermes.servers.dashboard.pages import DashboardFiles
    from hermes.servers.dashboard.sign_in import Dashboard

SIGN_IN_PATH = "/api/dashboard/sign-in"
"""The one change that needs no key: its body holds the proof."""
SIGN_IN_BYTES = 10_000
PAGE_PATHS = frozenset({"/", "/dashboard", "/dashboard/{id}", "/dashboard/{id}/{id}", "/dashboard/assets/{id}"})
"""The paths of ``PAGE_ROUTES``, as ``plain_path`` writes them: everybody may load the page."""
BELOW_BASE = web.RequestKey("below_base", bool)
"""Set where the base path was taken off a request."""

SIGN_IN_ROUTES = (
    ("POST", SIGN_IN_PATH, "sign_in"),
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
        if not path:
            return None
        inner = request.clone(rel_url=request.rel_url.with_path(path, encoded=True, keep_query=True))
        inner[BELOW_BASE] = True
        return inner

    def routes(self, app: web.Application) -> None:
        for method, path, name in SIGN_IN_ROUTES:
            app.router.add_route(method, path, self._handler_of("sign_ins", name))
        for method, path, name in PAGE_ROUTES:
            app.router.add_route(method, path, self._handler_of("pages", name))

    def _handler_of(self, part: Literal["sign_ins", "pages"], name: str) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            response: web.StreamResponse = await getattr(getattr(self, part), name)(request)
            return response

        return handle
