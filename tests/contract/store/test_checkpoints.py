"""Checkpoints and lists of things to do, on both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes.store import checkpoints, inbox
from hermes.store.checkpoints import ABSENT, Checkpoint
from hermes.store.db import Database
from hermes.store.sessions import sessions, todos
from tests.contract.store.rows import LANE, NOW, incoming

FIRST = Checkpoint(
    "t_1:1:0:aa", LANE, 0, "s_1", "t_1", "t_1:1:0", "ana", "write_file", "/w/ü.txt", "b1", 10, 0o644, "a1", "", NOW
)


def another(name: str, **changes: object) -> Checkpoint:
    return replace(FIRST, id=f"{name}:aa", call_id=name, **changes)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
async def lane(database: Database) -> None:
    await database.write(inbox.accept, [incoming("hi")], now=NOW)


async def test_a_change_is_kept_once_and_numbered_in_its_lane(database: Database) -> None:
    assert await database.write(checkpoints.keep, FIRST) == replace(FIRST, number=1)
    again = replace(FIRST, before="b2", created_at=NOW + 9)
    assert await database.write(checkpoints.keep, again) == replace(FIRST, number=1)
    second = await database.write(checkpoints.keep, another("t_1:2:0"))
    elsewhere = await database.write(checkpoints.keep, another("t_9:1:0", lane="agent:main:telegram:dm:8"))
    assert (second.number, elsewhere.number) == (2, 1)
    assert await database.read(checkpoints.of_call, "t_1:1:0") == [replace(FIRST, number=1)]


async def test_each_person_has_their_own(database: Database) -> None:
    await database.write(checkpoints.keep, FIRST)
    await database.write(checkpoints.keep, another("t_1:2:0", person_id="ben"))
    assert [row.number for row in await database.read(checkpoints.newest, LANE, "ana", limit=9)] == [1]
    assert await database.read(checkpoints.numbered, LANE, "ben", 1) is None
    last = await database.read(checkpoints.last, LANE, "ben")
    assert last is not None
    assert last.number == 2
    assert await database.read(checkpoints.last, "agent:main:telegram:dm:8", "ana") is None


async def test_an_undo_marks_and_an_undo_of_it_unmarks(database: Database) -> None:
    first = await database.write(checkpoints.keep, FIRST)
    undo = await database.write(checkpoints.keep, another("c_1", tool="rollback", undoes=first.id))
    await _expect(database, {1: True, 2: False})
    assert await database.read(checkpoints.last, LANE, "ana") is None
    redo = await database.write(checkpoints.keep, another("c_2", tool="rollback", undoes=undo.id))
    await _expect(database, {1: False, 2: True, 3: False})
    third = await database.write(checkpoints.keep, another("c_3", tool="rollback", undoes=redo.id))
    await _expect(database, {1: True, 2: False, 3: True, 4: False})
    await database.write(checkpoints.withdraw, third.id)
    await _expect(database, {1: False, 2: True, 3: False})
    await database.write(checkpoints.withdraw, "unknown")


async def _expect(database: Database, undone: dict[int, bool]) -> None:
    rows = await database.read(checkpoints.newest, LANE, "ana", limit=9)
    assert {row.number: row.undone_at is not None for row in rows} == undone


async def test_two_that_come_at_once_get_numbers_of_their_own(database: Database) -> None:
    rows = [another(f"t_{number}:1:0") for number in range(10)]
    kept = await asyncio.gather(*(database.write(checkpoints.keep, row) for row in rows))
    assert sorted(row.number for row in kept) == list(range(1, 11))


async def test_what_a_change_left_can_be_told_later(database: Database) -> None:
    await database.write(checkpoints.keep, replace(FIRST, after=""))
    await database.write(checkpoints.note_after, FIRST.id, after=ABSENT)
    row = await database.read(checkpoints.get, FIRST.id)
    assert row is not None
    assert row.after == ABSENT


async def test_the_oldest_go_first_and_a_blob_with_its_last_row(database: Database) -> None:
    for number, (blob, size) in enumerate([("b1", 10), (ABSENT, 0), ("b2", 30), ("b1", 10)]):
        row = another(f"t_{number}:1:0", before=blob, size=size, created_at=NOW + number)
        await database.write(checkpoints.keep, row)
    assert await database.read(checkpoints.total_bytes) == 40
    assert await database.read(checkpoints.older, before=NOW + 2, limit=9) == ["t_0:1:0:aa", "t_1:1:0:aa"]
    assert await database.read(checkpoints.older, before=NOW + 2, limit=1) == ["t_0:1:0:aa"]
    assert await database.read(checkpoints.oldest_of_heaviest, at_least_bytes=0, limit=9) == []
    ids = await database.read(checkpoints.oldest_of_heaviest, at_least_bytes=11, limit=9)
    assert ids == ["t_0:1:0:aa", "t_1:1:0:aa", "t_2:1:0:aa"]
    assert await database.alone(checkpoints.forget, ids) == ["b2"]
    assert await database.alone(checkpoints.forget, ids) == []
    assert await database.read(checkpoints.unneeded, ["b1", "b2"]) == ["b2"]
    assert await database.read(checkpoints.total_bytes) == 10


async def test_when_there_is_too_much_the_person_who_keeps_most_gives_way(database: Database) -> None:
    sizes = [("ben", 5), ("ana", 30), ("ana", 30), ("ben", 5)]
    for number, (person, size) in enumerate(sizes):
        row = another(f"t_{number}:1:0", before=f"b{number}", size=size, created_at=NOW + number)
        await database.write(checkpoints.keep, replace(row, person_id=person))
    assert await database.read(checkpoints.oldest_of_heaviest, at_least_bytes=20, limit=9) == ["t_1:1:0:aa"]


async def test_what_one_person_keeps_is_bounded_in_number_and_bytes_and_others_lose_nothing(database: Database) -> None:
    for number, person in enumerate(["ben", "ana", "ana", "ana", "ana"]):
        row = another(f"t_{number}:1:0", before=f"b{number}", size=10, created_at=NOW + number)
        await database.write(checkpoints.keep, replace(row, person_id=person))

    async def beyond(person: str, *, most_bytes: int, rows: int) -> list[str]:
        ids = await database.read(
            checkpoints.beyond, person, but="t_4:1:0:aa", max_bytes=most_bytes, max_rows=rows, limit=9
        )
        return [name.partition(":")[0] for name in ids]

    assert await beyond("ana", most_bytes=40, rows=4) == []
    assert await beyond("ana", most_bytes=40, rows=3) == ["t_1"]
    assert await beyond("ana", most_bytes=15, rows=9) == ["t_1", "t_2", "t_3"]
    assert await beyond("ana", most_bytes=0, rows=0) == ["t_1", "t_2", "t_3"]  # never the one that was just kept
    assert await beyond("ben", most_bytes=10, rows=1) == []


async def test_a_list_is_replaced_as_a_whole_and_goes_with_its_session(database: Database) -> None:
    assert await database.read(todos.get, "s_1") == ""
    await database.write(todos.put, "s_1", '[{"id": "1"}]', now=NOW)
    await database.write(todos.put, "s_1", '[{"id": "ü"}]', now=NOW)
    await database.write(todos.put, "s_2", "[]", now=NOW)
    assert await database.read(todos.get, "s_1") == '[{"id": "ü"}]'
    await database.write(sessions.delete, "s_1")
    assert await database.read(todos.get, "s_1") == ""
    assert await database.read(todos.get, "s_2") == "[]"
