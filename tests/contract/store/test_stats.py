"""Counts of what the store holds, and whether it is sound."""

from __future__ import annotations

from hermes.store import outbox_sending
from hermes.store.db import Database
from hermes.store.reports import stats
from tests.contract.store.rows import NOW, TARGET, begun_turn, letter, open_target


async def test_what_was_sent_within_a_time_is_counted_by_target(database: Database) -> None:
    await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(outbox_sending.record_sent, "ob_a", message_id="55", note="", now=NOW + 1)
    assert await database.read(stats.sent_counts, since=NOW, before=NOW + 5) == {TARGET: 1}
    assert await database.read(stats.sent_counts, since=NOW + 2, before=NOW + 5) == {}
    assert await database.read(stats.sent_counts, since=NOW - 9, before=NOW + 1) == {}


async def test_the_store_says_that_it_is_sound_and_what_is_in_it(database: Database) -> None:
    await begun_turn(database)
    assert (await database.read(stats.check))["is_sound"]
    counts = await database.read(stats.counts, now=NOW)
    assert (counts["sessions"], counts["dead_letters"]) == (1, 0)
