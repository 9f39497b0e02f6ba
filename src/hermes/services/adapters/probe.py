"""Probe one account beside the supervisor: sign in, send a test message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, ConflictError, CredentialsError, GatewayError, PlatformError, RejectedError

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.core.keys import Target
    from hermes.core.manifest import AdapterParts, Manifest
    from hermes.core.ports import Adapter

TRY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Tried:
    """``name`` is who the platform says we are. ``is_refused``: it, or the value itself, says no; else nothing is
    known of the value, since nobody answered. ``cure``: the value is right, and this has to be done elsewhere."""

    name: str = ""
    seconds: float = 0.0
    failure: str = ""
    is_refused: bool = False
    cure: str = ""


async def described(manifest: Manifest, config: Config, account: str, values: Mapping[str, Any]) -> Tried:
    """Ask the platform who we are, with these values in place of the configured ones."""
    from hermes.core.ports import Describes

    began = time.monotonic()
    try:
        async with asyncio.timeout(TRY_SECONDS), _adapter(manifest, config, account, values) as adapter:
            name = await adapter.describe() if isinstance(adapter, Describes) else ""
    except TimeoutError:
        return Tried(failure=f"no answer within {TRY_SECONDS:.0f} s")
    except CredentialsError as error:
        return Tried(failure=str(error), is_refused=True, cure=error.cure)
    except (ConfigError, ConflictError, RejectedError) as error:
        return Tried(failure=str(error), is_refused=True)
    except PlatformError as error:
        return Tried(failure=str(error))
    return Tried(name, time.monotonic() - began)


async def delivered(manifest: Manifest, config: Config, target: Target, text: str) -> float:
    """Send one message past the gateway; the seconds it took. Raises GatewayError in words."""
    from hermes.core.messages import OutboundMessage

    began = time.monotonic()
    try:
        async with asyncio.timeout(TRY_SECONDS), _adapter(manifest, config, target.account, {}) as adapter:
            await adapter.send(OutboundMessage(target, text))
    except TimeoutError:
        raise GatewayError(f"{manifest.title} did not answer within {TRY_SECONDS:.0f} s.") from None
    return time.monotonic() - began


@asynccontextmanager
async def _adapter(
    manifest: Manifest, config: Config, account: str, values: Mapping[str, Any]
) -> AsyncIterator[Adapter]:
    from hermes.services.adapters.registry import missing_package

    async with adapter_parts(manifest, config, account, values) as parts:
        try:
            yield manifest.build(parts)
        except ImportError as error:
            raise ConfigError(missing_package(manifest, error)) from error


@asynccontextmanager
async def adapter_parts(
    manifest: Manifest, config: Config, account: str, values: Mapping[str, Any]
) -> AsyncIterator[AdapterParts]:
    """Build what an account's adapter is given, with these values."""
    from hermes.core.manifest import AccountResource, AdapterParts
    from hermes.services.http import ProxyRules, make_session

    known = config.account(manifest.id, account) or config.account(manifest.id)
    rules = ProxyRules.of(config.proxies, known.proxy if known else "")
    kept = AccountResource()
    async with make_session(rules) as http:
        parts = AdapterParts(
            account,
            {**(known.values if known else {}), **values},
            http,
            lambda: None,
            {},
            folder=config.home / manifest.id,
            kept=kept,
            proxy_for=lambda url: rules.proxy_for(url) or "",
        )
        try:
            yield parts
        finally:
            await kept.close()
