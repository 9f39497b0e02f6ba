"""Classify failed HTTP calls: what happened, and whether anything was sent."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError
from yarl import URL

from hermes.core.errors import OutcomeUnknownError, PlatformError, RejectedError, UnreachableError

CONNECT_SECONDS = 10.0
CLOCK_GRAIN_SECONDS = 5.0

NO_PROXY = (ProxyConnectionError, ProxyTimeoutError, ProxyError)
"""What a SOCKS proxy that could not connect is told as; these share no base."""

BROKEN = (aiohttp.ClientError, OSError, *NO_PROXY)
"""No answer came, or not all of it. A TimeoutError is an OSError."""

CUT = (aiohttp.ClientError, TimeoutError, ConnectionError, *NO_PROXY)
"""The same while a download is saved: a disk that is full is an OSError too, and not the platform's."""

_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    *NO_PROXY,
)


def nothing_was_sent(error: BaseException) -> bool:
    """True when the connection never came to be: refused, no such host, a proxy that said no."""
    return isinstance(error, _NEVER_CONNECTED)


def soften(error: PlatformError, *, shows: bool) -> PlatformError:
    """Let a call with an unknown outcome be repeated when it shows nothing to anybody."""
    return UnreachableError(str(error)) if isinstance(error, OutcomeUnknownError) and not shows else error


def own_address(address: str, name: str, *, root: str, hosts: tuple[str, ...], platform: str) -> URL:
    """Where a file lies, if that is at the platform itself: nobody may make us look around at home, or see the token.

    ``root`` is the address of its API, ``hosts`` how the names of its other ones end. Raises RejectedError.
    """
    try:
        url = URL(address)
        host = url.host or ""
    except ValueError:
        raise RejectedError(f"{platform} does not say where {name} is.") from None
    is_own = host == URL(root).host or (url.scheme == "https" and f".{host}".endswith(hosts))
    if url.scheme not in ("http", "https") or not is_own:
        raise RejectedError(f"{name} is kept outside of {platform}, at {host or 'no address'}, and was not fetched.")
    return url


def within(seconds: float) -> aiohttp.ClientTimeout:
    """The whole call within so many seconds, the connection within ten of them."""
    return aiohttp.ClientTimeout(total=seconds, connect=min(CONNECT_SECONDS, seconds))


def clock_ahead(date: str | None, now: float) -> float:
    """Return how many seconds the platform's clock (``Date`` header) is ahead of ours: it names messages by it."""
    try:
        ahead = parsedate_to_datetime(date or "").timestamp() - now
    except (ValueError, OverflowError):
        return 0.0
    return ahead if abs(ahead) > CLOCK_GRAIN_SECONDS else 0.0
