"""A client that leaves: its turn is stopped, unless the client can come back for the answer or says otherwise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from hermes.servers.api import results
from hermes.servers.api.errors import bad_request
from hermes.servers.api.idempotency import HEADER as IDEMPOTENCY_KEY
from hermes.servers.api.idempotency import Attempt, Attempts, is_gone
from hermes.services.requests.requests import RequestHandle, Requests

ON_DISCONNECT_HEADER = "X-Hermes-On-Disconnect"
LOOK_FOR_CLIENT_SECONDS = 0.2
TRIES_TO_STOP = 10

log = logging.getLogger(__name__)


def stops_when_left(request: web.Request, *, stops: bool) -> bool:
    """Tell whether leaving stops the turn. ``stops``: it does unless the request has a key or a header against it."""
    goes_on = not stops or IDEMPOTENCY_KEY in request.headers
    choice = request.headers.get(ON_DISCONNECT_HEADER, "continue" if goes_on else "stop").strip().lower()
    if choice not in ("continue", "stop"):
        message = f"{ON_DISCONNECT_HEADER} is continue or stop."
        raise bad_request(message, code="invalid_value", param=ON_DISCONNECT_HEADER)
    return choice == "stop"


@asynccontextmanager
async def minding_the_client(
    requests: Requests, attempts: Attempts, attempt: Attempt, handle: RequestHandle
) -> AsyncIterator[None]:
    """Stop the turn when its client goes, unless another client has come for the same answer."""

    async def stop_when_left() -> None:
        while not is_gone(attempt.request):  # noqa: ASYNC110 - the server tells nobody when a client goes
            await asyncio.sleep(LOOK_FOR_CLIENT_SECONDS)
        await stop()

    async def stop() -> None:
        """Ask until it has ended: a request on its way from the queue into its turn is in neither for a moment.

        A turn that waits for an answer does nothing, and its question can be answered with the next message.
        """
        for _ in range(TRIES_TO_STOP):
            state = await requests.state_of(handle.event_id)
            if state is not None and state.status == "waiting_approval":
                return
            if attempt.is_delivered or attempts.is_followed_elsewhere(attempt):
                return
            attempt.is_stopping = True
            state = await requests.stop(handle.event_id)
            if state is None or state.status in results.FINAL_STATUS:
                return
            await asyncio.sleep(LOOK_FOR_CLIENT_SECONDS)
        log.warning("Turn is slow to stop", extra={"turn": handle.turn_id})

    watcher = asyncio.create_task(stop_when_left(), name="watching a client")
    try:
        yield
    finally:
        watcher.cancel()
        await asyncio.gather(watcher, return_exceptions=True)
        if attempt.is_lost:
            await stop()
