"""Sending from the outbox: rows leave in order for each target, and each outcome is recorded once."""

from __future__ import annotations

import asyncio

import pytest

from hermes.store import claims, outbox, outbox_sending
from hermes.store.db import Database
from hermes.store.outbox import OutboxKind
from hermes.store.outbox_sending import MAX_REPEATS
from hermes.store.reports import stats
from tests.contract.store.rows import NOW, OWNER, TARGET, letter, next_letter, open_target, row_of


async def test_a_row_is_unknown_while_it_leaves_and_sent_when_it_has(database: Database) -> None:
    begun = await open_target(database, letter("hello", row_id="ob_a"))
    assert begun.sending is not None
    assert (begun.sending.id, begun.sending.attempts, begun.sending.repeats) == ("ob_a", 1, 0)
    assert (await row_of(database, "ob_a")).state == "unknown"
    await database.write(outbox_sending.record_sent, "ob_a", message_id="55", note="", now=NOW + 1)
    sent = await row_of(database, "ob_a")
    assert (sent.state, sent.message_id, sent.settled_at) == ("sent", "55", NOW + 1)
    assert await next_letter(database, begun.claim) is None
    assert await database.read(claims.held_by, "targets", owner=OWNER) == []


async def test_a_receipt_is_recorded_once_however_often_it_is_told(database: Database) -> None:
    await open_target(database, letter(row_id="ob_a"))
    await database.write(outbox_sending.record_sent, "ob_a", message_id="55", note="", now=NOW + 1)
    await database.write(outbox_sending.record_sent, "ob_a", message_id="56", note="", now=NOW + 2)
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW, reason="late")
    row = await row_of(database, "ob_a")
    assert (row.state, row.message_id, row.settled_at) == ("sent", "55", NOW + 1)


async def test_rows_of_a_target_leave_in_the_order_they_were_written(database: Database) -> None:
    first, second = letter(row_id="ob_1"), letter(row_id="ob_2")
    await database.write(outbox.enqueue, [second], now=NOW)
    await database.write(outbox.enqueue, [first], now=NOW)
    begun = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW)
    assert begun is not None
    assert begun.sending is not None
    assert begun.sending.id == "ob_2"
    assert await database.write(outbox_sending.take, TARGET, owner="inc_2", now=NOW) is None, "one sender per target"


async def test_what_did_not_leave_is_tried_again_later_without_a_mark(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW + 30, reason="retry after 30")
    assert await next_letter(database, begun.claim) is None, "what stands behind it waits with it"
    assert await database.read(claims.next_due, "targets") == NOW + 30
    again = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW + 30)
    assert again is not None
    assert again.sending is not None
    assert (again.sending.id, again.sending.attempts, again.sending.repeats) == ("ob_a", 2, 0)


async def test_an_unknown_outcome_is_repeated_three_times_and_then_dead(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    assert begun.sending is not None
    repeats = [begun.sending.repeats]
    now = NOW
    while True:
        now += 10
        await database.write(outbox_sending.record_unknown, "ob_a", not_before=now, reason="no answer")
        sending = await next_letter(database, begun.claim, now=now)
        assert sending is not None
        if sending.id != "ob_a":
            break
        repeats.append(sending.repeats)
    assert repeats == [0, 1, 2, MAX_REPEATS]
    dead = await row_of(database, "ob_a")
    assert dead.state == "dead"
    assert "3 repeats" in dead.reason
    assert sending.id == "ob_b"


async def test_a_crash_in_mid_send_is_a_repeat_and_a_crash_before_it_is_none(database: Database) -> None:
    await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(claims.free_older, "targets", owner="inc_2", now=NOW)
    begun = await database.write(outbox_sending.take, TARGET, owner="inc_2", now=NOW)
    assert begun is not None
    assert begun.sending is not None
    assert (begun.sending.id, begun.sending.repeats) == ("ob_a", 1)
    await database.write(outbox_sending.record_sent, "ob_a", message_id="1", note="", now=NOW)
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert (sending.id, sending.repeats) == ("ob_b", 0)


async def test_a_doubtful_row_keeps_its_mark_when_its_repeat_did_not_leave(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"))
    await database.write(outbox_sending.record_unknown, "ob_a", not_before=NOW, reason="no answer")
    assert await next_letter(database, begun.claim) is not None
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW, reason="429")
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert sending.repeats == 1


async def test_a_refused_part_ends_its_group_and_nothing_else(database: Database) -> None:
    parts = [letter(row_id=f"ob_g.{index}", group="ob_g", idx=index) for index in range(3)]
    begun = await open_target(database, *parts, letter(row_id="ob_other"))
    await database.write(outbox_sending.record_rejected, "ob_g.0", reason="blocked by the user", now=NOW)
    rows = await database.read(outbox.of_group, "ob_g")
    assert [row.state for row in rows] == ["dead"] * 3
    assert rows[0].reason == "blocked by the user"
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert sending.id == "ob_other"


async def test_after_a_long_outage_nothing_old_is_sent_and_the_target_goes_on(database: Database) -> None:
    """More rows than are looked at in one go: the new one behind them is reached all the same."""
    old = [letter(row_id=f"ob_{number}", expires_at=NOW + 10) for number in range(230)]
    fresh = letter(row_id="ob_new", expires_at=NOW + 99)
    await database.write(outbox.enqueue, [*old, fresh], now=NOW)
    begun = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=NOW + 50)
    assert begun is not None
    assert begun.sending is not None
    assert begun.sending.id == "ob_new"
    assert begun.expired == 230
    assert len(await database.read(outbox.dead_letters, limit=300)) == 230
    assert await database.read(stats.outbox_counts, since=0.0) == {"dead": 230, "unknown": 1}


async def test_a_message_that_is_gone_cannot_be_replaced_so_it_is_sent_anew(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_p", kind=OutboxKind.PREVIEW))
    await database.write(outbox_sending.record_sent, "ob_p", message_id="77", note="", now=NOW)
    await database.write(outbox.enqueue, [letter(row_id="ob_f", replaces="ob_p")], now=NOW)
    assert await next_letter(database, begun.claim) is not None
    await database.write(outbox_sending.send_anew, "ob_f", reason="message to edit not found")
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert (sending.id, sending.replaces_message, sending.repeats) == ("ob_f", "", 0)


async def test_a_preview_whose_outcome_is_unknown_is_not_repeated(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_p", kind=OutboxKind.PREVIEW), letter(row_id="ob_f"))
    await database.write(outbox_sending.record_unknown, "ob_p", not_before=NOW, reason="no answer")
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert sending.id == "ob_f"
    assert (await row_of(database, "ob_p")).state == "dead"


async def test_a_sender_that_lost_its_target_gets_no_more_rows(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(claims.free_older, "targets", owner="inc_2", now=NOW)
    assert await database.write(outbox_sending.begin_next, begun.claim, now=NOW) is None
    assert await database.read(claims.due, "targets", now=NOW) == [TARGET]


async def test_a_target_rests_only_when_nothing_is_left_and_nothing_came(database: Database) -> None:
    begun = await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(outbox_sending.record_sent, "ob_a", message_id="1", note="", now=NOW)
    assert not await database.write(outbox_sending.rest, begun.claim), "the second part is still to be sent"
    second = await next_letter(database, begun.claim)
    assert second is not None
    await database.write(outbox_sending.record_sent, "ob_b", message_id="2", note="", now=NOW)
    await database.write(outbox.enqueue, [letter(row_id="ob_c")], now=NOW)
    await database.write(outbox.withdraw, "ob_c", reason="", now=NOW)
    assert not await database.write(outbox_sending.rest, begun.claim), "something came since it was claimed"
    assert await next_letter(database, begun.claim) is None
    assert await database.read(claims.held_by, "targets", owner=OWNER) == []
    again = await open_target(database, letter(row_id="ob_d"))
    await database.write(outbox_sending.record_sent, "ob_d", message_id="3", note="", now=NOW)
    assert await database.write(outbox_sending.rest, again.claim)
    assert await database.read(claims.held_by, "targets", owner=OWNER) == []


@pytest.mark.parametrize("count", [40])
async def test_letters_written_while_others_leave_all_leave_once(database: Database, count: int) -> None:
    sent: list[str] = []

    async def write() -> None:
        for number in range(count):
            await database.write(outbox.enqueue, [letter(row_id=f"ob_{number:03}")], now=NOW)

    async def send(owner: str) -> None:
        while len(sent) < count:
            begun = await database.write(outbox_sending.take, TARGET, owner=owner, now=NOW)
            while begun is not None and begun.sending is not None:
                sent.append(begun.sending.id)
                await database.write(outbox_sending.record_sent, begun.sending.id, message_id="1", note="", now=NOW)
                begun = await database.write(outbox_sending.begin_next, begun.claim, now=NOW)
            await asyncio.sleep(0.001)

    async with asyncio.timeout(20):
        await asyncio.gather(write(), send("inc_1"), send("inc_2"))
    assert sent == [f"ob_{number:03}" for number in range(count)]


async def test_a_final_text_replaces_the_preview_that_was_shown(database: Database) -> None:
    preview = letter("thin", row_id="ob_p", kind=OutboxKind.PREVIEW, turn_id="t_1")
    begun = await open_target(database, preview)
    assert await database.read(outbox.preview_of_turn, "t_1") == "ob_p"
    await database.write(outbox_sending.record_sent, "ob_p", message_id="77", note="", now=NOW)
    await database.write(outbox.enqueue, [letter("thinking done", turn_id="t_1", replaces="ob_p")], now=NOW)
    sending = await next_letter(database, begun.claim)
    assert sending is not None
    assert sending.replaces_message == "77"
    assert await database.read(outbox.preview_of_turn, "t_1") == "", "it has its final text already"
