"""Search the web: select the provider, translate its errors.

Providers are the owner's choice and have fixed addresses, so they are reached as the owner reaches them, a SearXNG on
this machine included. What they find is a stranger's words all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import orjson
from python_socks import ProxyError

from hermes.agent.models.errors import retry_after_of
from hermes.agent.web.search.base import NEEDS, Ask, Hit, Provider, Refusal
from hermes.config import WebConfig
from hermes.core.errors import ToolError
from hermes.core.i18n.failures import describe_failure

MAX_RESULTS = 20
MAX_QUERY_CHARS = 400
ANSWER_BYTES = 4 << 20
SECONDS = 20.0

OpenSession = Callable[[], AbstractAsyncContextManager[aiohttp.ClientSession]]
"""A session by the proxy rules of the moment; leaving it closes it."""


class WebSearch:
    """Asks the provider that is configured."""

    def __init__(
        self,
        config: Callable[[], WebConfig],
        open_session: OpenSession,
        make: Callable[[WebConfig], Sequence[Provider]] | None = None,
    ) -> None:
        self._config = config
        self._open_session = open_session
        self._make = make or configured

    async def search(self, query: str, count: int) -> tuple[str, list[Hit]]:
        """Return the provider's name and what it found; ToolError with a sentence for whatever stands in the way."""
        provider = self._provider()
        found = await self._answer(provider, provider.ask(query, count))
        try:
            return provider.name, provider.hits(found)[:count]
        except (KeyError, TypeError, AttributeError):
            raise ToolError(f"{provider.name} sent an answer that cannot be read. Try again later.") from None

    def _provider(self) -> Provider:
        config = self._config()
        ready = {provider.name: provider for provider in self._make(config)}
        wanted = config.search_provider
        if wanted and wanted not in ready:
            raise ToolError(f"web.search_provider is {wanted}, and that has no {NEEDS[wanted]}. The owner sets it.")
        if not ready:
            raise ToolError(
                "No search provider is configured. The owner sets one of BRAVE_API_KEY, TAVILY_API_KEY or "
                "SEARXNG_URL; until then, web_extract reads addresses that are known."
            )
        return ready[wanted] if wanted else next(iter(ready.values()))

    async def _answer(self, provider: Provider, ask: Ask) -> Any:
        try:
            async with asyncio.timeout(SECONDS), self._open_session() as http:
                status, headers, body = await _send(http, ask)
        except TimeoutError:
            raise ToolError(f"{provider.name} did not answer within {SECONDS:g} s. Try again later.") from None
        except (aiohttp.ClientError, ProxyError, OSError) as error:
            # Only the kind of error: its text may hold an address with a password.
            raise ToolError(f"{provider.name} could not be reached ({describe_failure(error)}).") from None
        if status != 200:
            raise ToolError(_sentence(provider, Refusal(status, headers, body[:4000].decode("utf-8", "replace"))))
        try:
            return await asyncio.to_thread(orjson.loads, body)
        except orjson.JSONDecodeError:
            raise ToolError(f"{provider.name} sent something that is not JSON. Check its address.") from None


def configured(config: WebConfig) -> list[Provider]:
    """Those that have what they need, in the order of choice."""
    from hermes.agent.web.search.brave import Brave
    from hermes.agent.web.search.searxng import SearXng
    from hermes.agent.web.search.tavily import Tavily

    ready: list[Provider] = []
    if config.brave_api_key:
        ready.append(Brave(config.brave_api_key))
    if config.tavily_api_key:
        ready.append(Tavily(config.tavily_api_key))
    if config.searxng_url:
        ready.append(SearXng(config.searxng_url))
    return ready


async def _send(http: aiohttp.ClientSession, ask: Ask) -> tuple[int, Mapping[str, str], bytes]:
    headers = {"Accept": "application/json", **ask.headers}
    # A redirect is never followed: it would take the key along.
    async with http.request(
        ask.method, ask.url, params=ask.params or None, headers=headers, json=ask.body, allow_redirects=False
    ) as response:
        body = bytearray()
        async for data in response.content.iter_any():
            body += data
            if len(body) > ANSWER_BYTES:
                raise ToolError("The search provider sent far more than an answer.")
        return response.status, response.headers, bytes(body)


def _sentence(provider: Provider, refusal: Refusal) -> str:
    if own := provider.refused(refusal):
        return own
    match refusal.status:
        case 401 | 403:
            return f"{provider.name} does not accept the key. The owner checks {NEEDS[provider.name]}."
        case 429:
            wait = retry_after_of(refusal.headers)
            return f"{provider.name} says that too many searches came. Try again " + (
                f"in {wait:.0f} s." if wait else "in a minute."
            )
        case status if 300 <= status < 400:
            return f"{provider.name} has moved: its address needs to be set anew."
        case status if status >= 500:
            return f"{provider.name} has a problem of its own (HTTP {status}). Try again later."
        case status:
            return f"{provider.name} refused the search (HTTP {status}). Try other words."
