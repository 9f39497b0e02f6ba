"""Probe one account without the gateway: sign in, send a test message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes.services.adapters import probe
from hermes.services.adapters.probe import Tried

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.core.keys import Target
    from hermes.core.manifest import Manifest


def describe(manifest: Manifest, config: Config, account: str, values: Mapping[str, Any]) -> Tried:
    """Ask the platform who we are, with these values in place of the configured ones."""
    return asyncio.run(probe.described(manifest, config, account, values))


def deliver(manifest: Manifest, config: Config, target: Target, text: str) -> float:
    """Send one message past the gateway; the seconds it took. Raises GatewayError in words."""
    return asyncio.run(probe.delivered(manifest, config, target, text))
