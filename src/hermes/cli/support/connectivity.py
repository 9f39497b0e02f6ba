"""Probe each host of the configuration: status, latency, proxy."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hermes.core.dataclasses import dataclass
from hermes.core.i18n.failures import describe_failure

if TYPE_CHECKING:
    from hermes.config import Config, Loaded, ProviderConfig
    from hermes.services.http import ProxyRules

REACH_SECONDS = 6.0
MAX_ANSWER_BYTES = 2_000_000
MAX_ADDRESS_CHARS = 300
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Probe:
    """``name`` is "model", or a platform's account."""

    name: str
    url: str
    rules: ProxyRules
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """What came of a call. ``failure`` in words when nothing answered; no password is in any text.

    ``moved_to``: the address that a redirect names. ``clock_ahead``: how many seconds our clock is ahead.
    """

    host: str
    shown: str
    proxy: str = ""
    status: int = 0
    milliseconds: float = 0.0
    models: frozenset[str] = frozenset()
    is_page: bool = False  # HTML: a web site answered, not an API
    failure: str = ""
    moved_to: str = ""
    clock_ahead: float | None = None


def reach_all(loaded: Loaded) -> dict[str, Reached]:
    """Call every host at once; all together take no longer than the slowest, and that at most 6 s."""

    async def reach(calls: list[Probe]) -> list[Reached]:
        return await asyncio.gather(*map(_reach, calls))

    calls = [*_model_call(loaded), *_platform_calls(loaded)]
    found = asyncio.run(reach(calls)) if calls else []
    return {call.name: reached for call, reached in zip(calls, found, strict=True)}


def reach_models(config: Config, provider: ProviderConfig, api_mode: str, key: str) -> Reached:
    """Ask a provider for its list of models, with this key or with none."""
    from hermes.services.http import ProxyRules

    url, headers = list_of(api_mode, provider.base_url.rstrip("/"), key)
    return asyncio.run(_reach(Probe("model", url, ProxyRules.of(config.proxies, provider.proxy), headers)))


def _model_call(loaded: Loaded) -> Iterator[Probe]:
    from hermes.config import EMBEDDED
    from hermes.services.http import ProxyRules

    config = loaded.config
    provider = config.providers.get(config.model.provider)
    if config.model.provider == EMBEDDED or provider is None:
        return
    base_url = config.model.base_url or provider.base_url
    if base_url:
        key = provider.api_key.reveal() if provider.api_key else ""
        url, headers = list_of(config.model.api_mode, base_url.rstrip("/"), key)
        yield Probe("model", url, ProxyRules.of(config.proxies, provider.proxy), headers)


def list_of(api_mode: str, base_url: str, key: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The address of a provider's list of models, and what goes with the call."""
    if api_mode != "anthropic_messages":
        return f"{base_url}/models", (("Authorization", f"Bearer {key}"),) if key else ()
    from hermes.agent.models.anthropic_messages import AnthropicDialect

    dialect = AnthropicDialect("")
    return dialect.url(base_url).removesuffix("messages") + "models", tuple(dialect.headers(key).items())


def _platform_calls(loaded: Loaded) -> Iterator[Probe]:
    from hermes.services.http import ProxyRules

    for platform, accounts in loaded.config.platforms.items():
        for name, account in accounts.items():
            if not (account.is_mentioned and account.is_ready):
                continue
            rules = ProxyRules.of(loaded.config.proxies, account.proxy)
            for key, value in account.values.items():
                if key.endswith("url") and isinstance(value, str) and value.startswith("http"):
                    yield Probe(f"{platform}@{name} {key}", value, rules)


async def _reach(call: Probe) -> Reached:
    import aiohttp

    from hermes.config.explain import without_password
    from hermes.services.http import make_session

    parts = urlsplit(call.url)
    proxy = call.rules.proxy_for(call.url) or ""
    target = Reached(parts.netloc.rpartition("@")[2], without_password(call.url), without_password(proxy))
    began = time.monotonic()
    try:
        async with (
            asyncio.timeout(REACH_SECONDS),
            make_session(call.rules) as session,
            session.get(call.url, headers=dict(call.headers), allow_redirects=False) as response,
        ):
            milliseconds = (time.monotonic() - began) * 1000
            models = _models(await response.content.read(MAX_ANSWER_BYTES)) if call.name == "model" else frozenset()
            is_page = response.content_type == "text/html"
            location = response.headers.get("Location", "") if response.status in REDIRECTS else ""
            return replace(
                target,
                status=response.status,
                milliseconds=milliseconds,
                models=models,
                is_page=is_page,
                moved_to=without_password(location[:MAX_ADDRESS_CHARS].partition("?")[0]) if location else "",
                clock_ahead=clock_ahead(response.headers.get("Date", ""), time.time()),
            )
    except TimeoutError:
        return replace(target, failure=f"no answer within {REACH_SECONDS:.0f} s")
    except aiohttp.ClientProxyConnectionError:
        return replace(target, failure="the proxy does not answer")
    except aiohttp.ClientConnectorDNSError:
        return replace(target, failure="its name is not known; is the network up?")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # A cause may repeat the address with its password, so only what the system says of it is shown.
        number = error.errno if isinstance(error, OSError) else None
        return replace(target, failure=os.strerror(number) if number else describe_failure(error))


def clock_ahead(date: str, now: float) -> float | None:
    """By how much our clock is ahead of the server's, by its ``Date`` header, to the second; None without one."""
    from email.utils import parsedate_to_datetime

    try:
        return round(now - parsedate_to_datetime(date).timestamp())
    except (ValueError, TypeError):
        return None


def _models(body: bytes) -> frozenset[str]:
    """The ids of a model list; nothing when it is not one, or is longer than we read."""
    import json

    try:
        return frozenset(str(model["id"]) for model in json.loads(body)["data"])
    except (ValueError, KeyError, TypeError):
        return frozenset()
