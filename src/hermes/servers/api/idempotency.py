"""The same request sent again gets the same answer, and the agent works once.

With an `Idempotency-Key` the answer is kept for a day (``Repeats``). A second request that comes while the first is
still being answered waits for it. An answer that says the gateway failed (500 and above) or that tells to come again
(408, 429) is not kept. Without a key, a retry of an SDK and the same body after a lost connection are found by the
body (``Attempts``): the routes join the turn that was begun for it, or let it go on from its last step.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import orjson
from aiohttp import web

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError
from hermes.core.messages import Json
from hermes.core.ports import Clock
from hermes.servers.api import parse
from hermes.servers.api.context import CALLER, SESSION_ID_HEADER, SESSION_KEY_HEADER, Caller
from hermes.servers.api.errors import ApiError, bad_request
from hermes.servers.api.input.tools import TOOLS_HEADER
from hermes.servers.api.streams.sse import RECORDING
from hermes.services.requests.requests import CLIENT_GONE, Requests
from hermes.store.api import idempotency
from hermes.store.api.idempotency import StoredAnswer
from hermes.store.db import Database

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
IN_FLIGHT = "idempotency_in_flight"
LONGEST_KEY = 255
LARGEST_KEPT = 4 * 1024 * 1024
WAIT_SECONDS = 1800.0
RETRY_COUNT = "X-Stainless-Retry-Count"
"""What the SDKs of OpenAI and Anthropic count in; 0 for the first attempt."""
RETRIED_SECONDS = 600.0
"""How long after an attempt broke off a request that says it is a retry belongs to it."""
REPEATED_SECONDS = 30.0
"""The same for the same body without such a header, after its connection was lost: people stop and ask again."""
FAILED_SECONDS = 90.0
"""The same after it failed: programs have loops of their own around an SDK, and that of aider waits 32 seconds."""
MOST_ATTEMPTS = 2000
STOP_SECONDS = 5.0
STOP_LOOK_SECONDS = 0.02
_NOT_KEPT = frozenset({401, 403, 408, 413, 429, 499})
_KEPT_HEADERS = ("content-type", "location")
_NAMING_HEADERS = (SESSION_ID_HEADER, SESSION_KEY_HEADER, TOOLS_HEADER)
"""What tells apart people behind one key, and what the agent may do for them."""

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


# Without a key


@dataclass(slots=True)
class Attempt:
    """One request on its way. ``event_id`` is the event it was stored as, '' before that.

    ``is_broken``: it failed, so the same body soon afterwards is the same request. ``is_delivered``: its client has the
    whole stream and may close the connection, or a retry has the answer. ``is_stopping``: its client left, and its turn
    is being stopped.
    """

    request: web.Request
    name: str
    event_id: str = ""
    is_broken: bool = False
    is_delivered: bool = False
    is_stopping: bool = False

    @property
    def is_lost(self) -> bool:
        """Whether its client left without the answer."""
        return is_gone(self.request) and not self.is_delivered


@dataclass(frozen=True, slots=True)
class _Broken:
    event_id: str
    at: float
    has_failed: bool


class Attempts:
    """Knows which requests broke off, by their bodies. After a restart the store tells which were cut by its end."""

    def __init__(self, requests: Requests, clock: Clock) -> None:
        self._requests = requests
        self._clock = clock
        self._started_at = clock.now()
        self._before_start: frozenset[str] | None = None
        self._open: dict[str, list[Attempt]] = {}
        self._broken = BoundedDict[str, _Broken](MOST_ATTEMPTS)

    @contextmanager
    def attempt(self, request: web.Request, name: str) -> Iterator[Attempt]:
        """Note a request while it is answered, and that it broke off if it did."""
        attempt = Attempt(request, name)
        self._open.setdefault(name, []).append(attempt)
        try:
            yield attempt
        except ApiError as error:
            attempt.is_broken = attempt.is_broken or error.status >= 500 or error.status == 429
            raise
        except BaseException:
            attempt.is_broken = True
            raise
        finally:
            others = self._open[name]
            others.remove(attempt)
            if not others:
                del self._open[name]
            if attempt.event_id and (attempt.is_broken or attempt.is_lost):
                self._broken[name] = _Broken(attempt.event_id, self._clock.now(), attempt.is_broken)
            elif attempt.event_id:  # it was answered: sent once more, it is a new request
                self._broken.pop(name, None)
                for other in others:
                    other.is_delivered = other.is_delivered or other.event_id == attempt.event_id

    async def earlier(self, request: web.Request, name: str) -> str:
        """Return the event of the request that this one repeats, '' for none."""
        is_retry = retry_count(request) > 0
        now = self._clock.now()
        seconds = RETRIED_SECONDS if is_retry else REPEATED_SECONDS
        for attempt in self._open.get(name, ()):
            if attempt.event_id and (is_retry or attempt.is_lost):
                await self._until_stopped(attempt)
                return attempt.event_id
        broken = self._broken.get(name)
        if broken is not None:
            patience = max(seconds, FAILED_SECONDS) if broken.has_failed else seconds
            if broken.at > now - patience:
                return broken.event_id
        if is_retry:
            return await self._cut_elsewhere(name, now - seconds, is_retry=True)
        if now < self._started_at + seconds and name in await self._names_before_start():
            return await self._cut_elsewhere(name, self._started_at - seconds)
        return ""

    async def _names_before_start(self) -> frozenset[str]:
        """Return the names of requests received just before this process started. Read once: no more are added."""
        if self._before_start is None:
            since = self._started_at - REPEATED_SECONDS
            self._before_start = await self._requests.attempts_between(since, self._started_at)
        return self._before_start

    async def _until_stopped(self, attempt: Attempt) -> None:
        """Wait for the end of a turn that is being stopped: half an answer is no answer to its retry."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + STOP_SECONDS
        # Its handler ends in another task, which tells nobody.
        while attempt.is_stopping and attempt in self._open.get(attempt.name, ()) and clock() < deadline:  # noqa: ASYNC110 - no event
            await asyncio.sleep(STOP_LOOK_SECONDS)

    def is_followed_elsewhere(self, attempt: Attempt) -> bool:
        """Tell whether another client, which is still there, waits for the answer of the same turn."""
        return any(
            other is not attempt and other.event_id == attempt.event_id and not is_gone(other.request)
            for other in self._open.get(attempt.name, ())
        )

    async def _cut_elsewhere(self, name: str, since: float, *, is_retry: bool = False) -> str:
        """Find the attempt that the last process was answering when it ended, or for a retry another node, too."""
        for event_id in await self._requests.attempts_of(name, since=since):
            state = await self._requests.state_of(event_id)
            is_earlier = state is not None and state.row.received_at < self._started_at
            if state is None or not (is_earlier or is_retry):
                continue
            ended = state.row.settled_at
            if ended is None or state.row.reason == CLIENT_GONE or (is_earlier and ended >= self._started_at):
                return event_id
        return ""


async def attempt_name(request: web.Request, body: Json) -> str:
    """The same for two requests that a client cannot tell apart: key, address, session, memory, tools and body.

    The body counts as JSON: clients that keep fields in a hash map send a retry with its fields in another order.
    """
    given = [request.headers.get(name, "") for name in _NAMING_HEADERS]
    head = "\n".join((request[CALLER].sender_id, request.path, *given, ""))
    return await parse.apart(request, _name_of, head.encode(errors="surrogatepass"), body, await request.read())


def _name_of(head: bytes, body: Json, raw: bytes) -> str:
    try:
        ordered = orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested more deeply than can be written
        ordered = raw
    return hashlib.blake2b(head + ordered, digest_size=16).hexdigest()  # half of what SHA-256 asks of small bodies


def retry_count(request: web.Request) -> int:
    """How many attempts came before this one, as far as the client says."""
    given = request.headers.get(RETRY_COUNT, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 else 0


def is_gone(request: web.Request) -> bool:
    """Tell whether the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()
