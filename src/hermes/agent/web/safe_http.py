"""Fetch URLs a model chose: checked addresses, bounded, no cookies.

What was checked is what is connected to. The name is looked up here, once for each hop; the connector gets those
addresses and no others, and the socket is refused if it is to go anywhere else.
"""

from __future__ import annotations

import asyncio
import re
import socket
import zlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from python_socks import ProxyError
from yarl import URL

from hermes import __version__
from hermes.agent.models.errors import retry_after_of
from hermes.config import WebConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.failures import describe_failure
from hermes.core.url_policy import NO_HOSTS, AllowedHosts, IpAddress, WebAddress, check_answers, read_url

MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONNECT_SECONDS = 10.0
UNPACK_STEP = 256 * 1024
_PLAIN_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)
_PLAIN_WORD = re.compile(r"[\w.:+-]{1,40}", re.ASCII)
HEADERS = {
    "User-Agent": f"Hermes/{__version__}",
    "Accept": "text/html,application/xhtml+xml,application/pdf,application/json,text/*;q=0.9,*/*;q=0.5",
    # Nothing but gzip, which can be unpacked step by step and so be stopped in time.
    "Accept-Encoding": "gzip",
}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, in figures; OSError when it has none."""

Place = Callable[[str, int], tuple[str, int]]
"""Where the machine behind a checked address and port is really reached: that address and port, except in tests."""

OpenProxied = Callable[[str], aiohttp.ClientSession | None]
"""A session through the proxy that this address takes, or None when it is reached directly. Who asks, closes it.

It keeps bodies as they came (``auto_decompress=False``).
"""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came. ``url`` is where it came from in the end; ``is_cut``: there was more than is read of one page."""

    url: str
    content_type: str
    charset: str
    body: bytes
    is_cut: bool = False


async def system_resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in found]


class GuardedWeb:
    """Fetches addresses that a model chose. Opens a session for each hop, so nothing is left of one for the next."""

    def __init__(
        self,
        config: Callable[[], WebConfig],
        open_proxied: OpenProxied = lambda _url: None,
        *,
        resolve: Resolve = system_resolve,
        place: Place = lambda host, port: (host, port),
    ) -> None:
        self._config = config
        self._open_proxied = open_proxied
        self._resolve = resolve
        self._place = place

    async def fetch(self, url: str, *, types: Collection[str], is_owner: bool = False) -> Fetched:
        """Get one address or raise a ToolError. ``types`` are prefixes (``text/``); ``is_owner`` opens own hosts."""
        config = self._config()
        hop = _Hop(config, AllowedHosts(config.allow_private_hosts) if is_owner else NO_HOSTS, types)
        try:
            async with asyncio.timeout(config.timeout_seconds):
                for _ in range(MAX_REDIRECTS + 1):
                    found = await self._get(url, hop)
                    if isinstance(found, Fetched):
                        return found
                    url = found
        except TimeoutError:
            raise ToolError(f"The page did not come within {config.timeout_seconds:g} s.") from None
        raise ToolError(f"The address leads on and on: more than {MAX_REDIRECTS} redirects.")

    async def _get(self, url: str, hop: _Hop) -> Fetched | str:
        """One hop: what came, or the address it leads on to."""
        address = read_url(url, ports=hop.config.ports, allowed=hop.allowed)
        target = URL(address.url)
        if target.host != address.host or target.port != address.port:  # the library must read it as we did
            raise ToolError("The address is written oddly: its host can be read in two ways.")
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(await self._session(address, hop))
            try:
                response = await stack.enter_async_context(http.get(target, headers=HEADERS, allow_redirects=False))
                if response.status in REDIRECTS and (leads_to := response.headers.get("Location")):
                    return _joined(target, leads_to)
                return await hop.read(address, response)
            except (aiohttp.ClientError, ProxyError, OSError) as error:
                raise ToolError(_unreachable(address, error)) from None

    async def _session(self, address: WebAddress, hop: _Hop) -> aiohttp.ClientSession:
        """Open a session to this address after checking its host.

        A proxy looks names up itself: which machine it then connects to is out of our hands. So there the check is as
        good as our own look-up, and a name that only the proxy can look up is let through to it. Literal addresses
        and names of our own network were refused before, with or without a proxy.
        """
        proxied = self._open_proxied(address.url)
        try:
            ips = await self._checked(address, hop, may_be_unknown=proxied is not None)
        except BaseException:
            if proxied is not None:
                await proxied.close()
            raise
        if proxied is not None:
            return proxied
        return aiohttp.ClientSession(
            connector=_pinned([self._place(str(ip), address.port) for ip in ips]),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def _checked(self, address: WebAddress, hop: _Hop, *, may_be_unknown: bool) -> tuple[IpAddress, ...]:
        if address.ip is not None:
            return (address.ip,)
        try:
            answers = await self._resolve(address.host, address.port)
        except OSError:
            if may_be_unknown:
                return ()
            raise ToolError(f"There is no host {address.host!r}, or its name cannot be looked up now.") from None
        is_allowed = hop.allowed.allow(address, hop.config.ports)
        return check_answers(address, answers, is_allowed=is_allowed)


@dataclass(frozen=True, slots=True)
class _Hop:
    """What holds for every hop of one fetch."""

    config: WebConfig
    allowed: AllowedHosts
    types: Collection[str]

    async def read(self, address: WebAddress, response: aiohttp.ClientResponse) -> Fetched:
        if response.status != 200:
            raise ToolError(_refused(address, response))
        content_type = response.content_type if response.headers.get("Content-Type") else ""
        if content_type and not content_type.startswith(tuple(self.types)):
            shown = content_type if _PLAIN_TYPE.fullmatch(content_type) else "of an odd type"
            raise ToolError(f"What is at this address is {shown}, which this tool cannot read.")
        body, is_cut = await _body(response, self.config.max_bytes)
        charset = response.charset or ""
        return Fetched(address.url, content_type, charset if _PLAIN_WORD.fullmatch(charset) else "", body, is_cut)


async def _body(response: aiohttp.ClientResponse, most: int) -> tuple[bytes, bool]:
    """The body, unpacked, and whether it was cut off. What is beyond the limit is never held, packed or unpacked."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise ToolError(f"The page is packed as {encoding[:20]!r}, which was not asked for and is not unpacked.")
    unpacker = _Gunzip() if encoding.endswith("gzip") else None
    body = bytearray()
    came = 0
    async for data in response.content.iter_any():
        came += len(data)
        if unpacker is None:
            body += data
        else:
            await unpacker.feed(data, body, most)
        if len(body) > most or came > most:
            return bytes(body[:most]), True
    if unpacker is not None and not unpacker.is_whole:
        raise ToolError("The page broke off in the middle.")
    return bytes(body), False


class _Gunzip:
    """Unpacks in small steps, so that neither the memory nor the loop suffers from a body that is nearly all zeros."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self.is_whole = False

    async def feed(self, data: bytes, into: bytearray, most: int) -> None:
        try:
            while data and len(into) <= most:
                into += self._member.decompress(data, UNPACK_STEP)
                data = self._member.unconsumed_tail
                self.is_whole = self._member.eof
                if self._member.eof:
                    data = self._member.unused_data.lstrip(b"\0")
                    self._member = zlib.decompressobj(wbits=31)
                await asyncio.sleep(0)
        except zlib.error:
            raise ToolError("The page says it is packed with gzip, and that cannot be unpacked.") from None


class _Pinned(AbstractResolver):
    """Knows one host: the one that was checked."""

    def __init__(self, places: Sequence[tuple[str, int]]) -> None:
        self._places = places

    async def resolve(
        self,
        host: str,
        port: int = 0,  # noqa: ARG002 - the signature is aiohttp's; the port was decided with the address
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the same
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=ip,
                port=at,
                family=socket.AF_INET6 if ":" in ip else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for ip, at in self._places
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _pinned(places: Sequence[tuple[str, int]]) -> aiohttp.TCPConnector:
    """Return a connector that can reach these places and no others."""

    def open_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, where = info
        if tuple(where[:2]) not in places:
            raise OSError(None, "this address was not checked")  # cannot happen; if it does, nothing is sent
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        resolver=_Pinned(places), use_dns_cache=False, force_close=True, socket_factory=open_socket, limit=1
    )


def _joined(base: URL, leads_to: str) -> str:
    """Where a redirect leads. It is read by the same rules as any other address, so it is only put together here."""
    try:
        # A bare path stays on this host; everything else brings its own and is judged as it was written.
        if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", leads_to):
            return leads_to
        if leads_to.startswith(("//", "/\\", "\\")):
            return f"{base.scheme}:{leads_to}"
        return str(base.join(URL(leads_to)))
    except ValueError:
        raise ToolError("The address leads on to something that is no address.") from None


def _refused(address: WebAddress, response: aiohttp.ClientResponse) -> str:
    # Nothing of what a stranger chose but the host: a sentence of ours stands in no frame.
    try:
        status = f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        status = str(response.status)
    text = f"{address.host_in_url} answered {status}."
    if response.status in (401, 403, 407):
        return f"{text} It is not open to everybody; try another source."
    if response.status == 429:
        wait = retry_after_of(response.headers)
        return f"{text} Try again in {wait:.0f} s." if wait else f"{text} Try again later."
    return text


def _unreachable(address: WebAddress, error: Exception) -> str:
    """In words of ours: the text of such an error may name a proxy with its password."""
    if isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError | ProxyError):
        return f"{address.host_in_url} could not be reached: the proxy of this gateway did not let us through."
    if isinstance(error, TimeoutError):
        return f"{address.host_in_url} did not answer."
    if isinstance(error, aiohttp.ClientSSLError):
        return f"{address.host_in_url} could not be reached: its certificate is not valid for it."
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return f"{address.host_in_url} broke off in the middle of its answer."
    return f"{address.host_in_url} could not be reached ({describe_failure(error)})."
