"""Two hundred chats stream at once, at a Telegram that counts: nobody is told to wait, and answers go before edits."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hermes.core.markdown.streaming import CURSOR
from hermes.services.outbound.presenter import PresenterTiming
from hermes.store.db import Tx
from tests.chaos.inside import started
from tests.fakes.model import FakeModel, Reply
from tests.fakes.telegram import Call, FakeTelegram, Limits

FIRST_CHAT = 5000
IN_ALL = 30
TOKENS = 24
FEW = 5
LONG_EVERY = 10  # each tenth answer takes two messages
LOOK_SECONDS = 0.02
SLACK_SECONDS = 0.5  # an answer is claimed in the store before it leaves, and everything here shares one core


@dataclass(frozen=True, slots=True)
class Paced:
    """What the fake saw. ``overtaken`` counts the edits that were made while an answer waited that could have gone."""

    chats: int
    seconds: float
    refused: Sequence[str]
    most_in_a_second: int
    edits: int
    incomplete: Sequence[int]
    out_of_order: Sequence[int]
    overtaken: int
    waits: Sequence[float]
    """How long each answer waited from its commit until it was sent, in order."""

    @property
    def is_good(self) -> bool:
        return not self.incomplete and not self.out_of_order and self.overtaken <= FEW and len(self.refused) <= FEW


async def stream_at_once(folder: Path, chats: int, *, scale: float, deadline: float) -> Paced:
    """``scale`` 10: ten times the patience, everything ten times as quick."""
    async with FakeTelegram() as telegram, FakeModel() as model:
        telegram.limits = Limits(in_all=round(IN_ALL * scale), in_chat_seconds=1 / scale, retry_after=max(1, 3 / scale))
        pace = PresenterTiming(0.4 / scale, 1.2 / scale, 4.0 / scale)
        wanted = {FIRST_CHAT + number: _answer(number) for number in range(chats)}
        for number, (chat, words) in enumerate(wanted.items()):
            # Some end while the others go on: their answers have to pass the edits.
            speed = 3.0 if number % 2 else 1.5
            model.when(rf"\bin chat {chat}\b", Reply(tokens=words, tokens_per_second=speed * scale))
        begun = time.monotonic()
        lag = Lag()
        async with (
            lag.watched(),
            started(
                folder,
                telegram,
                model,
                pace=pace,
                TELEGRAM_CALLS_PER_SECOND=str(telegram.limits.in_all),
                TELEGRAM_CHAT_CALLS_PER_SECOND=str(scale),
            ) as gateway,
        ):
            for chat in wanted:
                telegram.user_says(f"a story in chat {chat}", chat=chat)
            expected = {chat: "".join(words).split() for chat, words in wanted.items()}
            await telegram.wait_for(lambda: not _incomplete(telegram, expected), deadline)
            seconds = time.monotonic() - begun
            written = await gateway.db.read(_written)
        return _told(telegram, expected, written, seconds, scale, SLACK_SECONDS + 3 * lag.longest)


@dataclass(slots=True)
class Lag:
    """How long this process was held up at a time, by a busy machine: nobody's order is judged within that."""

    longest: float = 0.0

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def _watch(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
            self.longest = max(self.longest, time.monotonic() - before - LOOK_SECONDS)


def _answer(number: int) -> tuple[str, ...]:
    long = "word" * 45 if number % LONG_EVERY == 0 else "word"
    return tuple(f"{long}{number}-{index} " for index in range(TOKENS))


def _incomplete(telegram: FakeTelegram, expected: dict[int, list[str]]) -> list[int]:
    said: dict[int, list[str]] = defaultdict(list)
    for sent in telegram.sent:
        said[int(sent.chat)] += sent.text.split()
    return [chat for chat, words in expected.items() if said[chat] != words]


def _written(tx: Tx) -> dict[int, float]:
    """When the answer of each chat was committed, by the monotonic clock."""
    shift = time.time() - time.monotonic()
    rows = tx.all("SELECT target, MIN(created_at) FROM outbox WHERE kind = 'reply' GROUP BY target", lambda *row: row)
    return {int(target.partition(":")[2]): at - shift for target, at in rows}


def _told(
    telegram: FakeTelegram,
    expected: dict[int, list[str]],
    written: dict[int, float],
    seconds: float,
    scale: float,
    slack: float,
) -> Paced:
    assert telegram.limits is not None
    shown = [call for call in telegram.calls if call.method in ("sendMessage", "editMessageText")]
    of_chat: dict[int, list[Call]] = defaultdict(list)
    for call in shown:
        of_chat[int(call.params["chat_id"])].append(call)
    finals = {chat: next(call for call in calls if not _is_growing(call)) for chat, calls in of_chat.items()}
    waiting = []  # from when on an answer could have gone, and when it went
    for chat, final in finals.items():
        before = [call.at for call in of_chat[chat] if call.at < final.at]
        free_at = max(written[chat], (before[-1] if before else 0.0) + 1 / scale)
        waiting.append((free_at + slack, final.at))
    edits = [call for call in shown if _is_growing(call)]
    return Paced(
        len(expected),
        seconds,
        telegram.limits.refused,
        telegram.limits.most_in_a_second,
        len(edits),
        _incomplete(telegram, expected),
        [chat for chat, calls in of_chat.items() if not _is_in_order(calls)],
        sum(any(since < edit.at < until for since, until in waiting) for edit in edits),
        sorted(finals[chat].at - written[chat] for chat in finals),
    )


def _is_growing(call: Call) -> bool:
    return str(call.params["text"]).endswith(CURSOR)


def _is_in_order(calls: Sequence[Call]) -> bool:
    """It grows, then it is whole, and then nothing grows any more."""
    kinds = [_is_growing(call) for call in calls]
    lengths = [len(str(call.params["text"])) for call in calls if _is_growing(call)]
    return kinds == sorted(kinds, reverse=True) and lengths == sorted(lengths)
