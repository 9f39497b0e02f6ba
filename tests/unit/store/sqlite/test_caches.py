"""What the readers of a store keep of its file is given back on asking."""

from __future__ import annotations

import asyncio
import ctypes
import sqlite3
from collections.abc import Callable

import pytest

from hermes.store.db import Tx
from tests.unit.store.conftest import Store


@pytest.fixture
def held_by_sqlite() -> Callable[[], int]:
    """Tell how many bytes SQLite has allocated in this process."""
    try:
        library = ctypes.CDLL("libsqlite3.so.0")  # the one that Python has loaded
    except OSError:
        pytest.skip("Python carries an SQLite of its own, which cannot be asked")
    held = library.sqlite3_memory_used
    held.restype = ctypes.c_int64
    with sqlite3.connect(":memory:") as probe:
        probe.execute("SELECT 1")
        if not held():
            pytest.skip("this SQLite does not count its memory")
    probe.close()
    return lambda: int(held())


def fill(tx: Tx) -> None:
    for number in range(1000):
        tx.run("INSERT INTO notes (key, text) VALUES (:key, :text)", key=f"{number}", text="x" * 3000)


def read_all(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM notes WHERE text LIKE '%y'"))


async def test_pages_that_readers_keep_are_given_back_and_read_again(
    store: Store, held_by_sqlite: Callable[[], int]
) -> None:
    async with store.open() as db:
        await db.write(fill)
        await asyncio.gather(*(db.read(read_all) for _ in range(8)))
        before = held_by_sqlite()
        db.free_caches()
        assert before - held_by_sqlite() > 1_000_000
        assert await db.read(read_all) == 0
    db.free_caches()  # nobody is asked any more
