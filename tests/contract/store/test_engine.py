"""What both databases promise to the store functions."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError, StoreIsDownError
from hermes.store.db import Database, Tx
from hermes.store.open import open_database


def put(tx: Tx, key: str, text: str = "") -> None:
    tx.run("INSERT INTO notes (key, text) VALUES (:key, :text)", key=key, text=text)


def keys(tx: Tx) -> list[str]:
    return tx.all("SELECT key FROM notes ORDER BY key", str)


class RefusalError(Exception):
    pass


def put_and_fail(tx: Tx, key: str) -> None:
    put(tx, key)
    raise RefusalError(key)


async def test_a_write_returns_its_result_and_a_later_read_sees_it(engine: Database) -> None:
    def add(tx: Tx, key: str, *, text: str) -> str:
        put(tx, key, text)
        return text.upper()

    assert await engine.write(add, "a", text="hello") == "HELLO"
    assert await engine.read(keys) == ["a"]


async def test_a_member_that_fails_takes_back_its_own_writes_only(engine: Database) -> None:
    calls = [engine.write(put_and_fail if number % 3 == 0 else put, f"k{number:02}") for number in range(30)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    failed = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, RefusalError)]
    assert failed == list(range(0, 30, 3))
    assert await engine.read(keys) == [f"k{number:02}" for number in range(30) if number % 3]


async def test_what_a_member_reads_in_part_harms_no_other(engine: Database) -> None:
    await asyncio.gather(*(engine.write(put, key) for key in "abc"))

    def touch_all(tx: Tx) -> str:
        tx.value("SELECT key FROM notes")
        return str(tx.value("UPDATE notes SET text = 'seen' RETURNING text"))

    calls = [engine.write(touch_all), engine.write(put_and_fail, "d"), engine.write(touch_all), engine.write(put, "e")]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [outcomes[0], outcomes[2], outcomes[3]] == ["seen", "seen", None]
    assert isinstance(outcomes[1], RefusalError)
    assert await engine.read(keys) == ["a", "b", "c", "e"]


async def test_a_lone_write_that_fails_leaves_nothing(engine: Database) -> None:
    with pytest.raises(RefusalError):
        await engine.write(put_and_fail, "a")
    assert await engine.read(keys) == []


async def test_a_doubled_key_is_the_callers_error_and_not_a_store_that_is_down(engine: Database) -> None:
    await engine.write(put, "a")
    with pytest.raises(Exception, match=r"(?i)unique") as caught:
        await engine.write(put, "a")
    assert not isinstance(caught.value, StoreIsDownError)
    await engine.write(put, "b")


async def test_values_come_back_alike_from_both_databases(engine: Database) -> None:
    def values(tx: Tx) -> list[object]:
        put(tx, "ä:%s 'quoted' ↻", "100% :not_a_name")
        put(tx, "b", "x")
        tx.run("UPDATE notes SET count = :count", count=True)
        return [
            tx.value("SELECT SUM(count) FROM notes"),
            tx.value("SELECT text FROM notes WHERE key LIKE 'ä:%' AND text <> ':x'"),
            tx.value("SELECT COUNT(*) FROM notes WHERE key = :key", key="ä:%s 'quoted' ↻"),
            tx.value("SELECT CAST(:x AS DOUBLE PRECISION)", x=1.5),
            tx.one("SELECT key FROM notes WHERE key = 'none'", str),
            tx.run("DELETE FROM notes"),
        ]

    found = await engine.write(values)
    assert found == [2, "100% :not_a_name", 1, 1.5, None, 2]
    assert type(found[0]) is int


async def test_a_read_may_not_write(engine: Database) -> None:
    with pytest.raises(Exception, match=r"(?i)read.?only"):
        await engine.read(put, "a")


async def test_a_cancelled_write_waits_for_its_outcome(engine: Database) -> None:
    started, go_on = threading.Event(), threading.Event()

    def slow(tx: Tx) -> None:
        put(tx, "a")
        started.set()
        go_on.wait(5)

    task = asyncio.create_task(engine.write(slow))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await engine.read(keys) == ["a"]


def claim(tx: Tx, owner: str) -> str | None:
    return tx.one(
        f"""
        UPDATE targets SET owner = :owner, token = token + 1
        WHERE owner IS NULL AND target = (
            SELECT target FROM targets WHERE owner IS NULL ORDER BY target LIMIT 1 {tx.dialect.skip_locked})
        RETURNING target
        """,
        str,
        owner=owner,
    )


def give_back(tx: Tx, target: str | None) -> None:
    tx.run("UPDATE targets SET owner = NULL WHERE target = :target", target=target)


def owners(tx: Tx) -> list[str | None]:
    return tx.all("SELECT owner FROM targets ORDER BY target", lambda owner: owner)


def plant(tx: Tx, count: int) -> None:
    for number in range(count):
        tx.run("INSERT INTO targets (target) VALUES (:target)", target=f"t{number:03}")


async def test_a_claim_whose_caller_is_gone_is_given_back(engine: Database) -> None:
    await engine.write(plant, 1)
    started, go_on = threading.Event(), threading.Event()

    def slow_claim(tx: Tx, owner: str) -> str | None:
        started.set()
        go_on.wait(5)
        return claim(tx, owner)

    task = asyncio.create_task(engine.claim(slow_claim, "me", if_gone=give_back))
    await asyncio.to_thread(started.wait, 5)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await engine.read(owners) == [None]


async def test_claims_from_four_connections_never_hand_out_one_target_twice(
    engine: Database, database_url: str, notes: Path
) -> None:
    await engine.write(plant, 40)
    others = [await open_database(database_url, migrations=notes) for _ in range(3)]
    try:
        everyone = [engine, *others]
        taken = await asyncio.gather(*(everyone[n % 4].write(claim, f"o{n % 4}") for n in range(48)))
    finally:
        for other in others:
            await other.close()
    got = [target for target in taken if target]
    assert len(got) == len(set(got))
    assert len(got) == 40 or engine.dialect.name == "postgres"  # a locked row is passed over, to be claimed later


async def test_after_closing_every_call_says_that_the_store_is_down(database_url: str, notes: Path) -> None:
    opened = await open_database(database_url, migrations=notes)
    pending = [asyncio.ensure_future(opened.write(put, f"k{n}")) for n in range(20)]
    await asyncio.sleep(0)
    await opened.close()
    await asyncio.gather(*pending)  # what was queued is finished first
    with pytest.raises(StoreIsDownError):
        await opened.write(put, "late")
    with pytest.raises(StoreIsDownError):
        await opened.read(keys)


async def test_a_migration_joins_what_is_stored_and_a_column_added_twice_is_no_error(
    database_url: str, notes: Path
) -> None:
    opened = await open_database(database_url, migrations=notes)
    await opened.write(put, "a")
    await opened.write(lambda tx: tx.run("ALTER TABLE notes ADD COLUMN colour TEXT"))
    await opened.close()
    (notes / "0002_colour.sql").write_text(
        "ALTER TABLE notes ADD COLUMN colour TEXT;\nUPDATE notes SET colour = 'red';\n"
    )
    opened = await open_database(database_url, migrations=notes)
    try:
        assert await opened.read(lambda tx: tx.value("SELECT colour FROM notes")) == "red"
        assert await opened.read(lambda tx: tx.value("SELECT value FROM meta WHERE key = 'version'")) == "2"
    finally:
        await opened.close()


async def test_an_older_program_may_use_a_newer_schema_unless_it_says_otherwise(database_url: str, notes: Path) -> None:
    newer = notes / "0002_more.sql"
    newer.write_text("CREATE TABLE more (key TEXT PRIMARY KEY);\n")
    await (await open_database(database_url, migrations=notes)).close()
    newer.unlink()
    await (await open_database(database_url, migrations=notes)).close()
    (notes / "0003_break.sql").write_text("-- min_reader: 3\nCREATE TABLE breaking (key TEXT PRIMARY KEY);\n")
    await (await open_database(database_url, migrations=notes)).close()
    (notes / "0003_break.sql").unlink()
    with pytest.raises(ConfigError, match="newer Hermes"):
        await open_database(database_url, migrations=notes)


async def test_a_migration_that_fails_leaves_nothing_of_itself(database_url: str, notes: Path) -> None:
    (notes / "0002_broken.sql").write_text("CREATE TABLE half (key TEXT);\nCREATE TABEL oops (key TEXT);\n")
    with pytest.raises(Exception, match=r"(?i)syntax"):
        await open_database(database_url, migrations=notes)
    (notes / "0002_broken.sql").write_text("CREATE TABLE half (key TEXT);\n")
    await (await open_database(database_url, migrations=notes)).close()


async def test_two_processes_that_open_a_new_database_at_once_both_get_it(database_url: str, notes: Path) -> None:
    opened = await asyncio.gather(*(open_database(database_url, migrations=notes) for _ in range(4)))
    try:
        counts = [await each.read(lambda tx: tx.value("SELECT COUNT(*) FROM notes")) for each in opened]
    finally:
        await asyncio.gather(*(each.close() for each in opened))
    assert counts == [0, 0, 0, 0]
