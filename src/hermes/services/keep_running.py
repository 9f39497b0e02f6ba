"""Run a background task forever: if it fails, log it and restart it with backoff."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

log = logging.getLogger(__name__)

Run = Callable[[], Coroutine[Any, Any, None]]

PAUSE_SECONDS = (1.0, 5.0, 30.0, 60.0)
STEADY_SECONDS = 600.0
"""A part that has run so long begins with the shortest pause again."""


async def keep_running(name: str, run: Run, troubles: list[str], pauses: Sequence[float] = PAUSE_SECONDS) -> None:
    """Run until done or cancelled. ``troubles``, shown in status, name a failed task."""
    loop = asyncio.get_running_loop()
    breaks = 0
    while True:
        began = loop.time()
        try:
            return await run()
        except (Exception, asyncio.CancelledError):  # a library may cancel what it made itself
            task = asyncio.current_task()
            if task is not None and task.cancelling() > 0:
                raise  # we are to end: it broke while it tidied up
            breaks = 0 if loop.time() - began > STEADY_SECONDS else breaks
            pause = pauses[min(breaks, len(pauses) - 1)]
            breaks += 1
            log.exception("Background task broke", extra={"part": name, "again_in": pause})
            text = f"{name} failed and starts again. The reason: hermes logs --level error"
        troubles.append(text)
        try:
            await asyncio.sleep(pause)
        finally:
            with contextlib.suppress(ValueError):  # too many others came since
                troubles.remove(text)
