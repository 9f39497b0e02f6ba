"""What may happen to a database file while we rely on it: the engine stays up, brings back what is there, says so."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sqlite3
import stat
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import ForeignHomeError, StoreIsDownError
from hermes.store import inbox, migrations
from hermes.store.db import StoreLimits, Tx
from hermes.store.open import open_database
from hermes.store.sqlite import backup, page_map
from hermes.store.sqlite import file as sqlite_file
from hermes.store.sqlite.file import beside
from hermes.store.sqlite.page_map import SUFFIX
from tests.unit.store.conftest import Store, count, fill, put

PAGE = 4096


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def corrupt_files(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.glob(f"{path.name}.corrupt.*"))


@pytest.mark.parametrize("zeroed", [16, 100, 512, PAGE])
async def test_a_zeroed_header_brings_every_row_back(store: Store, zeroed: int) -> None:
    await store.plant(1000)
    overwrite(store.path, 0, bytes(zeroed))
    async with store.open() as database:
        assert await database.read(count) == 1000
        assert await database.read(lambda tx: tx.value("SELECT count(*) FROM others")) == 100
        await database.write(put, "new")
    assert store.told("damage") == [
        "state.db was damaged (file is not a database). Recovered all 1,100 rows. "
        f"The damaged file is kept as {corrupt_files(store.path)[0]}."
    ]


async def test_a_zeroed_header_without_its_kept_page_still_brings_the_rows_back(store: Store) -> None:
    await store.plant(1000)
    beside(store.path, ".head").unlink()
    (store.path.parent / ".hermes-home").write_text("{}")
    overwrite(store.path, 0, bytes(100))
    async with store.open() as database:
        assert await database.read(count) == 1000


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7, 0.9])
async def test_a_page_of_garbage_costs_its_own_rows_only(store: Store, place: float) -> None:
    await store.plant(1000)
    page = int(store.path.stat().st_size // PAGE * place)
    overwrite(store.path, page * PAGE, b"\xa5" * PAGE)
    async with store.open() as database:
        assert await database.read(count) >= 980
        await database.write(put, "new")


async def test_a_table_whose_root_page_is_gone_is_read_page_by_page(store: Store) -> None:
    await store.plant(1000)
    connection = sqlite3.connect(store.path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
    connection.close()
    overwrite(store.path, (root - 1) * PAGE, bytes(PAGE))
    async with store.open() as database:
        assert await database.read(count) == 1000
        assert await database.read(lambda tx: tx.value("SELECT text FROM notes WHERE key = 'k00007'")) == (
            "7 " + "x" * 400
        )


async def test_long_rows_are_read_through_their_overflow_pages(store: Store) -> None:
    long = "long ↻ " * 3000
    async with store.open() as database:
        await database.write(fill, 300)
        await database.write(lambda tx: tx.run("UPDATE notes SET text = :text WHERE key = 'k00150'", text=long))
    connection = sqlite3.connect(store.path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
    connection.close()
    overwrite(store.path, (root - 1) * PAGE, bytes(PAGE))
    async with store.open() as database:
        assert await database.read(lambda tx: tx.value("SELECT text FROM notes WHERE key = 'k00150'")) == long


@pytest.mark.parametrize("head", [b"", bytes(PAGE), b"SQLite format 3"])
async def test_a_kept_page_that_was_damaged_with_the_file_is_not_used(store: Store, head: bytes) -> None:
    await store.plant(1000)
    beside(store.path, ".head").write_bytes(head)
    overwrite(store.path, 0, bytes(100))
    async with store.open() as database:
        assert await database.read(count) == 1000


async def test_a_recovery_that_breaks_us_is_told_and_tried_again(store: Store) -> None:
    await store.plant(100)
    is_wrong = False

    def clock() -> float:
        if is_wrong:
            raise ValueError("no time at all")
        return 1_000.0

    database = await open_database(
        store.path, migrations=store.migrations, clock=clock, on_trouble=store.troubles.append
    )
    try:
        is_wrong = True
        overwrite(store.path, 0, bytes(100))
        failed = asyncio.ensure_future(database.write(put, "lost"))
        await asyncio.wait([failed], timeout=10)
        assert failed.done()
        assert isinstance(failed.exception(), StoreIsDownError)
        is_wrong = False
        await database.write(put, "new")
        assert await database.read(count) == 101
    finally:
        await database.close()
    assert store.told("down") == ["state.db could not be recovered: no time at all. The log has the details."]


async def test_a_page_that_breaks_while_running_is_recovered_and_the_waiting_write_goes_through(store: Store) -> None:
    await store.plant(1000)
    connection = sqlite3.connect(store.path)
    root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'notes'").fetchone()[0]
    connection.close()
    async with store.open() as database:
        overwrite(store.path, (root - 1) * PAGE, b"\xa5" * PAGE)
        await asyncio.gather(*(database.write(put, f"new{number}") for number in range(5)))
        assert await database.read(count) == 1005
    assert len(store.told("damage")) == 1
    assert len(corrupt_files(store.path)) >= 1


async def test_a_reader_that_finds_the_damage_first_gets_its_answer_too(store: Store) -> None:
    await store.plant(1000)
    async with store.open() as database:
        overwrite(store.path, 4 * PAGE, b"\xa5" * (store.path.stat().st_size - 6 * PAGE))
        assert await database.read(count) > 0
    assert len(store.told("damage")) == 1


async def test_the_damaged_set_is_kept_together_and_can_be_opened_as_it_was(store: Store) -> None:
    async with store.open() as database:
        await database.write(fill, 50)
        for suffix in ("", "-wal"):
            shutil.copy(beside(store.path, suffix), beside(store.path, f".copy{suffix}"))
    for suffix in ("", "-wal"):
        beside(store.path, f".copy{suffix}").replace(beside(store.path, suffix))
    overwrite(store.path, 0, bytes(100))
    async with store.open() as database:
        assert await database.read(count) == 50
    names = corrupt_files(store.path)
    assert [name.partition("-")[2] for name in names if "-" in name] == ["wal"]
    assert len(names[0].removeprefix("state.db.corrupt.")) == 14


async def crash_with_wal(store: Store, *, with_index: bool) -> Path:
    """Leave the files as a killed process does: ten keys in the database's log, not yet in the database."""
    await store.plant(200)
    return await be_killed_after(store, "w", ("", "-wal", "-shm") if with_index else ("", "-wal"))


async def be_killed_after(store: Store, prefix: str, suffixes: tuple[str, ...]) -> Path:
    async with store.open() as database:
        for number in range(10):
            await database.write(put, f"{prefix}{number}")
        for suffix in (*suffixes, SUFFIX):
            shutil.copy(beside(store.path, suffix), beside(store.path, f".copy{suffix}"))
    for suffix in (*suffixes, SUFFIX):
        beside(store.path, f".copy{suffix}").replace(beside(store.path, suffix))
    return beside(store.path, "-wal")


async def test_after_a_kill_the_log_is_read_and_nothing_is_told(store: Store) -> None:
    await crash_with_wal(store, with_index=True)
    async with store.open() as database:
        assert await database.read(count) == 210
    assert not store.troubles


async def test_a_truncated_wal_keeps_the_transactions_before_the_cut_and_the_loss_is_told(store: Store) -> None:
    wal = await crash_with_wal(store, with_index=True)
    os.truncate(wal, wal.stat().st_size * 2 // 3)
    async with store.open() as database:
        assert 202 < await database.read(count) < 210
        await database.write(put, "new")
    assert "its write-ahead log is damaged" in store.told("damage")[0]


async def test_a_frame_of_garbage_in_the_wal_costs_that_frame_only(store: Store) -> None:
    wal = await crash_with_wal(store, with_index=False)
    frame = PAGE + 24
    overwrite(wal, 32 + 2 * frame + 24, b"\xa5" * PAGE)
    async with store.open() as database:
        assert await database.read(count) >= 208
    assert "its write-ahead log is damaged" in store.told("damage")[0]


async def test_a_wal_whose_header_is_gone_is_read_by_its_frames(store: Store) -> None:
    wal = await crash_with_wal(store, with_index=False)
    overwrite(wal, 0, bytes(32))
    async with store.open() as database:
        assert await database.read(count) >= 209


async def test_a_wal_cut_while_running_does_not_stop_the_store(store: Store) -> None:
    await store.plant(200)
    async with store.open() as database:
        for number in range(20):
            await database.write(put, f"n{number}")
        os.truncate(beside(store.path, "-wal"), 0)
        for number in range(20):
            await database.write(put, f"m{number}")
        assert await database.read(count) >= 220


async def test_a_missing_column_is_added_at_open_and_told(store: Store) -> None:
    await store.plant(10)
    connection = sqlite3.connect(store.path)
    connection.execute("ALTER TABLE notes DROP COLUMN count")
    connection.execute("DROP INDEX notes_text")
    connection.close()
    async with store.open() as database:
        assert await database.read(lambda tx: tx.value("SELECT sum(count) FROM notes")) == 0
    assert store.told("drift") == ["state.db lacked column notes.count, index notes_text. I have added that."]


async def test_a_column_lost_while_running_is_added_and_the_write_goes_through(store: Store) -> None:
    async with store.open() as database:
        await database.write(put, "a")
        connection = sqlite3.connect(store.path)
        connection.execute("ALTER TABLE notes DROP COLUMN count")
        connection.close()
        await database.write(lambda tx: tx.run("UPDATE notes SET count = 3"))
        assert await database.read(lambda tx: tx.value("SELECT count FROM notes")) == 3


async def test_what_cannot_be_added_while_running_is_the_error_of_who_needs_it_and_stops_nobody_else(
    store: Store,
) -> None:
    async with store.open() as database:

        def take_away(tx: Tx) -> None:
            tx.run("DROP TABLE others")
            tx.run("CREATE VIEW others AS SELECT 1 AS one")

        await database.write(take_away)
        lost = asyncio.ensure_future(database.write(lambda tx: tx.value("SELECT at FROM others")))
        await asyncio.wait([lost], timeout=10)
        assert lost.done()
        assert "no such column" in str(lost.exception())
        await database.write(put, "new")
        assert await database.read(count) == 1


async def test_a_column_lost_while_running_is_added_for_a_reader_too(store: Store) -> None:
    async with store.open() as database:
        await database.write(put, "a")
        connection = sqlite3.connect(store.path)
        connection.execute("ALTER TABLE notes DROP COLUMN count")
        connection.close()
        assert await database.read(lambda tx: tx.value("SELECT sum(count) FROM notes")) == 0
        with pytest.raises(sqlite3.OperationalError, match="no such column: shape"):
            await database.read(lambda tx: tx.value("SELECT shape FROM notes"))
    assert store.told("drift") == ["state.db lacked column notes.count. I have added that."]


async def test_a_schema_changed_by_another_process_is_seen_at_once(store: Store) -> None:
    async with store.open() as database:
        await database.write(put, "a")
        assert len(await database.read(lambda tx: tx.one("SELECT * FROM notes", lambda *row: row) or ())) == 4
        connection = sqlite3.connect(store.path)
        connection.execute("ALTER TABLE notes ADD COLUMN shape TEXT DEFAULT 'round'")
        connection.close()
        assert await database.write(lambda tx: tx.run("UPDATE notes SET shape = 'square'")) == 1
        assert len(await database.read(lambda tx: tx.one("SELECT * FROM notes", lambda *row: row) or ())) == 5


async def test_a_deleted_file_is_put_back_whole(store: Store) -> None:
    await store.plant(100)
    async with store.open() as database:
        await database.write(put, "fresh")
        store.path.unlink()
        await database.write(put, "after")
        assert await database.read(count) == 102
    assert store.told("replaced") == ["state.db was deleted while in use. I have put it back, whole."]
    connection = sqlite3.connect(store.path)
    assert connection.execute("SELECT count(*) FROM notes").fetchone() == (102,)
    connection.close()


async def test_a_file_replaced_by_another_of_ours_is_used_and_the_old_content_kept(store: Store) -> None:
    await store.plant(10)
    shutil.copy(store.path, store.path.with_name("older.db"))
    async with store.open() as database:
        await database.write(fill, 50, "n")
        store.path.with_name("older.db").replace(store.path)
        assert await database.read(count) == 10
        await database.write(put, "after")
        assert await database.read(count) == 11
        assert "I work with the new file." in store.told("replaced")[0]
    kept = next((store.path.parent / "backups").glob("*.replaced"))
    connection = sqlite3.connect(kept)
    assert connection.execute("SELECT count(*) FROM notes").fetchone() == (60,)
    connection.close()


async def test_a_file_overwritten_in_place_is_read_anew(store: Store) -> None:
    await store.plant(10)
    before = store.path.read_bytes()
    async with store.open() as database:
        await database.write(fill, 50, "n")
        await database.alone(lambda tx: tx.value("PRAGMA user_version"))
        overwrite(store.path, 0, before)
        await database.write(put, "after")
        assert store.told("replaced") or store.told("damage")
        assert await database.read(count) >= 11


async def test_a_file_replaced_by_an_empty_one_loses_nothing(store: Store) -> None:
    await store.plant(10)
    async with store.open() as database:
        await database.write(put, "fresh")
        store.path.with_name("empty").touch()
        store.path.with_name("empty").replace(store.path)
        await database.write(put, "after")
        assert await database.read(count) == 12
    assert "the file is empty" in store.told("damage")[0]


async def test_a_file_replaced_by_garbage_loses_nothing(store: Store) -> None:
    await store.plant(10)
    async with store.open() as database:
        await database.write(put, "fresh")
        garbage = store.path.with_name("garbage")
        garbage.write_bytes(b"this is no database" * 1000)
        garbage.replace(store.path)
        await database.write(put, "after")
        assert await database.read(count) == 12
    assert store.told("damage")


async def test_a_foreign_file_put_in_our_place_is_left_alone_and_the_store_says_that_it_is_down(store: Store) -> None:
    foreign = store.path.with_name("foreign.db")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE invoices (id)")
    connection.commit()
    connection.close()
    before = foreign.read_bytes()
    async with store.open() as database:
        await database.write(put, "a")
        foreign.replace(store.path)
        with pytest.raises((StoreIsDownError, ForeignHomeError)):
            await database.write(put, "b")
        with pytest.raises((StoreIsDownError, ForeignHomeError)):
            await database.read(count)
        assert store.path.read_bytes() == before


async def test_a_foreign_file_is_refused_at_open_and_not_touched(store: Store) -> None:
    connection = sqlite3.connect(store.path)
    connection.execute("CREATE TABLE sessions (id)")
    connection.commit()
    connection.close()
    store.path.chmod(0o644)
    before = store.path.read_bytes(), store.path.stat()
    with pytest.raises(ForeignHomeError, match="another program"):
        async with store.open():
            pass
    assert (store.path.read_bytes(), store.path.stat()) == before
    assert {entry.name for entry in store.path.parent.iterdir()} == {"state.db", "migrations"}


async def test_a_full_disk_fails_the_writes_in_words_and_passes(store: Store) -> None:
    async with store.open() as database:
        await database.write(fill, 20)
        pages = await database.write(lambda tx: tx.value("PRAGMA page_count"))
        await database.alone(lambda tx: tx.value(f"PRAGMA max_page_count = {pages}"))
        outcomes = await asyncio.gather(
            *(database.write(fill, 200, f"f{number}") for number in range(4)), return_exceptions=True
        )
        assert all(isinstance(outcome, StoreIsDownError) for outcome in outcomes)
        where = f"The disk of {store.path.parent} is full, so state.db cannot grow"
        assert str(outcomes[0]) == f"{where} → free some space; nothing else is needed"
        assert await database.read(count) == 20
        await database.alone(lambda tx: tx.value("PRAGMA max_page_count = 1073741823"))
        await database.write(fill, 200, "later")
        assert await database.read(count) == 220
    assert len(store.told("full")) == 1
    assert len(store.told("back")) == 1


async def test_a_refused_wal_means_one_warning_and_a_slower_journal(store: Store) -> None:
    where = f"file:{store.path}?vfs=unix-dotfile"
    async with store.open(where) as database:
        await asyncio.gather(*(database.write(put, f"k{number}") for number in range(10)))
        assert await asyncio.gather(*(database.read(count) for _ in range(5))) == [10] * 5
        assert await database.write(lambda tx: tx.value("PRAGMA journal_mode")) == "truncate"
        assert not beside(store.path, "-wal").exists()
    async with store.open(where) as database:
        assert await database.read(count) == 10
    assert len(store.told("journal")) == 2
    assert "network filesystem (NFS" in store.told("journal")[0]


async def test_a_file_with_a_log_is_taken_off_it_where_there_can_be_none(store: Store) -> None:
    """As when a home is moved to a network filesystem."""
    await store.plant(20)
    async with store.open(f"sqlite:///{store.path}?vfs=unix-dotfile") as database:
        assert await database.read(count) == 20
        await database.write(put, "a")
    assert len(store.told("journal")) == 1
    async with store.open() as database:
        assert await database.read(count) == 21


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


@asynccontextmanager
async def holding_the_lock(path: Path) -> AsyncIterator[Callable[[], None]]:
    """Another process is in the middle of a write until it is told to let go."""
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    yield holder.stdin.close
    await holder.wait()


async def test_a_lock_held_by_another_process_is_told_once_and_passes(store: Store) -> None:
    async with store.open() as database:
        await database.write(put, "a")
        async with holding_the_lock(store.path) as let_go:
            for _ in range(2):
                with pytest.raises(StoreIsDownError, match=r"state\.db is locked by python"):
                    await database.write(put, "b")
            assert await database.read(count) == 1  # readers go on
            waiting = asyncio.create_task(database.write(put, "c"))
            let_go()
            await waiting
        assert await database.read(count) == 2
    [told] = store.told("locked")
    found = re.fullmatch(
        r"state\.db is locked by python\S* \(process (\d+)\) → let it finish, or end it: kill (\d+)", told
    )
    assert found is not None, told
    assert found[1] == found[2]
    assert len(store.told("back")) == 1


async def test_works_again_is_said_only_after_rows_were_written(store: Store) -> None:
    async with store.open() as database:
        await database.write(put, "a")
        async with holding_the_lock(store.path) as let_go:
            with pytest.raises(StoreIsDownError):
                await database.write(put, "b")
            let_go()
        assert await database.write(count) == 1  # takes the lock, and writes nothing
        assert store.told("back") == []
        with pytest.raises(LookupError):
            await database.write(put_and_fail, "c")
        assert store.told("back") == []
        await database.write(put, "d")
        assert len(store.told("back")) == 1


def put_and_fail(tx: Tx, key: str) -> None:
    put(tx, key)
    raise LookupError(key)


async def test_a_trouble_that_is_over_is_noticed_though_nobody_writes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.sqlite.database.TRY_AGAIN_SECONDS", 0.05)
    async with store.open() as database:
        async with holding_the_lock(store.path) as let_go:
            with pytest.raises(StoreIsDownError):
                await database.write(put, "b")
            assert store.told("back") == []
            let_go()
        async with asyncio.timeout(10):
            while not store.told("back"):  # noqa: ASYNC110 - the store tells it to a list
                await asyncio.sleep(0.01)
        assert await database.read(count) == 0


async def test_writers_wait_for_a_recovery_and_are_told_when_it_takes_too_long(store: Store) -> None:
    await store.plant(200)
    go_on = threading.Event()
    go_on.set()

    def clock() -> float:  # the recovery asks for the time when it names the file it sets aside
        go_on.wait(10)
        return 1_700_000_000.0

    database = await open_database(
        store.path,
        migrations=store.migrations,
        clock=clock,
        limits=StoreLimits(busy_seconds=0.2, heal_wait_seconds=0.1),
        on_trouble=store.troubles.append,
    )
    try:
        go_on.clear()
        overwrite(store.path, PAGE, b"\xa5" * (store.path.stat().st_size - PAGE))
        with pytest.raises(StoreIsDownError):
            await database.read(count)  # a fresh connection meets the damage; the writer's may still have its pages
        with pytest.raises(StoreIsDownError, match="being recovered"):
            await database.write(put, "a")
        go_on.set()
        async with asyncio.timeout(20):
            while True:
                try:
                    await database.write(put, "b")
                    break
                except StoreIsDownError:
                    await asyncio.sleep(0.01)
        assert corrupt_files(store.path)[0] == "state.db.corrupt.20231114221320"
    finally:
        await database.close()


async def test_a_recovery_that_was_killed_at_its_last_step_is_finished_at_the_next_start(store: Store) -> None:
    await store.plant(30)
    shutil.copy(store.path, beside(store.path, ".rebuilt"))
    overwrite(store.path, 0, bytes(PAGE))
    async with store.open() as database:
        assert await database.read(count) == 30
    store.path.replace(beside(store.path, ".rebuilt"))
    async with store.open() as database:
        assert await database.read(count) == 30


async def test_every_file_is_its_owners_alone_whatever_the_umask(store: Store) -> None:
    before = os.umask(0)
    try:
        async with store.open() as database:
            await database.write(put, "a")
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in store.path.parent.glob("state.db*")}
            assert {"state.db", "state.db-wal", "state.db-shm", "state.db.head"} <= set(modes)
            assert set(modes.values()) == {0o600}
        store.path.chmod(0o644)
        async with store.open() as database:
            await database.write(put, "b")
            assert {stat.S_IMODE(entry.stat().st_mode) for entry in store.path.parent.glob("state.db*")} == {0o600}
    finally:
        os.umask(before)


async def test_a_migration_makes_a_backup_first(store: Store) -> None:
    await store.plant(10)
    (store.migrations / "0002_more.sql").write_text("DELETE FROM notes;\n")
    async with store.open() as database:
        assert await database.read(count) == 0
    (copy,) = (store.path.parent / "backups").iterdir()
    assert copy.name.endswith(".before-2")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT count(*) FROM notes").fetchone() == (10,)
    connection.close()


async def test_a_cancelled_task_never_leaves_the_writer_waiting(store: Store) -> None:
    async with store.open() as database:
        tasks = [asyncio.create_task(database.write(put, f"k{number}")) for number in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes) == 25
        assert await database.read(count) == 50


async def test_one_broken_statement_is_the_callers_own_error(store: Store) -> None:
    def broken(tx: Tx) -> None:
        tx.run("SELECT nothing FROM nowhere")

    async with store.open() as database:
        outcomes = await asyncio.gather(
            database.write(put, "a"), database.write(broken), database.write(put, "b"), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [type(None), sqlite3.OperationalError, type(None)]
        assert await database.read(count) == 2


async def test_a_large_file_is_checked_after_the_start_and_healed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.sqlite.database.CHECK_AFTER_SECONDS", 0.01)
    await store.plant(300)
    overwrite(store.path, store.path.stat().st_size // PAGE // 2 * PAGE, b"\xa5" * PAGE)
    async with store.open(limits=StoreLimits(checked_at_open_bytes=0)) as database:
        async with asyncio.timeout(20):
            while not store.told("damage"):  # noqa: ASYNC110 - the check has no caller to answer
                await asyncio.sleep(0.01)
        await database.write(put, "new")
        assert await database.read(lambda tx: tx.value("PRAGMA quick_check")) == "ok"


async def test_the_kept_first_page_follows_a_changed_schema_and_a_replaced_file(store: Store) -> None:
    await store.plant(10)
    connection = sqlite3.connect(store.path)
    connection.execute("CREATE TABLE more AS SELECT * FROM notes")
    connection.execute("VACUUM")
    connection.close()
    async with store.open() as database:
        await database.write(put, "new")
    overwrite(store.path, 0, bytes(PAGE))
    async with store.open() as database:
        assert await database.read(count) == 11


async def test_a_recovered_file_can_be_recovered_again(store: Store) -> None:
    await store.plant(500)
    for _ in range(3):
        overwrite(store.path, 0, bytes(PAGE))
        async with store.open() as database:
            assert await database.read(count) == 500
    assert len(corrupt_files(store.path)) == 3


@pytest.mark.parametrize("whole", [0, 1 << 20])
async def test_a_truncated_wal_is_noticed_whatever_of_the_file_is_copied_to_ask(
    store: Store, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    """The tables of a database are named on pages that may lie anywhere in it."""
    monkeypatch.setattr("hermes.store.sqlite.wal._COPIED_WHOLE", whole)
    more = "".join(f"CREATE TABLE more_{number} (a TEXT, b TEXT, c TEXT);\n" for number in range(100))
    store.path.parent.joinpath("migrations", "0002_more.sql").write_text(more)
    await crash_with_wal(store, with_index=True)
    async with store.open() as database:
        assert await database.read(count) == 210
    assert not store.troubles
    log = await be_killed_after(store, "x", ("", "-wal", "-shm"))
    os.truncate(log, log.stat().st_size * 2 // 3)
    async with store.open() as database:
        assert await database.read(count) > 210
    assert "its write-ahead log is damaged" in store.told("damage")[0]


async def test_a_fresh_store_has_nothing_to_back_up(tmp_path: Path) -> None:
    await (await open_database(tmp_path / "state.db")).close()
    assert backup.newest(tmp_path / "state.db") == []


async def test_a_file_of_the_first_release_that_lost_an_index_is_brought_up_to_date(tmp_path: Path) -> None:
    """A later migration puts others in the place of these."""
    path, first = tmp_path / "state.db", tmp_path / "first"
    first.mkdir()
    shutil.copy(Path(migrations.__file__).parent / "0001_start.sql", first)
    await (await open_database(path, migrations=first)).close()
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP INDEX inbox_open")
    now = await open_database(path)
    assert await now.read(inbox.waiting_count) == 0
    await now.close()


async def test_a_file_that_was_only_touched_is_not_checked_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.plant(100)
    async with store.open() as database:
        await database.write(put, "a")
        looked = watch_checks(monkeypatch)
        for number in range(20):
            os.utime(store.path, (number, number))
            await database.write(put, f"b{number}")
        assert await database.read(count) == 121
    assert looked == ["compared"]


async def test_a_file_damaged_after_it_was_touched_is_noticed_a_little_later(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.plant(100)
    async with store.open() as database:
        os.utime(store.path, (1, 1))
        await database.write(put, "a")
        overwrite(store.path, store.path.read_bytes().index(b"50 xxx"), b"4")
        await database.write(put, "b")
        assert store.told("damage") == []
        monkeypatch.setattr("hermes.store.sqlite.connection.TOUCHED_SECONDS", 0.0)
        await database.write(put, "c")
        assert len(store.told("damage")) == 1
        assert await database.read(count) == 103


def watch_checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to all of a file from now on."""
    looked: list[str] = []
    compare, check = page_map.compare, sqlite_file.check

    def compared(*args: Any) -> Any:
        looked.append("compared")
        return compare(*args)

    def checked(connection: sqlite3.Connection, *, whole: bool) -> None:
        if whole:
            looked.append("checked")
        check(connection, whole=whole)

    monkeypatch.setattr(page_map, "compare", compared)
    monkeypatch.setattr(sqlite_file, "check", checked)
    return looked
