"""A clock that is set: what waits for a time comes when it would have come without that."""

from __future__ import annotations

from hermes.store import claims, clock_change, inbox, outbox, outbox_sending, pairings
from hermes.store.db import Database
from tests.contract.store.rows import LANE, NOW, OWNER, TARGET, incoming, letter, open_target

DAY = 86400.0
BACK = NOW + 2 - DAY  # what the clock says now, two seconds after everything here was written


async def test_a_row_that_waits_for_its_next_try_waits_no_longer(database: Database) -> None:
    begun = await open_target(database, letter("hello", row_id="ob_a"))
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW + 5, reason="told to wait 5 s")
    await database.write(outbox_sending.begin_next, begun.claim, now=NOW + 1)
    await database.write(clock_change.shift_back, by=DAY, now=BACK)
    assert await database.read(claims.due, "targets", now=BACK) == []
    assert await database.read(claims.due, "targets", now=BACK + 3) == [TARGET]
    again = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=BACK + 3)
    assert again is not None
    assert again.sending is not None
    assert again.sending.id == "ob_a"


async def test_an_answer_does_not_outlive_its_time_by_a_day(database: Database) -> None:
    await database.write(outbox.enqueue, [letter("hello", row_id="ob_a")], now=NOW)
    before = await database.read(outbox.get, "ob_a")
    await database.write(clock_change.shift_back, by=DAY, now=BACK)
    after = await database.read(outbox.get, "ob_a")
    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at - DAY


async def test_a_message_that_is_joined_with_the_next_is_not_held_back(database: Database) -> None:
    await database.write(inbox.accept, [incoming("one", ready_at=NOW + 1.5)], now=NOW)
    await database.write(clock_change.shift_back, by=DAY, now=BACK)
    assert await database.read(claims.due, "lanes", now=BACK) == [LANE]
    [row] = await database.read(inbox.queued, LANE)
    assert row.ready_at <= BACK


async def test_what_is_not_waiting_stays_as_it_is(database: Database) -> None:
    await open_target(database, letter("hello", row_id="ob_a"))
    await database.write(outbox_sending.record_sent, "ob_a", message_id="55", note="", now=NOW + 1)
    before = await database.read(outbox.get, "ob_a")
    await database.write(clock_change.shift_back, by=DAY, now=BACK)
    assert await database.read(outbox.get, "ob_a") == before


AHEAD = NOW + 2 + DAY  # what the clock says now, two seconds after everything here was written


async def test_an_answer_does_not_expire_because_the_clock_went_ahead(database: Database) -> None:
    await database.write(outbox.enqueue, [letter("hello", row_id="ob_a")], now=NOW)
    before = await database.read(outbox.get, "ob_a")
    await database.write(clock_change.shift_forward, by=DAY, now=NOW + 2)
    after = await database.read(outbox.get, "ob_a")
    assert before is not None
    assert after is not None
    assert after.expires_at == before.expires_at + DAY
    begun = await database.write(outbox_sending.take, TARGET, owner=OWNER, now=AHEAD)
    assert begun is not None
    assert begun.sending is not None
    assert begun.sending.id == "ob_a"


async def test_a_row_that_waits_for_its_next_try_waits_as_long_as_before(database: Database) -> None:
    begun = await open_target(database, letter("hello", row_id="ob_a"))
    await database.write(outbox_sending.record_not_sent, "ob_a", not_before=NOW + 5, reason="told to wait 5 s")
    await database.write(outbox_sending.begin_next, begun.claim, now=NOW + 1)
    await database.write(clock_change.shift_forward, by=DAY, now=NOW + 2)
    assert await database.read(claims.due, "targets", now=AHEAD) == []
    assert await database.read(claims.due, "targets", now=AHEAD + 3) == [TARGET]


async def test_what_had_expired_before_the_clock_went_ahead_does_not_come_back(database: Database) -> None:
    await database.write(outbox.enqueue, [letter("hello", row_id="ob_a")], now=NOW)
    before = await database.read(outbox.get, "ob_a")
    assert before is not None
    await database.write(clock_change.shift_forward, by=DAY, now=before.expires_at + 1)
    assert await database.read(outbox.get, "ob_a") == before


async def test_an_answer_that_is_written_while_the_clock_goes_ahead_does_not_expire_either(database: Database) -> None:
    await database.write(outbox.enqueue, [letter("before", row_id="ob_a")], now=NOW)
    await database.write(clock_change.shift_forward, by=DAY, now=NOW + 2)
    await database.write(outbox.enqueue, [letter("meanwhile", row_id="ob_b")], now=NOW + 3)
    lives = {row_id: await expires_at(database, row_id) for row_id in ("ob_a", "ob_b")}
    await database.write(clock_change.shift_late_forward, by=DAY, now=NOW + 2)
    assert await expires_at(database, "ob_a") == lives["ob_a"]
    assert await expires_at(database, "ob_b") == lives["ob_b"] + DAY


async def expires_at(database: Database, row_id: str) -> float:
    row = await database.read(outbox.get, row_id)
    assert row is not None
    return row.expires_at


async def test_somebody_who_tried_wrong_codes_stays_locked_out(database: Database) -> None:
    for _ in range(5):
        await database.write(pairings.note_wrong, "telegram", most=5, lock_seconds=900, now=NOW)
    assert await database.read(pairings.locked_until, "telegram") == NOW + 900
    await database.write(clock_change.shift_forward, by=DAY, now=NOW + 2)
    assert await database.read(pairings.locked_until, "telegram") == NOW + 900 + DAY
