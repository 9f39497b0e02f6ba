"""Files that never arrived are told with the next turn of their chat, once, and the others are forgotten."""

from __future__ import annotations

from hermes.store import outbox, outbox_files, outbox_sending
from hermes.store.db import Database
from hermes.store.outbox_files import LostFile, OutboxFile
from tests.contract.store.rows import LANE, NOW, begin_next, begun_turn, letter, open_target


async def test_a_lost_file_is_told_with_the_next_turn_and_only_once(database: Database) -> None:
    begun = await begun_turn(database)
    assert not begun.has_lost_files
    await database.write(
        outbox_files.note, [OutboxFile("ob_a", 0, LANE, "a.pdf"), OutboxFile("ob_b", 0, LANE, "b.pdf")]
    )
    await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(outbox_sending.record_rejected, "ob_a", reason="too odd", now=NOW)
    again = await database.write(begin_next, begun)
    assert again is not None
    assert again.has_lost_files
    assert await database.write(outbox_files.take_lost, LANE) == [LostFile("a.pdf", "too odd")]
    assert await database.write(outbox_files.take_lost, LANE) == []
    third = await database.write(begin_next, again)
    assert third is not None
    assert not third.has_lost_files


async def test_whether_the_person_was_told_is_known(database: Database) -> None:
    await database.write(outbox_files.note, [OutboxFile("ob_a", 0, LANE, "a.pdf")])
    await open_target(database, letter(row_id="ob_a"))
    await database.write(outbox_sending.record_rejected, "ob_a", reason="too odd", now=NOW)
    await database.write(outbox.enqueue, [letter(row_id=outbox_files.word_of("ob_a"))], now=NOW)
    assert await database.write(outbox_files.take_lost, LANE) == [LostFile("a.pdf", "too odd", was_told=True)]


async def test_what_died_in_a_bunch_is_found_by_the_sweep_and_what_arrived_is_forgotten(database: Database) -> None:
    begun = await begun_turn(database)
    files = [
        OutboxFile("ob_a", 0, LANE, "a.pdf"),
        OutboxFile("ob_b", 0, LANE, "b.pdf"),
        OutboxFile("ob_b", 1, LANE, "c.pdf"),
    ]
    for _ in range(2):
        await database.write(outbox_files.note, files)
    await open_target(database, letter(row_id="ob_a"), letter(row_id="ob_b"))
    await database.write(outbox_sending.record_sent, "ob_a", message_id="1", note="", now=NOW)
    await database.write(outbox.withdraw, "ob_b", reason="stopped", now=NOW)
    await database.write(outbox_files.sweep)
    again = await database.write(begin_next, begun)
    assert again is not None
    assert again.has_lost_files
    assert await database.write(outbox_files.take_lost, LANE) == [
        LostFile("b.pdf", "stopped"),
        LostFile("c.pdf", "stopped"),
    ]
    assert await database.read(lambda tx: tx.value("SELECT COUNT(*) FROM files_out")) == 0
