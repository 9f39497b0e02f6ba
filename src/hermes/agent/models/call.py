"""Make one HTTP call to a provider: deadline, key, response, errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Protocol, assert_never

import aiohttp

from hermes.agent.models import failure_messages
from hermes.agent.models.answer import Answer, AnswerReader, UnreadableChunkError
from hermes.agent.models.endpoint import Endpoint
from hermes.agent.models.errors import ErrorDetails, ProviderError, parse_error, read_refusal, refusal, retry_after_of
from hermes.agent.models.sse import LineTooLongError
from hermes.agent.models.stream_timeouts import ConcurrentStreams, Expired, Watchdog, hold_back, read_all
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.i18n.failures import describe_failure
from hermes.core.messages import Json
from hermes.core.ports import ModelEvent, ModelReply, ModelRequest, ReasoningDelta, TextDelta
from hermes.core.secret import Redactor

MAX_ERROR_BYTES = 64_000
# After its last event only the end of the body can come: worth a moment, since a connection read to its end is used
# again.
END_SECONDS = 0.05


class ApiDialect(Protocol):
    """How one API is spoken: pure functions from a request to bytes and from bytes to an answer."""

    def url(self, base_url: str) -> str: ...

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of a call; ``key`` is empty where none is set."""

    def body(self, request: ModelRequest, model: str, *, with_tools: bool, without: Collection[str]) -> Json:
        """Build the body, its stable part first; ``without`` names options this provider rejected."""

    def refused(self, body: Json, reason: str) -> str:
        """Return the name of an optional part of this body that a refusal complains about, or nothing."""

    def is_passing(self, name: str) -> bool:
        """Tell whether a refused part is left out of this call only."""

    def answer(self, new_id: Callable[[], str]) -> Answer: ...


class ModelCall:
    """Hold one call: its deadline, its key and the answer so far."""

    def __init__(
        self, dialect: ApiDialect, endpoint: Endpoint, request: ModelRequest, new_id: Callable[[], str]
    ) -> None:
        now = asyncio.get_running_loop().time()
        self.request = request
        self.model = request.model or endpoint.model
        self.ends_at = now + request.deadline_seconds
        # Without streaming the first byte comes with the last.
        patience = endpoint.timeouts.first_byte if request.stream else request.deadline_seconds
        self.first_byte_at = min(now + patience, self.ends_at)
        self._dialect = dialect
        self._endpoint = endpoint
        self._key = endpoint.key()
        self._answer = dialect.answer(new_id)
        self._reader = AnswerReader(self._answer)

    def headers(self) -> dict[str, str]:
        key = self._key.reveal().strip() if self._key else ""
        if not key.isascii() or " " in key or not key.isprintable():
            raise self._failure(Kind.AUTH, failure_messages.ODD_KEY)  # aiohttp's own error would print the key
        return {"Content-Type": "application/json", **self._dialect.headers(key), **self._endpoint.headers}

    def take_other_key(self, error: ProviderError) -> bool:
        """Go on with another key of this provider, where there is one and the error is about the key."""
        other = self._endpoint.other_key(self._key, error)
        if other is not None:
            self._key = other
        return other is not None

    async def read_stream(
        self, response: aiohttp.ClientResponse, crowd: ConcurrentStreams
    ) -> AsyncGenerator[ModelEvent, None]:
        answer, reader, content = self._answer, self._reader, response.content
        timeouts = self._endpoint.timeouts
        watch = Watchdog(response, idle=timeouts.first_byte, ends_at=self.ends_at)
        loop = asyncio.get_running_loop()
        has_begun = is_ending = False
        first_at = 0.0
        try:
            while not reader.is_done:
                watch.waiting()
                data = await read_all(content)
                watch.awake()
                if data:
                    reader.feed(data)
                else:
                    reader.end()
                if not has_begun:
                    has_begun = True
                    first_at = loop.time()
                    watch.allow(timeouts.idle)
                if answer.fresh_reasoning and (reasoning := answer.take_reasoning()):
                    yield ReasoningDelta(reasoning)
                if answer.fresh_text and (text := answer.take_text()):
                    yield TextDelta(text)
                if answer.error is not None:
                    break
                if answer.is_finished and not is_ending and not reader.is_done:
                    is_ending = True
                    watch.allow(timeouts.after_finish)
                if not reader.is_done and (pause := crowd.pause_seconds(loop.time() - first_at)):
                    hold_back(response, pause)
            if reader.is_done:
                await _read_to_end(content)
        except (aiohttp.ClientError, OSError, UnreadableChunkError, LineTooLongError) as error:
            if not answer.is_finished:  # all that matters has come; only the usage is missing
                raise self._broken(error, self._late(watch)) from None
        finally:
            watch.stop()

    async def read_whole(self, response: aiohttp.ClientResponse) -> None:
        try:
            async with asyncio.timeout_at(self.ends_at):
                while data := await response.content.readany():
                    self._reader.feed(data)
            self._reader.end()
        except (aiohttp.ClientError, OSError, UnreadableChunkError, LineTooLongError) as error:
            late = (
                failure_messages.over_deadline(self.request.deadline_seconds) if isinstance(error, TimeoutError) else ""
            )
            raise self._broken(error, late) from None

    def reply(self, status: int) -> ModelReply:
        """Return the whole answer, or the reason why it is none."""
        answer = self._answer
        if answer.error is not None:
            error = self._refused(parse_error(status, answer.error))
            self._endpoint.other_key(self._key, error)  # too late for this call, not for the next
            raise error
        if self._reader.is_page:
            raise self._failure(Kind.REQUEST, failure_messages.WEB_PAGE)
        text, calls, finish = answer.text, answer.tool_calls, answer.finish_reason
        if not self._reader.is_complete:
            raise self._failure(Kind.TRANSIENT, failure_messages.broke_off())
        if not calls and not text.strip():
            if finish == "content_filter":
                raise self._failure(Kind.REQUEST, failure_messages.FILTERED)
            if finish == "length":
                raise self._failure(Kind.EMPTY, failure_messages.TOO_LONG_FOR_LIMIT, is_settled=True)
            raise self._failure(Kind.EMPTY)
        thought = answer.thought if calls else ""  # only what goes on after a call must be shown its own thinking
        model, provider = answer.model or self.model, self._endpoint.provider
        return ModelReply(text, calls, answer.usage, finish, model, provider, thought, tuple(answer.logprobs))

    async def refusal(self, response: aiohttp.ClientResponse) -> ProviderError:
        """Translate an error response to a ProviderError; reads the body and ends the response."""
        try:
            async with asyncio.timeout_at(min(self.ends_at, asyncio.get_running_loop().time() + 10)):
                body = await _up_to(MAX_ERROR_BYTES, response.content)
        except (aiohttp.ClientError, OSError):
            body = b""  # the status alone has to do
        finally:
            response.release()
        return self._refused(read_refusal(response.status, body), retry_after_of(response.headers))

    def unreachable(self, error: Exception) -> ProviderError:
        if isinstance(error, aiohttp.ConnectionTimeoutError):
            return self._failure(Kind.TRANSIENT, failure_messages.unreachable(failure_messages.NO_CONNECTION))
        if isinstance(error, TimeoutError):
            whole, first = self.request.deadline_seconds, self._endpoint.timeouts.first_byte
            is_whole = not self.request.stream or whole <= first
            return self._failure(
                Kind.TRANSIENT,
                failure_messages.over_deadline(whole) if is_whole else failure_messages.silent_for(first),
            )
        if isinstance(error, aiohttp.InvalidURL):
            return self._failure(Kind.REQUEST, failure_messages.NO_SUCH_ADDRESS)
        # Only the kind of error: its text may name a proxy with its password.
        return self._failure(Kind.TRANSIENT, failure_messages.unreachable(describe_failure(error)))

    def _broken(self, error: Exception, late: str) -> ProviderError:
        if late:
            return self._failure(Kind.TRANSIENT, late)
        if isinstance(error, UnreadableChunkError | LineTooLongError):
            return self._failure(Kind.TRANSIENT, failure_messages.UNREADABLE)
        return self._failure(Kind.TRANSIENT, failure_messages.broke_off(describe_failure(error)))

    def _late(self, watch: Watchdog) -> str:
        match watch.expired:
            case None:
                return ""
            case Expired.IDLE:
                return failure_messages.silent_for(watch.idle)
            case Expired.WHOLE:
                return failure_messages.over_deadline(self.request.deadline_seconds)
            case _:
                assert_never(watch.expired)

    def _refused(self, details: ErrorDetails, retry_after: float | None = None) -> ProviderError:
        return refusal(
            details,
            provider=self._endpoint.provider,
            model=self.model,
            hide=Redactor([self._key] if self._key else []),
            has_key=bool(self._key),
            retry_after=retry_after,
            partial=self._answer.text,
        )

    def _failure(self, kind: Kind, clause: str = "", *, is_settled: bool = False) -> ProviderError:
        return ProviderError(kind, self._endpoint.provider, clause, partial=self._answer.text, is_settled=is_settled)


async def _up_to(most: int, content: aiohttp.StreamReader) -> bytes:
    body = b""
    while len(body) < most and (data := await content.readany()):
        body += data
    return body[:most]


async def _read_to_end(content: aiohttp.StreamReader) -> None:
    """Wait a moment for the end of the body. A server that leaves it open loses the connection, no more."""
    if content.at_eof():
        return
    try:
        async with asyncio.timeout(END_SECONDS):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError):
        return
