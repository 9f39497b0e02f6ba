"""N-02: Telegram is away. What is answered meanwhile waits for its time-to-live, and nobody is flooded afterwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hermes.services.adapters.account import Link
from hermes.services.gateway import Gateway
from hermes.store import outbox
from hermes.store.outbox import OutboxRow, OutboxState
from tests.chaos.inside import started
from tests.chaos.world import until
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram

HOUR = 3600.0
CHATS = range(300, 310)
WAIT_SECONDS = 15.0


async def answers_made_while_away(gateway: Gateway, telegram: FakeTelegram, model: FakeModel) -> None:
    """Every chat wrote; Telegram goes away before the model has answered."""
    model.hold()
    for chat in CHATS:
        telegram.user_says(f"hello from {chat}", chat=chat)
    await until(lambda: model.open_now == len(CHATS), WAIT_SECONDS)
    await telegram.stop()
    model.release()
    await wait_for_attempts(gateway)


async def wait_for_attempts(gateway: Gateway) -> None:
    """Until each answer was tried once, in vain."""
    async with asyncio.timeout(WAIT_SECONDS):
        while sum(bool(row.attempts and row.reason) for row in await replies(gateway)) < len(CHATS):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert {row.state for row in await replies(gateway)} == {OutboxState.READY}


async def replies(gateway: Gateway) -> list[OutboxRow]:
    ids = await gateway.db.read(lambda tx: tx.all("SELECT id FROM outbox WHERE kind = 'reply'", str))
    found = [await gateway.db.read(outbox.get, row_id) for row_id in ids]
    return [row for row in found if row is not None]


def is_connected(gateway: Gateway) -> bool:
    return any(each["state"] == Link.CONNECTED for each in gateway.supervisor.status() if each["account"] == "telegram")


async def test_what_waited_is_sent_as_soon_as_the_platform_is_back(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with started(tmp_path, telegram, model, clock=clock) as gateway:
        await answers_made_while_away(gateway, telegram, model)
        await telegram.start()
        # The clock stands still: nothing here waits for a retry's time to come.
        await telegram.wait_for(lambda: len(telegram.sent) >= len(CHATS), WAIT_SECONDS)
    assert {sent.text for sent in telegram.sent} == {f"echo: hello from {chat}" for chat in CHATS}


async def dead_letters(gateway: Gateway) -> list[OutboxRow]:
    """Wait until every chat's answer is a dead letter: they expire one after the other."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            letters = await gateway.db.read(outbox.dead_letters)
            if len(letters) >= len(CHATS):
                assert len(letters) == len(CHATS)
                return letters
            await asyncio.sleep(0.02)


async def test_after_a_day_answers_are_dead_letters_and_new_messages_are_answered(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with started(tmp_path, telegram, model, clock=clock, SESSION_RESET_NOTICE="off") as gateway:
        await answers_made_while_away(gateway, telegram, model)
        clock.advance(24 * HOUR)
        await telegram.start()
        telegram.user_says("good morning", chat=CHATS[0])
        await telegram.wait_for(lambda: telegram.texts() == ["echo: good morning"], WAIT_SECONDS)
        await until(lambda: is_connected(gateway), WAIT_SECONDS)
        letters = await dead_letters(gateway)
    assert telegram.texts() == ["echo: good morning"]
    assert {letter.reason for letter in letters} == {"expired: it was not delivered in time"}


async def test_a_day_of_hourly_tries_sends_nothing_late_even_after_a_restart(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with started(tmp_path, telegram, model, clock=clock, SESSION_RESET_NOTICE="off") as gateway:
        await answers_made_while_away(gateway, telegram, model)
    clock.advance(24 * HOUR)
    await telegram.start()
    async with started(tmp_path, telegram, model, clock=clock, SESSION_RESET_NOTICE="off") as gateway:
        telegram.user_says("good morning", chat=CHATS[0])
        await telegram.wait_for(lambda: "echo: good morning" in telegram.texts(), WAIT_SECONDS)
        await dead_letters(gateway)
    assert telegram.texts() == ["echo: good morning"]


async def test_a_reconnect_does_not_hurry_what_the_platform_told_to_wait(
    tmp_path: Path, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    async with started(tmp_path, telegram, model, clock=clock, SESSION_RESET_NOTICE="off") as gateway:
        telegram.limit_next_send(60)
        telegram.user_says("hello", chat=300)
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] == 1, WAIT_SECONDS)
        await telegram.stop()
        await until(lambda: not is_connected(gateway), WAIT_SECONDS)
        await telegram.start()
        telegram.user_says("and you?", chat=301)
        await telegram.wait_for(lambda: bool(telegram.sent), WAIT_SECONDS)
        assert telegram.texts() == ["echo: and you?"]
        clock.advance(61)
        await telegram.wait_for(lambda: telegram.texts(300) == ["echo: hello"], WAIT_SECONDS)
