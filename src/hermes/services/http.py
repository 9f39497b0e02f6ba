"""Open outgoing HTTP sessions, and decide which proxy a call goes through."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection
from yarl import URL

from hermes.config import ProxyConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import PlatformError

_LOOPBACK = ("localhost", "127.0.0.0/8", "::1")
_SECURE = frozenset({"https", "wss"})


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """The proxy of each address; ``own`` (`<NAME>_PROXY`) wins. Loopback is direct unless ``no_proxy`` omits it."""

    own: str = field(default="", repr=False)
    https: str = field(default="", repr=False)
    http: str = field(default="", repr=False)
    all: str = field(default="", repr=False)
    no_proxy: str = ""

    @classmethod
    def of(cls, proxies: ProxyConfig, own: str = "") -> ProxyRules:
        return cls(own, proxies.https, proxies.http, proxies.all, proxies.no_proxy)

    def proxy_for(self, url: str) -> str | None:
        """The proxy an address is reached through, or None for directly."""
        parts = urlsplit(url)
        if is_direct(parts.hostname or "", parts.port, self.no_proxy):
            return None
        by_scheme = self.https if parts.scheme in _SECURE else self.http
        return self.own or by_scheme or self.all or None


def is_socks(proxy: str) -> bool:
    return proxy.startswith(("socks5://", "socks5h://"))


def is_direct(host: str, port: int | None, no_proxy: str) -> bool:
    """Whether NO_PROXY names this host: itself, a domain above it, an address range, or `*`."""
    rules = [rule.strip().casefold() for rule in no_proxy.split(",")] if no_proxy.strip() else _LOOPBACK
    host = host.casefold().strip("[]").rstrip(".")
    return any(_matches(host, port, rule) for rule in rules if rule)


def _matches(host: str, port: int | None, rule: str) -> bool:
    if rule == "*":
        return True
    network = _network(rule.strip("[]"))
    if network is not None:
        try:
            return ipaddress.ip_address(host) in network
        except ValueError:  # the host is a name, and names are not resolved here
            return False
    name, _, rule_port = rule.rpartition(":") if rule.rpartition(":")[2].isdigit() else (rule, "", "")
    if rule_port and str(port) != rule_port:
        return False
    name = name.strip("[]").removeprefix("*").removeprefix(".")
    return host == name or host.endswith(f".{name}")


def _network(rule: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return None


def make_session(
    rules: ProxyRules | None = None,
    *,
    limit: int = 100,
    limit_per_host: int = 0,
    connect_seconds: float = 15.0,
    total_seconds: float | None = 300.0,
    headers: Mapping[str, str] | None = None,
    auto_decompress: bool = True,
    check: Callable[[], None] | None = None,
) -> aiohttp.ClientSession:
    """Open a session that goes through the proxies of ``rules``. The caller closes it.

    It keeps no cookies and reads no environment of its own. One session may reach some hosts directly
    and others through an HTTP or a SOCKS5 proxy. A proxy that cannot be reached raises
    ``aiohttp.ClientProxyConnectionError``, as nothing was sent. ``check`` is called right before each request leaves:
    what it raises keeps the request back.
    """
    rules = rules or ProxyRules()
    proxies = [proxy for proxy in (rules.own, rules.https, rules.http, rules.all) if proxy]
    options: dict[str, Any] = {"limit": limit, "limit_per_host": limit_per_host, "ttl_dns_cache": 300}
    if any(map(is_socks, proxies)):
        from hermes.services.socks import SocksConnector  # only when used: few people have a SOCKS proxy

        connector: aiohttp.TCPConnector = SocksConnector(rules.proxy_for, **options)
    else:
        connector = aiohttp.TCPConnector(**options)
    proxied = () if all(map(is_socks, proxies)) else (_through_http_proxy(rules),)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=total_seconds, sock_connect=connect_seconds),
        headers=headers,
        cookie_jar=aiohttp.DummyCookieJar(),
        json_serialize=lambda value: orjson.dumps(value).decode(),
        auto_decompress=auto_decompress,
        trust_env=False,
        middlewares=proxied,
        request_class=aiohttp.ClientRequest if check is None else _request_class(check),
    )


def _through_http_proxy(rules: ProxyRules) -> aiohttp.ClientMiddlewareType:
    async def send(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        # Asked for every hop, so that a redirect to another host takes that host's way.
        proxy = rules.proxy_for(str(request.url))
        if proxy is not None and not is_socks(proxy):
            request.update_proxy(URL(proxy), None, None)
        return await handler(request)

    return send


def _request_class(check: Callable[[], None]) -> type[aiohttp.ClientRequest]:
    class CheckedRequest(aiohttp.ClientRequest):
        """Is checked once it has a connection, and again when its body is written, one step of the loop later."""

        async def send(self, conn: Connection) -> aiohttp.ClientResponse:
            check()
            return await super().send(conn)

        async def write_bytes(self, writer: AbstractStreamWriter, conn: Connection, *rest: Any) -> None:
            try:
                check()
            except PlatformError:
                conn.close()  # the request fails as one whose line broke; its head has not left either
                return
            await super().write_bytes(writer, conn, *rest)

    return CheckedRequest
