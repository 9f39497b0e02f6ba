"""Call models in order of preference: retry, then fall back to the next."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace

from hermes.agent.models import failure_messages
from hermes.agent.models.errors import what_happened
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ModelError
from hermes.core.errors import ModelErrorKind as Kind
from hermes.core.ports import (
    Clock,
    Model,
    ModelEvent,
    ModelNotice,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)

PASSING = frozenset({Kind.TRANSIENT, Kind.RATE, Kind.EMPTY})


@dataclass(frozen=True, slots=True)
class Patience:
    """How often one model is asked again, and how long we pause before that.

    ``retries`` is exact: 2 means three calls at most. A provider that asks for a longer wait than
    ``longest_wait_seconds`` is left for the next model; with no next one the person is told.
    """

    retries: int = 2
    first_pause_seconds: float = 0.5
    longest_pause_seconds: float = 8.0
    longest_wait_seconds: float = 20.0
    rest_seconds: float = 60.0

    def pause_before_retry(
        self, error: ModelError, retried: int, chance: float, *, is_shown: bool = False
    ) -> float | None:
        """Return the seconds until the next try, None for no retry. An answer on screen restarts only once."""
        allowed = min(self.retries, 1) if is_shown else self.retries
        if error.kind not in PASSING or error.is_settled or retried >= allowed:
            return None
        jitter = chance * min(self.longest_pause_seconds, self.first_pause_seconds * 2.0**retried)
        if error.retry_after is None:
            return jitter
        return error.retry_after + jitter if error.retry_after <= self.longest_wait_seconds else None

    def rest_after(self, error: ModelError) -> float:
        """Return how long a failed model is skipped. A bad key does not rest: a new one counts within a second."""
        if error.kind is Kind.QUOTA:
            return self.rest_seconds
        wait = error.retry_after or 0.0
        return wait if wait > self.longest_wait_seconds else 0.0


@dataclass(frozen=True, slots=True)
class _Resting:
    until: float
    error: ModelError


class Chain:
    """A Model made of models. Every failure and every fallback is told, in words, once per call.

    If an error comes when a part of the text was already shown, the answer starts over without deltas: the reply's
    text then replaces whatever was shown.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        patience: Patience | None = None,
    ) -> None:
        if not models:
            raise ValueError("A chain needs at least one model")
        self._models = tuple(models)
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._patience = patience or Patience()
        self._resting: dict[int, _Resting] = {}

    @property
    def label(self) -> str:
        return self._models[0].label

    @property
    def has_tools(self) -> bool:
        return self._models[0].has_tools

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        ends_at = self._clock.monotonic() + request.deadline_seconds
        failed: list[tuple[Model, ModelError]] = []
        is_shown = False  # some text: deltas of another try would follow upon one that is no longer true
        for place, model in enumerate(self._models):
            if (resting := self._still_resting(place)) is not None:
                failed.append((model, resting))
                continue
            if failed and self._clock.monotonic() >= ends_at:
                break
            is_told = not failed
            for retried in itertools.count():
                has_begun = False
                try:
                    is_first = place == retried == 0
                    asked = request if is_first else self._request_for(place, request, ends_at)
                    async with _Closing(model.stream(asked)) as events:
                        async for event in events:
                            if not is_told:
                                is_told = True
                                yield ModelNotice(failure_messages.fell_back(what_happened(failed[0][1]), model.label))
                            if isinstance(event, TextDelta | ReasoningDelta):
                                if is_shown:
                                    continue
                                has_begun = has_begun or isinstance(event, TextDelta)
                            yield event
                    self._resting.pop(place, None)
                    return
                except ModelError as caught:
                    error = caught
                is_shown = is_shown or has_begun
                pause = self._patience.pause_before_retry(error, retried, self._chance(), is_shown=is_shown)
                if pause is None or self._clock.monotonic() + pause >= ends_at:
                    break
                if has_begun:
                    yield ModelNotice(failure_messages.retrying(what_happened(error)))
                await self._sleep(pause)
            if error.kind is Kind.CONTEXT:
                raise error  # no other model helps: the caller compresses the session
            failed.append((model, error))
            if seconds := self._patience.rest_after(error):
                self._resting[place] = _Resting(self._clock.monotonic() + seconds, error)
        raise _all_failed(failed, is_shown=is_shown)

    def _request_for(self, place: int, request: ModelRequest, ends_at: float) -> ModelRequest:
        """Fit the request to a model: the remaining time, and tools only if it has them."""
        left = max(0.0, ends_at - self._clock.monotonic())
        if place == 0:
            return replace(request, deadline_seconds=left)
        tools = request.tools if self._models[place].has_tools else ()
        return replace(request, deadline_seconds=left, model="", tools=tools)

    def _still_resting(self, place: int) -> ModelError | None:
        resting = self._resting.get(place)
        if resting is None:
            return None
        if self._clock.monotonic() < resting.until and place < len(self._models) - 1:
            return resting.error
        del self._resting[place]
        return None


def _all_failed(failed: Sequence[tuple[Model, ModelError]], *, is_shown: bool) -> ModelError:
    """Join all failures into one error: what the first model said, and that no fallback answered."""
    first = failed[0][1]
    what = what_happened(first)
    others = [model.label for model, _ in failed[1:]]
    text = (
        failure_messages.fallbacks_failed(what, others, first.kind)
        if others
        else failure_messages.no_fallback(what, first.kind)
    )
    partial = next((error.partial for _, error in failed if error.partial), "") if is_shown else ""
    return ModelError(
        first.kind, text, provider=first.provider, retry_after=first.retry_after, partial=partial, status=first.status
    )


class _Closing:
    """Leaving ends the call, not only our reading of it. Models are generators; another iterator has no end to call."""

    __slots__ = ("_events",)

    def __init__(self, events: AsyncIterator[ModelEvent]) -> None:
        self._events = events

    async def __aenter__(self) -> AsyncIterator[ModelEvent]:
        return self._events

    async def __aexit__(self, *_: object) -> None:
        if isinstance(self._events, AsyncGenerator):
            await self._events.aclose()
