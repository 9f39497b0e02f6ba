"""The one HTTP server of the gateway: one app, one port. Later parts join by adding their routes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web

RouteAdder = Callable[[web.Application], None]
Health = Callable[[], Mapping[str, Any]]

LARGEST_BODY = 32 * 1024 * 1024
CLOSING_SECONDS = 1.0
TRY_AGAIN_SECONDS = 5.0

log = logging.getLogger(__name__)


def make_app(adders: Iterable[RouteAdder] = (), health: Health = dict) -> web.Application:
    """``health`` adds fields to the answer of /health; it is called on the loop and must be quick."""
    app = web.Application(middlewares=[_errors_become_answers], client_max_size=LARGEST_BODY)

    async def answer_health(_request: web.Request) -> web.Response:
        return json_response({"status": "ok", **health()})

    app.router.add_get("/health", answer_health)
    for add in adders:
        add(app)
    return app


def json_response(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


@web.middleware
async def _errors_become_answers(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Every refusal is JSON, and no exception ends more than its own request."""
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        if refusal.status < 400:
            raise
        return json_response({"error": {"message": refusal.reason, "code": refusal.status}}, refusal.status)
    except Exception:
        log.exception("Request failed", extra={"method": request.method, "path": request.path})
        return json_response({"error": {"message": "The gateway failed at this; its log says how.", "code": 500}}, 500)


class HttpServer:
    """``async with server.listening():`` serves until the end of the block.

    A port that another program holds stops nothing else: ``trouble`` says so, and it is tried again until it is
    free; ``bound`` is set from then on. Port 0 takes any free one; ``port`` then tells which.
    """

    def __init__(self, app: web.Application, host: str, port: int) -> None:
        self._app = app
        self.host = host
        self.port = port
        self.trouble = ""
        self.bound = asyncio.Event()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=CLOSING_SECONDS)
        await runner.setup()
        trying: asyncio.Task[None] | None = None
        try:
            if not await self._bind(runner):
                trying = asyncio.create_task(self._keep_trying(runner), name="http port")
            yield
        finally:
            if trying is not None:
                trying.cancel()
                await asyncio.gather(trying, return_exceptions=True)
            await runner.cleanup()

    async def _keep_trying(self, runner: web.AppRunner) -> None:
        log.error("HTTP port is taken", extra={"reason": self.trouble})
        while True:
            await asyncio.sleep(TRY_AGAIN_SECONDS)
            if await self._bind(runner):
                log.info("HTTP port is ours again", extra={"url": self.url})
                return

    async def _bind(self, runner: web.AppRunner) -> bool:
        site = web.TCPSite(runner, self.host, self.port)
        try:
            await site.start()
        except OSError as error:
            await site.stop()
            self.trouble = (
                f"port {self.port} on {self.host} cannot be used ({_reason(error)}): /health and the API are off. "
                "Free it, or set API_SERVER_PORT"
            )
            return False
        self.trouble = ""
        self.port = runner.addresses[0][1]
        self.bound.set()
        return True


def _reason(error: OSError) -> str:
    """The system's own words; asyncio wraps them in a sentence about addresses."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
