"""The end of the server: calls in hand are ended in words, where cutting the line would tell a client nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from hermes.servers.api.errors import ApiError

GRACE_SECONDS = 0.5
LOOK_SECONDS = 0.02


class OpenRequests:
    """``app.on_shutdown.append(calls.end)``, and ``with calls.waiting():`` around what may take long."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """ApiError 503 is raised inside when the server closes; any other cancellation travels on."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("A call is waited for in a task.")
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._ended:
                raise
            task.uncancel()
            raise gateway_stops() from None
        finally:
            self._waiting.discard(task)
            self._ended.discard(task)

    async def end(self, _app: web.Application) -> None:
        """Give answers a moment to come; then end what still waits, and see it out."""
        await self._until_none(GRACE_SECONDS)
        for task in self._waiting:
            self._ended.add(task)
            task.cancel()
        await self._until_none(GRACE_SECONDS)

    async def _until_none(self, seconds: float) -> None:
        for _ in range(int(seconds / LOOK_SECONDS)):
            if not self._waiting:
                return
            await asyncio.sleep(LOOK_SECONDS)


def gateway_stops() -> ApiError:
    message = "The gateway is stopping. This answer ends here; ask again in a moment."
    return ApiError(503, message, code="gateway_stopping", kind="server_error", headers={"Retry-After": "2"})
