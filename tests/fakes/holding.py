"""What a process holds on to, for tests that nothing is left behind."""

from __future__ import annotations

import threading


def lasting_threads() -> int:
    """Threads besides the workers of the event loop's pool: a busy machine starts some more of these and keeps them."""
    return sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())
