"""Following a turn for a client: deltas gathered into fewer events, a sign of life when nothing happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from hermes.services.events import ReasoningArrived, TextArrived, TurnEnded, TurnEvent
from hermes.services.requests.requests import RequestHandle

BATCH_SECONDS = 0.05
LEAST_SECONDS = 0.025
"""Between two pieces of text. Less than the pause between two reads from a model, so that each of those is passed on
when it comes: waiting longer would mean to wake twice for each, and to be late."""
KEEP_ALIVE_SECONDS = 10.0
EARLY_SECONDS = 1.0
"""How long a stream waits for the first event before it opens: a 429 of the provider within it is the status."""

Written = TextArrived | ReasoningArrived


async def follow(
    handle: RequestHandle,
    *,
    least_seconds: float = LEAST_SECONDS,
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
    patience: Callable[[], float] | None = None,
) -> AsyncIterator[TurnEvent | None]:
    """The turn's events until its end, which is the last one; None is a pause in which nothing happened.

    ``patience`` says how long the next one may be, in place of ``keep_alive_seconds``.

    The first text goes on at once. After that, text is gathered for ``least_seconds``, or as long as whoever reads
    from the model gathers it: 500 tokens a second become some 15 events, and nobody sees the difference.
    """
    waiting: deque[TurnEvent] = deque()
    next_text_at = 0.0
    loop = asyncio.get_running_loop()
    while True:
        if not waiting:
            event = await handle.within(keep_alive_seconds if patience is None else patience())
            if event is None:
                yield None
                continue
            waiting.append(event)
        event = waiting.popleft()
        if isinstance(event, (TextArrived, ReasoningArrived)):
            if (pause := next_text_at - loop.time()) > 0:
                await asyncio.sleep(pause)
            waiting.extend(handle.ready())
            event = _gathered(event, waiting)
            next_text_at = loop.time() + least_seconds
        yield event
        if isinstance(event, TurnEnded):
            return


def _gathered(first: Written, waiting: deque[TurnEvent]) -> Written:
    """The text up to the next event of another kind, as one."""
    kind, parts = type(first), [first.text]
    while waiting and type(waiting[0]) is kind:
        parts.append(waiting.popleft().text)  # type: ignore[union-attr] # of that kind
    return first if len(parts) == 1 else kind(first.lane, first.turn_id, "".join(parts))
