"""`Idempotency-Key`: the same request sent again gets the same answer, and the agent works once.

The answer is kept for a day. A second request that comes while the first is still being answered waits for it. An
answer that says the gateway failed (500 and above) or that tells to come again (408, 429) is not kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable

import orjson
from aiohttp import web

from hermes.core.errors import StoreIsDownError
from hermes.core.ports import Clock
from hermes.servers.api.context import Caller
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.streams.sse import RECORDING
from hermes.store.api import idempotency
from hermes.store.api.idempotency import StoredAnswer
from hermes.store.db import Database

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
IN_FLIGHT = "idempotency_in_flight"
LONGEST_KEY = 255
LARGEST_KEPT = 4 * 1024 * 1024
WAIT_SECONDS = 1800.0
_NOT_KEPT = frozenset({401, 403, 408, 413, 429, 499})
_KEPT_HEADERS = ("content-type", "location")

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Repeats:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._in_flight: dict[str, tuple[str, asyncio.Future[None]]] = {}

    async def answer(self, request: web.Request, caller: Caller, handler: Handler) -> web.StreamResponse:
        """Let ``handler`` answer, or give again what it answered before. The body has been read already."""
        given = request.headers.get(HEADER)
        if given is None:
            return await handler(request)
        if not given.strip() or len(given) > LONGEST_KEY or not given.isprintable():
            raise bad_request(
                f"{HEADER} must be 1 to {LONGEST_KEY} printable characters.",
                code="invalid_idempotency_key",
                param=HEADER,
            )
        key = _hash(f"{caller.id or caller.name}\n{given}".encode())
        fingerprint = _hash(f"{request.method} {request.path_qs}\n".encode(), await request.read())
        while (earlier := self._in_flight.get(key)) is not None:
            _same(earlier[0], fingerprint)
            await self._until(earlier[1])
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_flight[key] = (fingerprint, ended)
        try:
            return await self._first_or_again(request, handler, key, fingerprint)
        finally:
            del self._in_flight[key]
            ended.set_result(None)

    @staticmethod
    async def _until(ended: asyncio.Future[None]) -> None:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await asyncio.shield(ended)
        except TimeoutError:
            raise ApiError(
                409, "The first request with this key is still being answered. Ask again later.", code=IN_FLIGHT
            ) from None

    async def _first_or_again(
        self, request: web.Request, handler: Handler, key: str, fingerprint: str
    ) -> web.StreamResponse:
        kept = await self._db.read(idempotency.find, key, now=self._clock.now())
        if kept is not None:
            _same(kept.fingerprint, fingerprint)
            headers = {**orjson.loads(kept.headers), REPLAYED: "true"}
            return web.Response(body=kept.body.encode(), status=kept.status, headers=headers)
        recording = request[RECORDING] = bytearray()
        try:
            response = await handler(request)
        except ApiError as refusal:
            if refusal.code != IN_FLIGHT:
                await self._keep(refusal.response(request.path), key, fingerprint, b"")
            raise
        await self._keep(response, key, fingerprint, bytes(recording))
        return response

    async def _keep(self, response: web.StreamResponse, key: str, fingerprint: str, streamed: bytes) -> None:
        # An empty recording is one that is not to be repeated.
        body = response.body if isinstance(response, web.Response) else streamed or None
        if response.status >= 500 or response.status in _NOT_KEPT or not isinstance(body, bytes | bytearray):
            return
        if len(body) > LARGEST_KEPT:
            return
        headers = {str(name): value for name, value in response.headers.items() if _is_replayed(name)}
        now = self._clock.now()
        kept = StoredAnswer(
            key, fingerprint, response.status, orjson.dumps(headers).decode(), bytes(body).decode(), now
        )
        try:
            await self._db.write(idempotency.keep, kept)
        except StoreIsDownError as error:  # the answer itself is good; only a repeat would be worked on anew
            log.warning("Store is down", extra={"while": "keeping an answer", "reason": str(error)})


def _is_replayed(name: str) -> bool:
    return name.lower() in _KEPT_HEADERS or name.lower().startswith("x-hermes-")


def _hash(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _same(earlier: str, fingerprint: str) -> None:
    if earlier != fingerprint:
        raise key_reused()


def key_reused() -> ApiError:
    message = f"This {HEADER} was used for another request within the last day. Take a new one."
    return ApiError(422, message, code="idempotency_key_reused", param=HEADER)
