"""Ollama and LM Studio as far as they are looked at: lists of models, and what is loaded with which context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import orjson
from aiohttp import web


class FakeLocalServer:
    """``pages`` by path; anything else is not found. ``url`` is the root, without ``/v1``."""

    def __init__(self, pages: Mapping[str, Any]) -> None:
        self._pages = pages
        self._runner: web.AppRunner | None = None
        self.asked: list[str] = []
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._page)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _page(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path not in self._pages:
            return web.Response(status=404, text="404 page not found")
        return web.Response(body=orjson.dumps(self._pages[request.path]), content_type="application/json")


def ollama(*names: str, loaded: Mapping[str, int] | None = None) -> FakeLocalServer:
    details = {"format": "gguf", "family": "qwen3", "parameter_size": "8.2B", "quantization_level": "Q4_K_M"}
    tags = [{"name": name, "model": name, "size": 5_200_000_000, "details": details} for name in names]
    running = [{"name": name, "model": name, "context_length": size} for name, size in (loaded or {}).items()]
    return FakeLocalServer({"/api/tags": {"models": tags}, "/api/ps": {"models": running}})


def lm_studio(*names: str, loaded: Mapping[str, int] | None = None) -> FakeLocalServer:
    models = [{"id": name, "object": "model", "owned_by": "organization_owner"} for name in names]
    known = [
        {"id": name, "type": "llm", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": size}
        for name, size in (loaded or {}).items()
    ]
    pages = {"/v1/models": {"object": "list", "data": models}, "/api/v0/models": {"object": "list", "data": known}}
    return FakeLocalServer(pages)
