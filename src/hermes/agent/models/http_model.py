"""Call a model over HTTP: drop rejected options, rotate keys."""

from __future__ import annotations

import asyncio
import io
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import aiohttp
from python_socks import ProxyError
from yarl import URL

from hermes.agent.models import request_body
from hermes.agent.models.call import ApiDialect, ModelCall
from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.errors import ProviderError
from hermes.agent.models.stream_timeouts import ConcurrentStreams
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.ports import ModelEvent, ModelRequest

MAX_PLAIN_BODY_BYTES = 1 << 20  # aiohttp wants larger ones as a file, and writes those piece by piece


def new_call_id() -> str:
    return f"call_{uuid.uuid4().hex[:24]}"


class HttpModel:
    """One model of one provider. Tries once: retries and fallback are the chain's work."""

    def __init__(
        self,
        dialect: ApiDialect,
        endpoint: Endpoint,
        http: aiohttp.ClientSession,
        *,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._dialect = dialect
        self._endpoint = endpoint
        self._http = http
        self._new_id = new_id
        self._url = URL(dialect.url(endpoint.base_url.rstrip("/")))
        # A header tells who we are, and aiohttp refuses a second login in the address. What is no address has none.
        self._plain_url = self._url.with_user(None) if self._url.absolute else self._url
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=endpoint.timeouts.connect)
        self._refused: frozenset[str] = frozenset()
        self._crowd = ConcurrentStreams()

    @property
    def label(self) -> str:
        return self._endpoint.label

    @property
    def has_tools(self) -> bool:
        return self._endpoint.has_tools

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield deltas (all the text of one network read in one), then the reply. Closing ends the connection."""
        call = ModelCall(self._dialect, self._endpoint, request, self._new_id)
        response = await self._open(call)
        try:
            if request.stream:
                with self._crowd.joined():
                    async with aclosing(call.read_stream(response, self._crowd)) as events:
                        async for event in events:
                            yield event
            else:
                await call.read_whole(response)
        finally:
            # Read to its end, the connection goes back to the pool; otherwise this closes it.
            response.release()
        yield call.reply(response.status)

    async def _open(self, call: ModelCall) -> aiohttp.ClientResponse:
        """Send the request; asked again without an optional part that is refused, and with another key."""
        without = set(self._refused)
        while True:
            body = self._dialect.body(call.request, call.model, with_tools=self.has_tools, without=without)
            try:
                response = await self._post(call, request_body.encode(body))
                if response.status < 300:
                    return response
                raise await call.refusal(response)
            except ProviderError as error:
                name = self._dialect.refused(body, error.add_text) if error.kind is Kind.REQUEST else ""
                if name and name not in without:
                    without.add(name)
                    if not self._dialect.is_passing(name):
                        self._refused |= {name}
                elif not call.take_other_key(error):
                    raise

    async def _post(self, call: ModelCall, body: bytes) -> aiohttp.ClientResponse:
        data = body if len(body) <= MAX_PLAIN_BODY_BYTES else io.BytesIO(body)
        headers = call.headers()
        # One request carries one authorization: a key counts more than a login in the address.
        url = self._plain_url if "Authorization" in headers else self._url
        try:
            async with asyncio.timeout_at(call.first_byte_at):
                # A redirect is never followed: it would take the key along.
                return await self._http.post(
                    url, data=data, headers=headers, timeout=self._timeout, allow_redirects=False
                )
        except (aiohttp.ClientError, ProxyError, OSError) as error:  # TimeoutError is an OSError
            raise call.unreachable(error) from None
