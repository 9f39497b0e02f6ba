"""The write-ahead log is copied in small steps, pruning waits for no disk, and the page map is compacted beside."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from hermes.store.db import Tx
from hermes.store.retention import pruning
from hermes.store.sqlite import page_map, wal
from hermes.store.sqlite.page_map import PageMap, PageMapFile, PageSum
from hermes.store.sqlite.page_map_compaction import PageMapCompaction
from hermes.store.sqlite.page_map_format import CHANGES, OPENED, WHOLE
from tests.unit.store.conftest import Store, count, fill, put

MB = 1024 * 1024


def test_a_log_that_was_begun_anew_is_not_taken_for_a_large_one(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("CREATE TABLE rows (text TEXT)")
        assert not wal.has_grown(path, (b"", 0), MB)
        db.execute("INSERT INTO rows VALUES (zeroblob(?))", [3 * MB])
        assert wal.has_grown(path, (b"", 0), MB)
        _, frames, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        end = wal.end_of(path, frames)
        assert not wal.has_grown(path, end, MB), "nothing was written since"
        db.execute("INSERT INTO rows VALUES ('x')")  # over the first frames: the file stays as large
        assert (tmp_path / "state.db-wal").stat().st_size > 3 * MB
        assert not wal.has_grown(path, end, MB)
        db.execute("INSERT INTO rows VALUES (zeroblob(?))", [2 * MB])
        assert wal.has_grown(path, end, MB)


def test_without_a_log_nothing_has_grown(tmp_path: Path) -> None:
    assert not wal.has_grown(tmp_path / "state.db", (b"", 0), MB)
    (tmp_path / "state.db-wal").write_bytes(b"no log at all, and longer than its header would be")
    assert not wal.has_grown(tmp_path / "state.db", (b"", 0), 0)


def level(tx: Tx) -> int:
    return int(tx.value("PRAGMA synchronous"))


def fail(tx: Tx) -> None:
    put(tx, "undone")
    raise LookupError


async def test_only_pruning_does_not_wait_for_the_disk(store: Store) -> None:
    full, normal = 2, 1
    async with store.open() as database:
        assert await database.write(level) == full
        assert await database.prune(level) == normal
        assert await database.alone(level) == full
        with pytest.raises(LookupError):
            await database.prune(fail)
        await database.write(put, "kept")
        assert await database.write(level) == full
        assert await database.read(count) == 1


def count_up(tx: Tx, keys: str) -> None:
    tx.run("UPDATE notes SET count = 1 WHERE key LIKE :keys", keys=keys)


async def test_a_log_that_pruning_fills_is_copied_while_it_is_small(store: Store) -> None:
    async with store.open() as database:
        await database.write(fill, 20_000)
        before = store.path.stat().st_mtime_ns
        log = store.path.with_name("state.db-wal")
        size = log.stat().st_size
        for number in range(20):
            await database.prune(count_up, f"k{number:03}%")
        assert store.path.stat().st_mtime_ns > before
        assert log.stat().st_size == size, "it was begun anew, not made longer"
        await database.write(put, "last")
        assert not wal.has_grown(store.path, (b"", 0), 3 * MB)
    assert store.troubles == []
    async with store.open() as database:
        assert await database.read(lambda tx: tx.value("SELECT SUM(count) FROM notes")) == 2000
    assert store.troubles == []


# Bites


def test_a_bite_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    gone = []

    def delete(row_id: str) -> int:
        nonlocal now
        now += 0.004
        gone.append(row_id)
        return 1

    rows = [("a", 1.0, 1), ("b", 2.0, 0), ("c", 3.0, 1), ("d", 4.0, 1)]
    bite = pruning._delete(rows, 4, delete)
    assert (gone, bite.pruned, bite.after) == (["a", "c"], 2, (3.0, "c"))


# The page map


def a_map(chance: random.Random, pages: int) -> PageMap:
    found = PageMap(512, pages, chance.randbytes(8), 7)
    for number in range(1, pages + 1):
        found.sums[number] = PageSum(chance.getrandbits(32), chance.choice((0, 2, 5, 13)), chance.randrange(90))
    found.copies = {n: chance.randbytes(512) for n, known in found.sums.items() if known.kind == 5 or n == 1}
    found.copies[1] = bytes(512)
    return found


def batches(path: Path, chance: random.Random) -> None:
    """A map with many changes: pages that became something else, a database that shrank and grew."""
    data = page_map._batch(WHOLE, a_map(chance, 300)) + page_map._batch(OPENED, PageMap(0))
    for _ in range(40):
        whole = a_map(chance, chance.randrange(250, 350))
        changed = set(chance.sample(range(1, whole.count + 1), 20)) | {1}
        some = PageMap(512, whole.count, whole.salts, whole.frames)
        some.sums = {number: known for number, known in whole.sums.items() if number in changed}
        some.copies = {number: page for number, page in whole.copies.items() if number in changed}
        data += page_map._batch(CHANGES, some)
    path.write_bytes(data)


def test_a_compacted_map_says_the_same(tmp_path: Path) -> None:
    chance = random.Random(3)
    path = tmp_path / "state.db.pages"
    batches(path, chance)
    before, end = page_map.load(path), path.stat().st_size
    compaction = PageMapCompaction(path, end)
    later = a_map(chance, 300)  # appended while the thread works
    with path.open("ab") as file:
        file.write(page_map._batch(CHANGES, later))
    whole = page_map.load(path)
    size, whole_size = compaction.adopt()
    after = page_map.load(path)
    assert before is not None
    assert whole is not None
    assert after is not None
    assert (after.sums, after.copies) == (whole.sums, whole.copies)
    assert (after.count, after.salts, after.frames) == (later.count, later.salts, later.frames)
    assert (after.is_whole, after.was_closed, after.end) == (True, False, size)
    assert path.stat().st_size == size < end
    assert whole_size < size
    assert list(tmp_path.glob("state.db*")) == [path]


def test_a_damaged_map_is_not_compacted(tmp_path: Path) -> None:
    path = tmp_path / "state.db.pages"
    batches(path, random.Random(4))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(OSError, match="was damaged"):
        PageMapCompaction(path, len(data)).adopt()
    assert path.read_bytes() == bytes(data)
    assert list(tmp_path.glob("state.db*")) == [path]


async def test_a_store_compacts_its_map_while_it_works(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_map, "_COMPACTED_BYTES", 5000)
    compacted = []
    adopt = PageMapCompaction.adopt

    def noted(self: PageMapCompaction) -> tuple[int, int]:
        compacted.append(self)
        return adopt(self)

    monkeypatch.setattr(PageMapCompaction, "adopt", noted)
    async with store.open() as database:
        deadline = time.monotonic() + 60
        number = 0
        while not compacted:
            assert time.monotonic() < deadline
            await asyncio.gather(*(database.alone(put, f"{number}-{n}") for n in range(100)))
            number += 1
    known = page_map.load(store.path.with_name("state.db.pages"))
    assert known is not None
    assert known.was_closed
    assert page_map.compare(store.path, known) == []
    async with store.open() as database:
        assert await database.read(count) == number * 100
    assert store.troubles == []


def test_a_map_that_is_given_up_leaves_no_compaction_behind(tmp_path: Path) -> None:
    path = tmp_path / "state.db.pages"
    batches(path, random.Random(5))
    kept = PageMapFile(tmp_path / "state.db")
    known = page_map.load(path)
    assert known is not None
    kept.go_on(known)
    kept._whole_size = 0
    kept._compaction = PageMapCompaction(path, path.stat().st_size)
    kept.drop()
    assert list(tmp_path.glob("state.db*")) == []
