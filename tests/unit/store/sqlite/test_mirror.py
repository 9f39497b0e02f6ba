"""Who is who, written beside the store: what a change costs, and what comes back of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.store.db import Database, Tx
from hermes.store.open import open_database
from hermes.store.sqlite import mirror
from hermes.store.sqlite.file import tx_of
from hermes.store.sqlite.mirror import NAME, Mirror


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
async def database(folder: Path) -> AsyncIterator[Database]:
    opened = await open_database(folder / "state.db")
    yield opened
    await opened.close()


def arrive(tx: Tx, *people: str) -> None:
    for person in people:
        tx.run("INSERT INTO people (id, name, role, created_at) VALUES (:id, 'Ana', 'user', 1.0)", id=person)


def lose_the_file(folder: Path) -> None:
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (folder / name).unlink(missing_ok=True)


async def written(folder: Path, person: str) -> None:
    async with asyncio.timeout(20):
        while ("people", person) not in mirror.read(folder).rows:  # noqa: ASYNC110 - a file gives no signal
            await asyncio.sleep(0.02)


async def test_a_newcomer_among_many_costs_a_line_and_not_the_file(database: Database, folder: Path) -> None:
    path = folder / NAME
    await database.write(arrive, *(f"p_{number}" for number in range(500)))
    await written(folder, "p_499")
    before = path.stat()
    await database.write(arrive, "p_new")
    await written(folder, "p_new")
    after = path.stat()
    assert after.st_ino == before.st_ino
    assert after.st_size - before.st_size < 200
    assert after.st_mode & 0o777 == 0o600


async def test_the_last_word_about_a_row_comes_back_and_a_deleted_row_does_not(folder: Path) -> None:
    database = await open_database(folder / "state.db")
    await database.write(arrive, "p_1", "p_2", "p_3")
    await written(folder, "p_3")
    await database.write(lambda tx: tx.run("UPDATE people SET role = 'admin' WHERE id = 'p_1'"))
    await database.write(lambda tx: tx.run("UPDATE people SET id = 'p_moved' WHERE id = 'p_2'"))
    await database.write(lambda tx: tx.run("DELETE FROM people WHERE id = 'p_3'"))
    await database.close()
    lose_the_file(folder)
    database = await open_database(folder / "state.db")
    try:
        found = await database.read(lambda tx: tx.all("SELECT id, role FROM people ORDER BY id", lambda *row: row))
    finally:
        await database.close()
    assert found == [("p_1", "admin"), ("p_moved", "user")]


async def test_a_table_that_was_emptied_is_not_filled_from_an_old_backup(folder: Path) -> None:
    database = await open_database(folder / "state.db")
    await database.write(arrive, "p_1")
    await database.write(lambda tx: tx.run("DELETE FROM people"))
    await database.close()
    assert "people" in mirror.read(folder).tables
    assert mirror.read(folder).of("people") == []


def test_the_file_is_written_whole_when_what_was_appended_outweighs_it(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT)")
        connection.execute("INSERT INTO people VALUES ('p_1', 'Ana')")
        writer = Mirror(tmp_path, appended_at_least=5)
        assert len(list(writer.triggers(connection, "noted"))) == 3
        counts = []
        for number in range(8):
            connection.execute("UPDATE people SET name = ?", [f"Ana {number}"])
            writer.write(tx_of(connection), [writer.name_of("people", "p_1")])
            counts.append(len((tmp_path / NAME).read_text().splitlines()))
    assert counts == [2, 3, 4, 5, 6, 7, 8, 2]
    assert mirror.read(tmp_path).of("people") == [{"id": "p_1", "name": "Ana 7"}]


async def test_the_first_change_after_a_start_writes_what_a_kill_had_cut_off(folder: Path) -> None:
    database = await open_database(folder / "state.db")
    await database.write(arrive, "p_1", "p_2")
    await database.close()
    path = folder / NAME
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "p_2" not in line))
    database = await open_database(folder / "state.db")
    await database.write(arrive, "p_3")
    await database.close()
    assert {row["id"] for row in mirror.read(folder).of("people")} == {"p_1", "p_2", "p_3"}


def test_a_line_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    row = {"id": "p_1", "name": "Ana", "role": "owner", "created_at": 1.0}
    good = json.dumps({"table": "people", "key": ["p_1"], "row": row})
    (tmp_path / NAME).write_text(f'{{"tables": ["people"]}}\n{{"table": "peo\n[1]\n{good}\n{good[:-20]}')
    assert mirror.read(tmp_path).of("people") == [row]
