"""Request a restart: running turns finish, or the next process resumes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PAUSE_SECONDS = 0.5  # so that whoever asked is answered, and the answer recorded, before the end begins


class RestartRequest:
    """``ask`` hands over to the supervisor; None where nobody would start us again."""

    def __init__(self, ask: Callable[[str], None] | None, started_at: float) -> None:
        self._ask = ask
        self._started_at = started_at

    def is_over(self, asked_at: float) -> bool:
        """Whether what was asked then has happened: this process is younger."""
        return asked_at < self._started_at

    def begin(self, reason: str) -> bool:
        """Restart in a moment. False: nobody keeps this gateway up, so it would only end."""
        if self._ask is None:
            return False
        asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._ask, reason)
        return True
