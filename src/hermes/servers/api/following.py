"""Following a turn for a client: deltas gathered into fewer events, a sign of life when nothing happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from hermes.services.door import Ticket
from hermes.services.events import TextArrived, TurnEnded, TurnEvent

BATCH_SECONDS = 0.05
SLACK_SECONDS = 0.003
"""So little too early is no reason to go to sleep again: what is read from the model comes at the same pace."""
KEEP_ALIVE_SECONDS = 10.0


async def follow(
    ticket: Ticket, *, batch_seconds: float = BATCH_SECONDS, keep_alive_seconds: float = KEEP_ALIVE_SECONDS
) -> AsyncIterator[TurnEvent | None]:
    """The turn's events until its end, which is the last one; None is a pause in which nothing happened.

    The first text goes on at once. After that, text is gathered for ``batch_seconds``: 500 tokens a second become
    20 events, and nobody sees the difference.
    """
    waiting: deque[TurnEvent] = deque()
    next_text_at = 0.0
    loop = asyncio.get_running_loop()
    while True:
        if not waiting:
            event = await _within(ticket, keep_alive_seconds)
            if event is None:
                yield None
                continue
            waiting.append(event)
        event = waiting.popleft()
        if isinstance(event, TextArrived):
            if (pause := next_text_at - loop.time()) > SLACK_SECONDS:
                await asyncio.sleep(pause)
            waiting.extend(ticket.ready())
            event = _gathered(event, waiting)
            next_text_at = loop.time() + batch_seconds
        yield event
        if isinstance(event, TurnEnded):
            return


async def _within(ticket: Ticket, seconds: float) -> TurnEvent | None:
    try:
        async with asyncio.timeout(seconds):
            return await ticket.next()
    except TimeoutError:
        return None


def _gathered(first: TextArrived, waiting: deque[TurnEvent]) -> TextArrived:
    """The text up to the next event of another kind, as one."""
    parts = [first.text]
    while waiting and isinstance(waiting[0], TextArrived):
        parts.append(waiting.popleft().text)  # type: ignore[union-attr]
    return first if len(parts) == 1 else TextArrived(first.lane, first.turn_id, "".join(parts))
