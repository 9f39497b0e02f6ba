"""The one HTTP server of the gateway: one app, one port. Later parts join by adding their routes."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

import orjson
from aiohttp import web

from hermes.core.errors import StoreIsDownError
from hermes.servers.api.errors import ApiError, not_found, store_is_down

RouteAdder = Callable[[web.Application], None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Any  # aiohttp's own type for it is not public
WhyClosed = Callable[[], Awaitable[str]]
Health = Callable[[], Mapping[str, Any]]

LARGEST_BODY = 50 * 1024 * 1024
CLOSING_SECONDS = 1.0
IDLE_SECONDS = 20.0
"""A connection that sends no whole head of a request for so long is closed: idle, or slow on purpose."""
LINGERING_SECONDS = 2.0
"""How long the rest of a refused body is read and thrown away, so that its sender gets to read the refusal."""
TRY_AGAIN_SECONDS = 5.0
LOOKING_UP_SECONDS = 2.0
"""How long the start waits for the address of a host that is a name."""

log = logging.getLogger(__name__)


def make_app(
    adders: Iterable[RouteAdder] = (),
    health: Health = dict,
    *,
    middlewares: Iterable[Middleware] = (),
    largest_body: int = LARGEST_BODY,
) -> web.Application:
    """``health`` adds fields to the answer of /health; it is called on the loop and must be quick."""
    app = web.Application(middlewares=[_errors_become_answers, *middlewares], client_max_size=largest_body)

    async def answer_health(_request: web.Request) -> web.Response:
        return json_response({"status": "ok", **health()})

    app.router.add_get("/health", answer_health)
    for add in adders:
        add(app)
    return app


def json_response(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")


@web.middleware
async def _errors_become_answers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every refusal is JSON in the OpenAI envelope, and no exception ends more than its own request."""
    if request.match_info.http_exception is not None and (shorter := _without_slash(request)) is not None:
        return await request.app._handle(shorter)  # routed anew
    try:
        return await handler(request)
    except ApiError as refusal:
        return refusal.response(request.path)
    except web.HTTPException as refusal:
        if refusal.status < 400:
            raise
        return _in_envelope(request, refusal).response(request.path)
    except StoreIsDownError as error:
        log.warning("Store is down", extra={"while": request.path, "reason": str(error)})
        return store_is_down().response(request.path)
    except Exception:
        log.exception("Request failed", extra={"method": request.method, "path": request.path})
        return _broken().response(request.path)


def _without_slash(request: web.Request) -> web.Request | None:
    """Return the request without the slash at its end. Clients join addresses with and without one.

    A redirect would lose the body of a POST, and a second route for each address would double them for a rare case.
    """
    path = request.rel_url.raw_path
    shorter = path.removesuffix("/")
    if not shorter or shorter == path or shorter.endswith("/"):
        return None
    return request.clone(rel_url=request.rel_url.with_path(shorter, encoded=True, keep_query=True))


def _broken() -> ApiError:
    return ApiError(500, "The gateway failed at this; its log says how.", code="internal_error", kind="server_error")


def _in_envelope(request: web.Request, refusal: web.HTTPException) -> ApiError:
    match refusal:
        case web.HTTPNotFound():
            words = f"There is nothing at {request.path[:200]}. GET /openapi.json tells every address there is"
            hint = "; those of OpenAI begin with /v1." if not request.path.startswith("/v1/") else "."
            return not_found(words + hint, code="unknown_url")
        case web.HTTPMethodNotAllowed():
            allowed = ", ".join(sorted(refusal.allowed_methods))
            words = f"{request.path[:200]} takes {allowed}, not {refusal.method}."
            return ApiError(405, words, code="method_not_allowed", headers={"Allow": allowed})
        case web.HTTPRequestEntityTooLarge():
            return ApiError(413, "The body is too large.", code="request_too_large", headers={"Connection": "close"})
        case _:
            return ApiError(refusal.status, refusal.reason, code=f"http_{refusal.status}")


class HttpServer:
    """``async with server.listening():`` serves until the end of the block.

    A port that another program holds stops nothing else: ``trouble`` says so, and it is tried again until it is
    free; ``bound`` is set from then on. Port 0 takes any free one; ``port`` then tells which. The same goes for a
    port that must not open (``why_closed`` is asked each time, and says why) and for a host whose name nobody resolves.
    ``move`` and ``shut`` change where it listens meanwhile.
    """

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        why_closed: WhyClosed | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._app = app
        self.host = host
        self.port = port
        self._why_closed = why_closed
        self._idle_seconds = idle_seconds
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._tasks: list[asyncio.Task[Any]] = []
        self.trouble = ""
        self.bound = asyncio.Event()

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        runner = self._runner = web.AppRunner(
            self._app,
            access_log=None,
            shutdown_timeout=CLOSING_SECONDS,
            keepalive_timeout=self._idle_seconds,
            lingering_time=min(LINGERING_SECONDS, self._idle_seconds),
            logger=_unheard(),
        )
        await runner.setup()
        try:
            await self._open(runner)
            yield
        finally:
            await self._give_up()
            await runner.cleanup()

    async def move(self, host: str, port: int) -> None:
        """Listen there instead. Requests under way are answered; idle connections to the old address are closed."""
        await self.shut()
        self.host, self.port = host, port
        if self._runner is not None:
            await self._open(self._runner)
        if self.bound.is_set():
            log.info("HTTP port is open", extra={"url": self.url})

    async def shut(self) -> None:
        """Listen nowhere."""
        await self._give_up()
        site, self._site = self._site, None
        if site is not None:
            log.info("HTTP port is closed", extra={"url": self.url})
            await site.stop()
        if self._runner is not None and self._runner.server is not None:
            self._runner.server.pre_shutdown()
        self.bound.clear()
        self.trouble = ""

    async def close_unless_allowed(self) -> None:
        """Close a port that may not be open any more, for example since its key is gone; it opens when it may."""
        reason = await self._why_closed() if self._why_closed is not None and self._site is not None else ""
        if reason:
            await self.move(self.host, self.port)

    async def _open(self, runner: web.AppRunner) -> None:
        self._tasks.append(first := asyncio.create_task(self._bind(runner)))
        await asyncio.wait({first}, timeout=None if is_address(self.host) else LOOKING_UP_SECONDS)
        if not first.done():
            self.trouble = f"port {self.port} is not open yet: {self.host} is being looked up, and nobody answers"
        if not first.done() or not first.result():
            self._tasks.append(asyncio.create_task(self._keep_trying(runner, first), name="http port"))

    async def _give_up(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_trying(self, runner: web.AppRunner, first: asyncio.Task[bool]) -> None:
        log.error("HTTP port is closed", extra={"reason": self.trouble})
        is_open = await first
        while not is_open:
            await asyncio.sleep(TRY_AGAIN_SECONDS)
            is_open = await self._bind(runner)
        log.info("HTTP port is open", extra={"url": self.url})

    async def _bind(self, runner: web.AppRunner) -> bool:
        if self._why_closed is not None and (reason := await self._why_closed()):
            self.trouble = reason
            return False
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
        self._site = site
        self.trouble = ""
        self.port = runner.addresses[0][1]
        self.bound.set()
        return True


def _unheard() -> logging.Logger:
    """aiohttp's own complaints about bytes that are no HTTP: anybody could fill the log with them."""
    logger = logging.getLogger(f"{__name__}.bytes")
    logger.setLevel(logging.CRITICAL)
    return logger


def is_address(host: str) -> bool:
    """Whether nobody has to be asked for the address."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _reason(error: OSError) -> str:
    """The system's own words; asyncio wraps them in a sentence about addresses."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
