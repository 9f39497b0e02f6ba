"""Real clients, unpatched, over real HTTP to a gateway with a scripted model."""

from __future__ import annotations

from tests.e2e.api.conftest import sdk, start_sdk
from tests.integration.conftest import start

__all__ = ["sdk", "start", "start_sdk"]
