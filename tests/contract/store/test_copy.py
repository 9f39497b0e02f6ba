"""A store copied into another database: every table, every row, both ways; killed in the middle and gone on with."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from hermes.core.errors import ConfigError, GatewayError
from hermes.hosting import locks, paths
from hermes.store import migrate
from hermes.store.api import responses
from hermes.store.copy.copy import CopyProgress, StorePlace, copy_store, refuse_running_gateways, running_gateways
from hermes.store.db import Tx
from hermes.store.kanban import open as kanban
from hermes.store.open import DEFAULT_MIGRATIONS, open_database
from tests.chaos.store_copies import ROWS, copy_command, digests, killed_and_gone_on_with, rows_arrived, seeded
from tests.contract.store.servers import PostgresForTests
from tests.fakes.rows import all_tables


def ignore(_progress: CopyProgress) -> None:
    """Show nothing."""


def contents(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "run" not in path.parts
    }


@pytest.fixture
def sqlite(tmp_path: Path) -> StorePlace:
    (tmp_path / "one").mkdir()
    return StorePlace(str(tmp_path / "one" / "state.db"))


@pytest.fixture
def other_sqlite(tmp_path: Path) -> StorePlace:
    (tmp_path / "two").mkdir()
    return StorePlace(str(tmp_path / "two" / "state.db"))


@pytest.fixture
def server(postgres: PostgresForTests) -> Iterator[StorePlace]:
    with postgres.schema() as url:
        yield StorePlace(url)


def test_every_table_of_the_migrations_is_copied() -> None:
    """A table that a migration makes is in the list by itself, and has a key to go by."""
    made = set()
    for migrations in (DEFAULT_MIGRATIONS, responses.MIGRATIONS, kanban.MIGRATIONS):
        for step in migrate.load(migrations):
            for statement in step.statements:
                made |= set(re.findall(r"^CREATE TABLE (\w+)", statement))
                made -= set(re.findall(r"^DROP TABLE (\w+)", statement))
    assert {table.name for table in all_tables()} == made
    assert all(table.key for table in all_tables())


async def test_store_goes_to_postgresql_and_back_with_every_row(
    sqlite: StorePlace, server: StorePlace, other_sqlite: StorePlace
) -> None:
    await seeded(sqlite)
    before = contents(sqlite.path.parent)
    told = await copy_store(sqlite, server, show=ignore)
    assert contents(sqlite.path.parent) == before  # not one byte of the source, and no file beside it
    back = await copy_store(server, other_sqlite, show=ignore)
    wanted = digests(sqlite)
    assert set(wanted) == {table.name for table in all_tables()}
    assert all(rows == ROWS for rows, _ in wanted.values())
    assert digests(server) == digests(other_sqlite) == wanted
    assert {one.name: (one.digest.rows, one.digest.checksum) for one in told} == wanted
    assert told == back


@pytest.mark.one_python
async def test_interrupted_copy_goes_on_behind_the_last_chunk(
    sqlite: StorePlace, server: StorePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await seeded(sqlite)
    monkeypatch.setattr("hermes.store.copy.copy.CHUNK_ROWS", 7)
    shown: list[CopyProgress] = []

    def until_transcript(progress: CopyProgress) -> None:
        shown.append(progress)
        if progress.table == "transcript" and progress.rows >= 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await copy_store(sqlite, server, show=until_transcript)
    with pytest.raises(ConfigError, match="not complete"):
        await open_database(server.address)
    first = len([one for one in shown if one.task == "copy"])
    shown.clear()
    await copy_store(sqlite, server, show=shown.append)
    again = [one for one in shown if one.task == "copy"]
    assert (again[0].table, again[0].rows) == ("transcript", 21)
    assert first + len(again) == 6 * len(all_tables())  # no chunk was copied twice
    assert digests(server) == digests(sqlite)
    await (await open_database(server.address)).close()  # open to everybody again


@pytest.mark.one_python
async def test_copy_of_a_source_that_changed_between_two_tries_is_right(sqlite: StorePlace, server: StorePlace) -> None:
    await seeded(sqlite)

    def until_turns(progress: CopyProgress) -> None:
        if progress.table == "turns":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await copy_store(sqlite, server, show=until_turns)
    db = await open_database(sqlite.address)
    await db.write(lambda tx: tx.run("UPDATE sessions SET title = 'renamed since'"))
    await db.close()
    await copy_store(sqlite, server, show=ignore)
    assert digests(server) == digests(sqlite)


@pytest.mark.one_python
async def test_copy_refuses_a_destination_that_holds_data_until_told_to_replace_it(
    sqlite: StorePlace, server: StorePlace, other_sqlite: StorePlace
) -> None:
    await seeded(sqlite, 3)
    await seeded(other_sqlite, 5)
    await seeded(server, 2)
    before = digests(server)
    with pytest.raises(ConfigError, match="--replace"):
        await copy_store(sqlite, server, show=ignore)
    assert digests(server) == before
    await copy_store(sqlite, server, show=ignore, replaces=True)
    assert digests(server) == digests(sqlite)


@pytest.mark.one_python
async def test_copy_from_another_source_does_not_go_on_with_a_beginning(
    sqlite: StorePlace, server: StorePlace, other_sqlite: StorePlace
) -> None:
    await seeded(sqlite, 3)
    await seeded(other_sqlite, 3)

    def at_once(_progress: CopyProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await copy_store(sqlite, server, show=at_once)
    with pytest.raises(ConfigError, match="beginning of a copy from"):
        await copy_store(other_sqlite, server, show=ignore)


async def test_values_that_one_database_cannot_hold_are_the_same_on_both_sides(
    sqlite: StorePlace, server: StorePlace
) -> None:
    await seeded(sqlite, 2)

    def damage(tx: Tx) -> None:
        tx.run("UPDATE sessions SET title = 'a' || char(0) || 'b', created_at = 'no time', seq = 'no number'")
        tx.run("UPDATE turns SET reason = CAST(x'ff41' AS TEXT), created_at = -0.0")

    db = await open_database(sqlite.address)
    await db.write(damage)
    await db.close()
    await copy_store(sqlite, server, show=ignore)
    assert digests(server) == digests(sqlite)


async def test_source_of_an_older_schema_is_refused_and_left_as_it_is(sqlite: StorePlace, server: StorePlace) -> None:
    await seeded(sqlite, 1)
    db = await open_database(sqlite.address)
    await db.write(migrate.note, "version", "1")
    await db.close()
    before = contents(sqlite.path.parent)
    with pytest.raises(ConfigError, match="older schema"):
        await copy_store(sqlite, server, show=ignore)
    assert contents(sqlite.path.parent) == before


async def test_copy_refuses_while_a_gateway_works_on_postgresql(server: StorePlace) -> None:
    db = await open_database(server.address)
    with refuse_running_gateways(server.address):
        assert running_gateways(server.address) == []
    with psycopg.connect(server.address, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO nodes (id, name, host, pid, version, schema_version, state, started_at, beat_at, lease_until)"
            " VALUES ('n1', 'one', 'box', 1, '1', 6, 'up', 0, 0, EXTRACT(EPOCH FROM clock_timestamp()) + 60)"
        )
        with pytest.raises(GatewayError, match="one on box"), refuse_running_gateways(server.address):
            pass
        admin.execute("UPDATE nodes SET lease_until = EXTRACT(EPOCH FROM clock_timestamp()) - 1")
        with refuse_running_gateways(server.address):
            pass
    await db.close()


# The command


@pytest.mark.one_python
async def test_killed_copy_command_goes_on_both_ways(
    sqlite: StorePlace, server: StorePlace, other_sqlite: StorePlace
) -> None:
    await seeded(sqlite)
    said = await killed_and_gone_on_with(sqlite, server, "before_commit:0.03")
    assert re.search(r"^sessions +40 +[0-9a-f]{16}$", said, re.MULTILINE)
    assert "counts and checksums are equal" in said
    assert "HERMES_DATABASE_URL" in said
    await killed_and_gone_on_with(server, other_sqlite, "before_commit:0.03")


async def test_copy_command_refuses_a_home_in_use(sqlite: StorePlace, other_sqlite: StorePlace) -> None:
    await seeded(sqlite, 1)
    lock = locks.take(paths.owner_lock(str(sqlite.path.parent)), "hermes gateway")
    assert lock is not None
    try:
        command = copy_command(sqlite, other_sqlite)
        _, complaint = command.communicate(timeout=60)
    finally:
        lock.release()
    assert command.returncode == 1
    assert "is in use by" in complaint
    assert not rows_arrived(other_sqlite, "sessions")
