"""Against hostile pages and hostile networks: where the port may open, by which names it is called, by which pages."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from hermes.config import ApiConfig
from hermes.core.text import one_line
from hermes.hosting.tool_processes import TOOL, UNKNOWN, ToolProcesses
from hermes.servers.api.context import REQUEST_ID, SESSION_ID_HEADER, SESSION_KEY_HEADER, WARNINGS
from hermes.servers.api.errors import ApiError
from hermes.servers.app import is_address
from hermes.store.ids import new_id

log = logging.getLogger(__name__)

RESOLVE_SECONDS = 3.0
BODY_SECONDS = 30.0
MIN_KEY_CHARS = 16
MIN_DIFFERENT_CHARS = 6
READING_METHODS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})
"""Of `API_SERVER_KEY` on a port that others can reach."""

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REQUEST_ID_HEADER = "x-request-id"
WARNING_HEADER = "X-Hermes-Warning"
MAX_WARNING = 500
EXPOSED = ", ".join(
    (
        SESSION_ID_HEADER,
        SESSION_KEY_HEADER,
        "X-Hermes-Completed",
        "X-Hermes-Partial",
        "X-Hermes-Error",
        "Idempotent-Replayed",
        "X-Should-Retry",
        "Retry-After",
        REQUEST_ID_HEADER,
        WARNING_HEADER,
    )
)

# Where the port may open

Resolve = Callable[[str], Iterable[str]]


def is_loopback(address: str) -> bool:
    """``127.0.0.1``, ``::1``, ``::ffff:127.0.0.1``; not a name."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    return parsed.is_loopback


def _resolve(host: str) -> list[str]:
    return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def is_network_accessible(host: str, resolve: Resolve = _resolve) -> bool:
    """Tell whether others can reach this host; unresolvable names count. Blocks for a name: call it in a thread."""
    bare = host.strip().strip("[]")
    if is_address(bare):
        return not is_loopback(bare)
    try:
        found = list(resolve(bare)) if bare else []
    except (OSError, UnicodeError):
        return True
    return not found or not all(is_loopback(address) for address in found)


def is_guessable(key: str) -> bool:
    """Tell whether a key is too short or too uniform for a port that others can reach."""
    return len(key) < MIN_KEY_CHARS or len(set(key)) < MIN_DIFFERENT_CHARS


async def why_closed(api: ApiConfig, resolve: Resolve = _resolve) -> str:
    """Why the port must not open as it is configured; "" when it may."""
    if api.key and not is_guessable(api.key.reveal()):
        return ""
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            is_open = await asyncio.to_thread(is_network_accessible, api.host, resolve)
    except TimeoutError:
        is_open = True
    if not is_open:
        return ""
    if api.key:
        return (
            f"the API stays closed: {api.host} can be reached from the network, and API_SERVER_KEY is short enough to "
            f"be guessed. Set one of {MIN_KEY_CHARS} or more random characters (openssl rand -hex 32), or "
            "API_SERVER_HOST=127.0.0.1"
        )
    return (
        f"the API stays closed: {api.host or 'its host'} can be reached from the network, and there is no real "
        "API_SERVER_KEY (an example value is none). Set one, or API_SERVER_HOST=127.0.0.1"
    )


# By which names it is called


_OURS = frozenset({"localhost", "host.docker.internal"})


def is_our_host(header: str, api: ApiConfig) -> bool:
    """Whether the Host header names us. A page that had its own name point at us (DNS rebinding) sends that name."""
    return _is_ours(header, api.host, api.allowed_hosts)


@lru_cache(maxsize=64)
def _is_ours(header: str, bound_to: str, allowed: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(f"//{header}")
        host = (parts.hostname or "").rstrip(".").casefold()
        _ = parts.port
    except ValueError:
        return False
    if not host or parts.username is not None or parts.path or parts.query or parts.fragment:
        return False
    bound = bound_to.strip("[]").rstrip(".").casefold()
    if host == bound or host in _OURS or host.endswith(".localhost") or _is_listed(host, allowed):
        return True
    if is_loopback(bound) or bound in _OURS:
        return is_loopback(host)
    # An address cannot be rebound; a name without a dot is one of the local network (a service of Docker Compose).
    return is_address(host) or "." not in host


def _is_listed(host: str, allowed: Iterable[str]) -> bool:
    for name in (entry.casefold().strip("[]").rstrip(".") for entry in allowed):
        if name in ("*", host):
            return True
        if name.startswith(("*.", ".")) and host.endswith(name.removeprefix("*")):
            return True
    return False


# By which pages


def is_allowed_origin(origin: str, host: str, api: ApiConfig) -> bool:
    """A page of our own (same host and port), or one that is listed."""
    if not origin.isascii():
        return False  # no browser sends such a one, and it could not be repeated in a header
    listed = {entry.rstrip("/").casefold() for entry in api.cors_origins}
    if "*" in listed or origin.casefold() in listed:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.casefold() == host.casefold()


def check_host(request: web.Request, api: ApiConfig) -> None:
    host = request.headers.get(hdrs.HOST, "")
    if not is_our_host(host, api):
        raise ApiError(
            403,
            f"The API is not called {host[:100]!r} here. Its owner can add that name to api.allowed_hosts.",
            code="host_not_allowed",
            kind="permission_error",
        )


def check_origin(request: web.Request, api: ApiConfig) -> None:
    origin = request.headers.get(hdrs.ORIGIN)
    if origin is not None and not is_allowed_origin(origin, request.headers.get(hdrs.HOST, ""), api):
        raise ApiError(
            403,
            f"Pages of {origin[:100]!r} may not call this API. Its owner can add them to api.cors_origins.",
            code="origin_not_allowed",
            kind="permission_error",
        )


def is_preflight(request: web.Request) -> bool:
    return (
        request.method == hdrs.METH_OPTIONS
        and hdrs.ORIGIN in request.headers
        and hdrs.ACCESS_CONTROL_REQUEST_METHOD in request.headers
    )


def preflight_answer(request: web.Request) -> web.Response:
    """For an origin that is allowed: what it may send. Which headers a client adds is its own affair."""
    wanted = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, "")
    headers: dict[str, str] = {
        hdrs.ACCESS_CONTROL_ALLOW_METHODS: "GET, POST, PATCH, DELETE",
        hdrs.ACCESS_CONTROL_ALLOW_HEADERS: wanted if wanted and wanted.isascii() else "authorization, content-type",
        hdrs.ACCESS_CONTROL_MAX_AGE: "600",
    }
    if request.headers.get("Access-Control-Request-Private-Network") == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return web.Response(status=204, headers=headers)


def add_headers(api: Callable[[], ApiConfig]) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """Puts the headers on every answer, streams and refusals included, just before it is sent."""

    async def on_prepare(request: web.Request, response: web.StreamResponse) -> None:
        headers = response.headers
        for name, value in SECURITY_HEADERS.items():
            headers.setdefault(name, value)
        headers[hdrs.SERVER] = "hermes"
        request_id = headers.setdefault(REQUEST_ID_HEADER, request.get(REQUEST_ID) or new_id("req"))
        if request.path.startswith("/v1/messages"):
            headers["request-id"] = request_id  # as clients of Anthropic's API read it
        if warnings := request.get(WARNINGS):
            headers[WARNING_HEADER] = one_line("; ".join(warnings), MAX_WARNING).encode("ascii", "replace").decode()
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return
        headers.add(hdrs.VARY, hdrs.ORIGIN)
        if is_allowed_origin(origin, request.headers.get(hdrs.HOST, ""), api()):
            headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"

    return on_prepare


FROM_A_TOOL = (
    "This request comes from a command of the agent, or from a process whose origin is not known. The agent cannot "
    "answer its own questions or change its gateway. Answer in a chat, or send it from a program that you started."
)


async def refuse_tools(request: web.Request, tools: ToolProcesses) -> None:
    """Refuse a change that a command of the agent asks for. Only a peer on this machine costs more than a look."""
    transport = request.transport
    if transport is None:
        raise ApiError(408, "The client left before its turn came.", code="client_gone")
    theirs, ours = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    origin = await asyncio.to_thread(tools.origin_of_connection, theirs[:2], ours[:2])
    if origin in (TOOL, UNKNOWN):
        log.warning("Request refused", extra={"path": request.path, "reason": f"the process is {origin}"})
        raise ApiError(403, FROM_A_TOOL, code="agents_own_process", kind="permission_error")


# How much, and how slowly


async def read_body(request: web.Request, limit: int, *, is_fixed: bool = False) -> None:
    """Read the whole body, so that handlers find it there. One too large, or that never ends, is refused.

    ``is_fixed``: the limit is not that of the settings.
    """
    if not request.can_read_body:
        return
    if (request.content_length or 0) > limit:
        raise too_large(limit, is_fixed=is_fixed)
    try:
        if request.content.is_eof():  # nearly always together with the head
            await request.read()
        else:
            async with asyncio.timeout(BODY_SECONDS):
                await request.read()
    except TimeoutError:
        raise ApiError(
            408,
            f"The body did not arrive within {BODY_SECONDS:.0f} s.",
            code="request_timeout",
            headers={"Connection": "close"},
        ) from None
    except web.HTTPRequestEntityTooLarge:
        raise too_large(limit, is_fixed=is_fixed) from None
    except web.RequestPayloadError:
        raise ApiError(
            400,
            "The body is not what its headers say (Content-Encoding, Transfer-Encoding). Send it as plain JSON.",
            code="invalid_body",
            headers={"Connection": "close"},
        ) from None
    except ConnectionError:
        raise ApiError(408, "The client left before its body had come.", code="client_gone") from None


def too_large(limit: int, *, is_fixed: bool = False) -> ApiError:
    cure = "Send less." if is_fixed else "Send less, or let the owner raise api.max_request_bytes."
    return ApiError(
        413,
        f"The body is larger than {limit:,} bytes. {cure}",
        code="request_too_large",
        headers={"Connection": "close"},
    )
