"""Connect through a SOCKS5 proxy, which also resolves the names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp_socks import ProxyConnectionError, ProxyConnector, ProxyError, ProxyTimeoutError

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.tracing import Trace


class SocksConnector(aiohttp.TCPConnector):
    """Pools connections as usual, and opens those that ``proxy_for`` names a SOCKS proxy for through it."""

    def __init__(self, proxy_for: Callable[[str], str | None], **options: Any) -> None:
        super().__init__(**options)
        self._proxy_for = proxy_for

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        proxy = self._proxy_for(str(req.url))
        if proxy is None or not proxy.startswith("socks"):
            return await super()._create_connection(req, traces, timeout)
        # It only opens the connection, which is kept in our own pool; so there is nothing to close.
        opener = ProxyConnector.from_url(proxy.replace("socks5h://", "socks5://", 1))
        try:
            return await opener._create_connection(req, traces, timeout)
        except (ProxyError, ProxyConnectionError, ProxyTimeoutError) as error:
            # The same type as for HTTP proxies, so that callers know that nothing was sent.
            reason = OSError(None, f"the SOCKS proxy: {error}")
            raise aiohttp.ClientProxyConnectionError(req.connection_key, reason) from error
