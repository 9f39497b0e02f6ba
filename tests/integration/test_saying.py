"""What a command of the terminal is told of its message, when the delivery of the answer is late."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hermes.hosting.control.handlers.gateway import verbs_of
from hermes.hosting.control.handlers.say import LOOK_SECONDS
from hermes.services.events import TurnEnded, TurnEvent
from hermes.services.gateway import Gateway
from hermes.store import claims, outbox
from hermes.store.db import Tx
from hermes.store.outbox import OutboxKind
from tests.fakes.model import FakeModel
from tests.integration.conftest import Start

LANE = "agent:main:local:dm:cli"
TARGET = "local:cli"


class _Replies:
    """The answers that were told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def event(self, told: dict[str, Any]) -> None:
        if told["kind"] == "reply":
            self.texts.append(told["text"])


async def _say(gateway: Gateway, heard: _Replies, key: str) -> Any:
    async with asyncio.timeout(60):
        return await verbs_of(gateway)["say"]({"chat": "cli", "text": "count", "key": key}, heard)


@asynccontextmanager
async def _ended_with_its_target_held(
    gateway: Gateway, heard: _Replies
) -> AsyncIterator[tuple[asyncio.Task[Any], str]]:
    """A message whose turn has ended while nobody can begin to deliver its answer. Then the target is free."""
    ended: asyncio.Queue[str] = asyncio.Queue()

    def watch(event: TurnEvent) -> None:
        if isinstance(event, TurnEnded):
            ended.put_nowait(event.turn_id)

    await gateway.db.write(claims.wake, "targets", TARGET, at=time.time())
    held = await gateway.db.write(claims.claim, "targets", TARGET, owner="a worker that was killed", now=time.time())
    assert held is not None
    with gateway.bus.watch(watch, LANE):
        saying = asyncio.create_task(_say(gateway, heard, "k1"))
        async with asyncio.timeout(30):
            turn_id = await ended.get()
        yield saying, turn_id
    await gateway.db.write(claims.abandon, "targets", held, now=time.time())
    gateway.outbox_writer.due_target(TARGET)


async def test_an_answer_whose_delivery_begins_late_is_told_after_a_long_stream(start: Start, model: FakeModel) -> None:
    words = [f"w{number} " for number in range(12)]
    model.streams(words, 5)  # 2.4 s without a pause in which the store would be looked at
    heard = _Replies()
    async with start() as gateway:
        async with _ended_with_its_target_held(gateway, heard) as (saying, _):
            await asyncio.wait({saying}, timeout=2 * LOOK_SECONDS)  # the store says by now that the turn is over
        result = await saying
    assert result["state"] == "done"
    assert heard.texts == ["".join(words).strip()]


async def test_an_answer_that_was_parked_while_its_message_came_back_is_told(start: Start) -> None:
    heard = _Replies()
    async with start() as gateway:
        async with _ended_with_its_target_held(gateway, heard) as (saying, turn_id):
            await gateway.db.write(_park_replies, turn_id)
            await asyncio.wait({saying}, timeout=2 * LOOK_SECONDS)
        result = await saying
    assert result["state"] == "done"
    assert heard.texts == ["echo: count"]


def _park_replies(tx: Tx, turn_id: str) -> None:
    rows = [row for row in outbox.of_turn(tx, turn_id) if row.kind == OutboxKind.REPLY]
    assert rows
    for row in rows:
        outbox.record_parked(tx, row.id, expires_at=time.time() + 60, reason="nobody is looking at local:cli")
