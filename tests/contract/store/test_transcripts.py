"""Transcripts: lines are appended with exact numbers, and never rewritten."""

from __future__ import annotations

import asyncio

import pytest

from hermes.store.db import Database, Tx
from hermes.store.sessions import transcripts
from tests.contract.store.rows import (
    NOW,
    said,
    start_session,
)


async def test_lines_are_numbered_without_a_gap_whoever_appends(database: Database) -> None:
    await database.write(start_session)
    batches = [said(f"{number}a", f"{number}b") for number in range(20)]
    await asyncio.gather(*(database.write(transcripts.append, "s_1", "t_1", batch, now=NOW) for batch in batches))
    lines = await database.read(transcripts.lines, "s_1")
    assert [line.seq for line in lines] == list(range(1, 41))
    texts = [message.text for message in await database.read(transcripts.history, "s_1")]
    assert all(texts[index][:-1] == texts[index + 1][:-1] for index in range(0, 40, 2)), "a batch stays together"


async def test_appending_to_a_session_that_was_deleted_does_nothing(database: Database) -> None:
    assert await database.write(transcripts.append, "s_gone", "t_1", said("hello"), now=NOW) == 0
    assert await database.read(transcripts.lines, "s_gone") == []


async def test_history_is_the_newest_part_oldest_first(database: Database) -> None:
    await database.write(start_session)
    await database.write(transcripts.append, "s_1", "t_1", said(*"abcde"), now=NOW)
    assert [message.text for message in await database.read(transcripts.history, "s_1", limit=3)] == ["c", "d", "e"]
    assert [line.seq for line in await database.read(transcripts.lines, "s_1", after=3)] == [4, 5]


DAMAGED = ("not json", "", '{"role":"user","text":"x"},{"role":"user","text":"y"}', '{"role":"king"}', '"', "]", "[")


@pytest.mark.parametrize("body", DAMAGED)
async def test_a_line_that_cannot_be_read_is_left_out_of_the_history(database: Database, body: str) -> None:
    await database.write(start_session)
    await database.write(transcripts.append, "s_1", "t_1", said(*"abc"), now=NOW)

    def spoil(tx: Tx) -> None:
        tx.run("UPDATE transcript SET body = :body WHERE seq = 2", body=body)

    await database.write(spoil)
    talk = await database.read(transcripts.context, "s_1")
    assert [message.text for message in talk.messages] == ["a", "c"]
    assert (talk.seqs, talk.last_seq) == ([1, 3], 3)


async def test_the_lines_of_a_turn_are_found_wherever_they_stand(database: Database) -> None:
    await database.write(start_session)
    for turn in range(1, 6):
        texts = [f"{turn}.{number}" for number in range(70)]
        await database.write(transcripts.append, "s_1", f"t_{turn}", said(*texts), now=NOW)
    for turn in (1, 3, 5):
        lines = await database.read(transcripts.lines_of_turn, "s_1", f"t_{turn}")
        assert [line.seq for line in lines] == list(range(70 * turn - 69, 70 * turn + 1))
    assert await database.read(transcripts.lines_of_turn, "s_1", "t_9") == []
