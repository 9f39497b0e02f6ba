"""Attack the same gateway that the integration tests start: real store, real sockets, a scripted model."""

from __future__ import annotations

from tests.integration.conftest import start

__all__ = ["start"]
