"""`GET /openapi.json`: the contract. Written by hand as data; a golden file guards it."""

from __future__ import annotations

from typing import Any

import orjson
from aiohttp import web

from hermes import __version__
from hermes.servers.api.parts import ApiParts
from hermes.servers.app import RouteAdder


def routes(_parts: ApiParts) -> RouteAdder:
    page = orjson.dumps(document())

    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=page, content_type="application/json")

    def add(app: web.Application) -> None:
        app.router.add_get("/openapi.json", answer)

    return add


def document() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Hermes", "version": __version__},
        "paths": {},
    }
