"""People who write, and what it cost the gateway to answer them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.rig import BenchError, World
from bench.rows import Row, Rows, milliseconds, percentile

ANSWER_SECONDS = 60.0
SETTLE_SECONDS = 0.8  # the receipt and the transcript's file are written after the answer is out


@dataclass(slots=True)
class Talk:
    """CPU of the worker for ``count`` messages, and how long each person waited."""

    cpu: float = 0.0
    count: int = 0
    waits: list[float] = field(default_factory=list)

    @property
    def cpu_each(self) -> float:
        return self.cpu / max(1, self.count)

    def rows(self, what: str, *, budget: float | None = None) -> Rows:
        each = milliseconds(self.cpu_each)
        p50, p99 = (milliseconds(percentile(self.waits, percent)) for percent in (50, 99))
        return [
            Row(f"{what}: CPU per message", each, "ms", budget, f"{self.count} messages"),
            Row(f"{what}: from message to answer, p50", p50, "ms"),
            Row(f"{what}: from message to answer, p99", p99, "ms"),
        ]


async def bursts(world: World, chats: Sequence[int], rounds: int) -> Talk:
    """Everybody writes at once; the next round begins when all are answered."""
    talk = Talk()
    before = world.gateway.cpu()
    for number in range(rounds):
        await _all_at_once(world, chats, f"round {number}", talk)
    await asyncio.sleep(SETTLE_SECONDS)
    talk.cpu = world.gateway.cpu() - before
    return talk


async def paced(world: World, chats: Sequence[int], *, pause: float) -> Talk:
    """One after another, each in its own chat, never before the one before was answered."""
    talk = Talk()
    before = world.gateway.cpu()
    for number, chat in enumerate(chats):
        began = time.monotonic()
        await _all_at_once(world, [chat], f"message {number}", talk)
        await asyncio.sleep(max(0.0, pause - (time.monotonic() - began)))
    await asyncio.sleep(SETTLE_SECONDS)
    talk.cpu = world.gateway.cpu() - before
    return talk


async def warm_up(world: World) -> None:
    """The first messages of a process pay for imports, connections and compiled statements."""
    await bursts(world, range(900_000, 900_010), 2)


async def _all_at_once(world: World, chats: Sequence[int], text: str, talk: Talk) -> None:
    telegram = world.telegram
    seen = len(telegram.sent)
    said_at: dict[str, float] = {}
    for chat in chats:
        said_at[str(chat)] = time.monotonic()
        telegram.user_says(text, chat=chat, user=chat)
    try:
        await telegram.wait_for(lambda: len(telegram.sent) >= seen + len(chats), ANSWER_SECONDS)
    except TimeoutError:
        missing = len(chats) - (len(telegram.sent) - seen)
        raise BenchError(
            f"{missing} of {len(chats)} messages were not answered in {ANSWER_SECONDS:.0f} s.\n"
            f"{world.gateway.last_words()}"
        ) from None
    answers = telegram.sent[seen:]
    wrong = [sent.text for sent in answers if sent.text != f"echo: {text}"]
    if wrong:
        raise BenchError(f"An answer was not the model's: {wrong[0]!r}")
    talk.waits.extend(sent.at - said_at[sent.chat] for sent in answers)
    talk.count += len(chats)
