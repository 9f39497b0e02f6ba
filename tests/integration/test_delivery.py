"""Delivery: in order for each chat, each message until its outcome is known, and previews that become the answer."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from hermes.core.keys import Target
from hermes.core.markdown.streaming import CURSOR
from hermes.core.messages import OutboundMessage
from hermes.services.gateway import Gateway
from hermes.services.outbound.presenter import PresenterTiming
from hermes.store import outbox
from hermes.store.db import StoreLimits, Tx
from hermes.store.outbox import OutboxKind
from tests.chaos.store_troubles import holding_the_lock
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, Reply
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start, crash
from tests.integration.watching import SECONDS, answered, outbox_rows, turn_is, until

AT_ONCE = PresenterTiming(first_sign_seconds=0.01, preview_after_seconds=0.0, typing_every_seconds=4.0)
LONG = "\n\n".join(f"Part {number}. " + "word " * 700 for number in range(3))


async def write(gateway: Gateway, *texts: str) -> None:
    """Letters to Ana, one each."""
    for text in texts:
        rows = gateway.outbox_writer.rows(OutboundMessage(Target("telegram", "7"), text), OutboxKind.REPLY)
        await gateway.db.write(outbox.enqueue, rows, now=gateway.clock.now())
        gateway.outbox_writer.due(rows)


async def state_is(gateway: Gateway, state: str, number: int = 0) -> None:
    async def look() -> bool:
        rows = await outbox_rows(gateway)
        return len(rows) > number and rows[number].state == state

    await until(look)


async def test_letters_to_one_chat_arrive_in_order(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        telegram.limit_next_send(0)
        await write(gateway, *(f"letter {number}" for number in range(30)))
        await telegram.wait_for(lambda: len(telegram.sent) >= 30, SECONDS)
    assert telegram.texts(7) == [f"letter {number}" for number in range(30)]


async def test_a_long_answer_is_split_and_arrives_in_order(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says(LONG)
    async with start() as gateway:
        telegram.user_says("tell me")
        await telegram.wait_for(lambda: len(telegram.sent) >= 3, SECONDS)
        rows = await outbox_rows(gateway)
    assert len({row.group_id for row in rows}) == 1
    assert [text[:6] for text in telegram.texts(7)] == ["Part 0", "Part 1", "Part 2"]
    assert [bool(sent.reply_to) for sent in telegram.sent] == [True, False, False]


async def test_a_chat_that_blocked_us_ends_the_whole_answer_with_the_reason(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.says(LONG)
    telegram.block(7)
    async with start() as gateway:
        telegram.user_says("tell me")
        await state_is(gateway, "dead")
        rows = await outbox_rows(gateway)
        telegram.unblock(7)
        telegram.user_says("again")
        await answered(telegram, "echo: again")
    assert [row.state for row in rows] == ["dead"] * 3
    assert "blocked by the user" in rows[0].reason
    assert telegram.counts["sendMessage"] == 2, "the other parts were not tried"


async def test_flood_control_is_waited_for(start: Start, telegram: FakeTelegram, clock: FakeClock) -> None:
    telegram.limit_next_send(30)
    async with start(clock=clock) as gateway:
        await write(gateway, "one", "two")
        await telegram.wait_for(lambda: telegram.counts["sendMessage"] == 1, SECONDS)  # connected by now
        await until(lambda: _waits(gateway))
        [first, _] = await outbox_rows(gateway)
        assert first.not_before == clock.now() + 30
        assert telegram.counts["sendMessage"] == 1
        clock.advance(31)
        await telegram.wait_for(lambda: telegram.texts(7) == ["one", "two"], SECONDS)


async def test_who_is_told_to_wait_for_no_time_at_all_does_not_ask_in_a_tight_loop(
    start: Start, telegram: FakeTelegram
) -> None:
    for _ in range(4):
        telegram.limit_next_send(0)
    async with start() as gateway:
        await write(gateway, "one")
        await telegram.wait_for(lambda: telegram.texts(7) == ["one"], SECONDS)
    tries = [call.at for call in telegram.calls if call.method == "sendMessage"]
    assert [later - earlier >= 0.15 for earlier, later in pairwise(tries)] == [True] * 4


async def test_a_send_whose_outcome_is_unknown_is_repeated_once_and_marked(
    start: Start, telegram: FakeTelegram, clock: FakeClock
) -> None:
    async with start(clock=clock) as gateway:
        hold = telegram.hold_sends()
        await write(gateway, "hello")
        await hold.reached()
        telegram.drop_connection()
        telegram.release_all()
        await until(lambda: _waits(gateway))
        clock.advance(5)
        await telegram.wait_for(lambda: len(telegram.sent) >= 2, SECONDS)
        await state_is(gateway, "sent")
    assert telegram.texts(7) == ["hello", "↻ hello"]


async def _waits(gateway: Gateway) -> bool:
    row = (await outbox_rows(gateway))[0]
    return row.not_before > row.created_at


async def test_a_row_that_cannot_be_read_is_dead_and_the_next_is_sent(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        rows = gateway.outbox_writer.rows(OutboundMessage(Target("telegram", "7"), "x"), OutboxKind.REPLY)

        def plant(tx: Tx) -> None:  # in one go: whoever looks for rows to send finds it spoiled
            outbox.enqueue(tx, rows, now=gateway.clock.now())
            tx.run("UPDATE outbox SET body = '{' WHERE idx = 0 AND seq = 1")

        await gateway.db.write(plant)
        await write(gateway, "hello")
        await answered(telegram, "hello")
        [bad, _] = await outbox_rows(gateway)
    assert bad.state == "dead"
    assert "unreadable" in bad.reason


async def test_an_answer_nobody_at_the_terminal_sees_is_parked_until_somebody_writes(start: Start) -> None:
    async with start() as gateway:
        await gateway.hub.submit("desk", "hello", "k1")
        await state_is(gateway, "parked")
        async with gateway.hub.listen("desk") as heard:
            await gateway.hub.submit("desk", "and again", "k2")
            async with asyncio.timeout(SECONDS):
                texts = [(await heard.get()).text for _ in range(2)]
    assert texts == ["echo: hello", "echo: and again"]


# Previews


async def shown(telegram: FakeTelegram, text: str) -> None:
    """Wait until the bot shows this text with its cursor."""
    await telegram.wait_for(lambda: any(sent.text == text + CURSOR for sent in telegram.sent), SECONDS)


async def test_a_preview_grows_and_is_replaced_by_the_answer(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([Reply(tokens=tuple(f"w{number} " for number in range(30)), tokens_per_second=20)])
    async with start(pace=AT_ONCE) as gateway:
        telegram.user_says("count")
        await turn_is(gateway, "done")
        await telegram.wait_for(lambda: telegram.texts()[-1:] == [model_text(30)], SECONDS)
        await state_is(gateway, "sent", 1)
        kinds = [(row.kind, row.state) for row in await outbox_rows(gateway)]
    [only] = telegram.sent
    assert only.edits, "it was shown before it was whole"
    assert all(edit.endswith(CURSOR) for edit in only.edits)
    assert [len(edit) for edit in only.edits] == sorted(len(edit) for edit in only.edits)
    assert kinds == [("preview", "sent"), ("reply", "sent")]
    assert telegram.typings >= 1


def model_text(count: int) -> str:
    return "".join(f"w{number} " for number in range(count)).strip()


async def test_a_quick_answer_needs_neither_typing_nor_preview(start: Start, telegram: FakeTelegram) -> None:
    async with start() as gateway:
        telegram.user_says("hello")
        await answered(telegram, "echo: hello")
        assert len(await outbox_rows(gateway)) == 1
    assert telegram.typings == 0


@pytest.mark.parametrize("is_slow", [False, True], ids=["quick", "slow enough for a preview"])
async def test_after_a_crash_in_mid_preview_the_answer_replaces_the_same_message(
    start: Start, telegram: FakeTelegram, model: FakeModel, is_slow: bool
) -> None:
    story = Reply(tokens=("Once upon", " a time"))
    model.script([story, story])
    model.hold()
    async with start(pace=AT_ONCE) as gateway:
        telegram.user_says("tell me")
        await shown(telegram, "Once upon")
        await state_is(gateway, "sent")
        await crash(gateway)
    if not is_slow:
        model.release()
    async with start(pace=AT_ONCE):
        if is_slow:
            await telegram.wait_for(lambda: telegram.typings >= 2, SECONDS)
            await model.is_holding()
            await asyncio.sleep(0.1)  # time for the second message that must not come
            model.release()
        await answered(telegram, "Once upon a time")
    assert telegram.texts(7) == ["Once upon a time"]


async def test_an_interrupted_preview_is_finished_with_a_mark(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([Reply(tokens=("Once upon", " a time"))])
    model.hold()
    async with start(pace=AT_ONCE):
        telegram.user_says("tell me")
        await shown(telegram, "Once upon")
        telegram.user_says("/stop")
        await answered(telegram, "Once upon … (interrupted)")
        model.release()
        assert telegram.texts().count("Once upon … (interrupted)") == 1


async def test_an_edit_whose_outcome_is_unknown_is_repeated_without_a_mark(
    start: Start, telegram: FakeTelegram, model: FakeModel, clock: FakeClock
) -> None:
    """Editing twice shows one message, so nobody needs to be warned."""
    model.script([Reply(tokens=("Once upon", " a time"))])
    model.hold()
    async with start(clock=clock, pace=AT_ONCE) as gateway:
        telegram.user_says("tell me")
        await shown(telegram, "Once upon")
        await state_is(gateway, "sent")
        hold = telegram.hold("editMessageText")
        model.release()
        await hold.reached()
        telegram.drop_connection()
        telegram.release_all()
        await until(lambda: _final_waits(gateway))
        clock.advance(5)
        await state_is(gateway, "sent", 1)
    assert telegram.texts(7) == ["Once upon a time"]


async def _final_waits(gateway: Gateway) -> bool:
    rows = await outbox_rows(gateway)
    return len(rows) == 2 and rows[1].not_before > rows[1].created_at


async def test_a_preview_that_was_deleted_in_the_chat_does_not_swallow_the_answer(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    model.script([Reply(tokens=("Once upon", " a time"))])
    model.hold()
    async with start(pace=AT_ONCE) as gateway:
        telegram.user_says("tell me")
        await shown(telegram, "Once upon")
        await state_is(gateway, "sent")
        telegram.refuse_next("editMessageText", 400, "Bad Request: message to edit not found", times=5)
        model.release()
        await answered(telegram, "Once upon a time")
    assert telegram.texts(7)[-1] == "Once upon a time"


async def test_a_turn_left_because_the_store_was_down_is_shown_once_when_it_goes_on(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    model.calls_tools([("search_files", {"text": "x"})])
    model.hold()
    async with start(pace=AT_ONCE, limits=StoreLimits(busy_seconds=0.2)) as gateway:
        telegram.user_says("look for x")
        await telegram.wait_for(lambda: telegram.typings == 1, SECONDS)
        async with holding_the_lock(tmp_path / "home" / "state.db"):
            model.release()
            await until(lambda: _has_trouble(gateway))
            model.says("found")
        await answered(telegram, "found")
        await until(_shows_nothing)
        assert telegram.texts().count("found") == 1


async def _has_trouble(gateway: Gateway) -> bool:
    return bool((await gateway.status())["troubles"])


async def _shows_nothing() -> bool:
    return not [task for task in asyncio.all_tasks() if task.get_name().startswith("present ")]


async def test_a_letter_that_expires_is_kept_with_its_reason_and_said_in_the_log(
    start: Start, telegram: FakeTelegram, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    telegram.limit_next_send(30)
    async with start(clock=clock) as gateway:
        await write(gateway, "too late")
        await until(lambda: _waits(gateway))
        clock.advance(7 * 3600)
        await state_is(gateway, "dead")
        [letter] = await outbox_rows(gateway)
    assert letter.reason.startswith("expired")
    assert "Delivery expired" in caplog.messages
    assert telegram.sent == []
