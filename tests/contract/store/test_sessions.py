"""Sessions: transcripts are appended with exact numbers, and never rewritten."""

from __future__ import annotations

import asyncio

from hermes.core.messages import ChatMessage, Role
from hermes.store import claims, sessions
from hermes.store.db import Database, Tx
from tests.contract.store.rows import LANE, NOW


def start(tx: Tx, session_id: str = "s_1", key: str = LANE) -> None:
    claims.wake(tx, "lanes", key, at=NOW)
    sessions.start(tx, session_id, key, now=NOW)


def said(*texts: str) -> list[ChatMessage]:
    return [ChatMessage(Role.USER, text) for text in texts]


async def test_lines_are_numbered_without_a_gap_whoever_appends(database: Database) -> None:
    await database.write(start)
    batches = [said(f"{number}a", f"{number}b") for number in range(20)]
    await asyncio.gather(*(database.write(sessions.append, "s_1", "t_1", batch, now=NOW) for batch in batches))
    lines = await database.read(sessions.lines, "s_1")
    assert [line.seq for line in lines] == list(range(1, 41))
    texts = [message.text for message in await database.read(sessions.history, "s_1")]
    assert all(texts[index][:-1] == texts[index + 1][:-1] for index in range(0, 40, 2)), "a batch stays together"


async def test_appending_to_a_session_that_was_deleted_does_nothing(database: Database) -> None:
    assert await database.write(sessions.append, "s_gone", "t_1", said("hello"), now=NOW) == 0
    assert await database.read(sessions.lines, "s_gone") == []


async def test_history_is_the_newest_part_oldest_first(database: Database) -> None:
    await database.write(start)
    await database.write(sessions.append, "s_1", "t_1", said(*"abcde"), now=NOW)
    assert [message.text for message in await database.read(sessions.history, "s_1", limit=3)] == ["c", "d", "e"]
    assert [line.seq for line in await database.read(sessions.lines, "s_1", after=3)] == [4, 5]


async def test_a_line_that_cannot_be_read_is_left_out_of_the_history(database: Database) -> None:
    await database.write(start)
    await database.write(sessions.append, "s_1", "t_1", said(*"abc"), now=NOW)

    def spoil(tx: Tx) -> None:
        tx.run("UPDATE transcript SET body = 'not json' WHERE seq = 2")

    await database.write(spoil)
    assert [message.text for message in await database.read(sessions.history, "s_1")] == ["a", "c"]


async def test_leaving_ends_the_session_once(database: Database) -> None:
    await database.write(start)
    assert await database.write(sessions.leave, LANE, reason="/new", now=NOW + 1) == "s_1"
    assert await database.write(sessions.leave, LANE, reason="again", now=NOW + 2) == ""
    ended = await database.read(sessions.get, "s_1")
    assert ended is not None
    assert (ended.ended_at, ended.end_reason) == (NOW + 1, "/new")


async def test_deleting_removes_session_and_transcript(database: Database) -> None:
    await database.write(start)
    await database.write(sessions.append, "s_1", "t_1", said("a"), now=NOW)
    assert await database.write(sessions.delete, "s_1")
    assert not await database.write(sessions.delete, "s_1")
    assert await database.read(sessions.get, "s_1") is None
    assert await database.read(sessions.lines, "s_1") == []
    assert await database.write(sessions.leave, LANE, reason="", now=NOW) == ""


async def test_sessions_are_listed_newest_first_and_can_be_named(database: Database) -> None:
    for number in (1, 2, 3):
        await database.write(start, f"s_{number}", f"agent:main:telegram:dm:{number % 2}")
        await database.write(sessions.append, f"s_{number}", "t", said("x"), now=NOW + number)
    assert [each.id for each in await database.read(sessions.newest)] == ["s_3", "s_2", "s_1"]
    assert [each.id for each in await database.read(sessions.newest, key="agent:main:telegram:dm:1")] == ["s_3", "s_1"]
    assert await database.write(sessions.rename, "s_2", "Garden")
    assert [each.id for each in await database.read(sessions.find, "Garden")] == ["s_2"]
    assert [each.id for each in await database.read(sessions.find, "s_3")] == ["s_3"]
    assert not await database.write(sessions.rename, "s_9", "x")
