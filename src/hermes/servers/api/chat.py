"""`POST /v1/chat/completions`."""

from __future__ import annotations

from aiohttp import web

from hermes.servers.api.parts import ApiParts
from hermes.servers.app import RouteAdder


def routes(parts: ApiParts) -> RouteAdder:
    async def complete(_request: web.Request) -> web.StreamResponse:
        raise NotImplementedError(parts)

    def add(app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", complete)

    return add
