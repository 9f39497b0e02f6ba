from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.store.db import Database, StoreLimits, Trouble, Tx
from hermes.store.open import open_database

NOTES = """
CREATE TABLE notes (key TEXT PRIMARY KEY, text TEXT NOT NULL, count BIGINT NOT NULL DEFAULT 0, colour TEXT);
CREATE INDEX notes_text ON notes (text);
CREATE TABLE others (id TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);
"""

QUICK = StoreLimits(busy_seconds=0.2, heal_wait_seconds=5.0)


class Store:
    """A small database in a folder, and what it told its owner."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.db"
        self.migrations = folder / "migrations"
        self.migrations.mkdir()
        (self.migrations / "0001_start.sql").write_text(NOTES)
        self.troubles: list[Trouble] = []

    @asynccontextmanager
    async def open(self, where: str = "", limits: StoreLimits = QUICK) -> AsyncIterator[Database]:
        database = await open_database(
            where or self.path, migrations=self.migrations, limits=limits, on_trouble=self.troubles.append
        )
        try:
            yield database
        finally:
            await database.close()

    async def plant(self, rows: int) -> None:
        async with self.open() as database:
            await database.write(fill, rows)

    def told(self, kind: str) -> list[str]:
        return [trouble.text for trouble in self.troubles if trouble.kind == kind]


def fill(tx: Tx, rows: int, prefix: str = "k") -> None:
    for number in range(rows):
        text = f"{number} " + "x" * 400
        tx.run("INSERT INTO notes (key, text) VALUES (:key, :text)", key=f"{prefix}{number:05}", text=text)
    for number in range(rows // 10):
        tx.run("INSERT INTO others (id, at) VALUES (:id, :at)", id=f"{prefix}{number}", at=float(number))


def put(tx: Tx, key: str) -> None:
    tx.run("INSERT INTO notes (key, text) VALUES (:key, '')", key=key)


def count(tx: Tx) -> int:
    return int(tx.value("SELECT count(*) FROM notes NOT INDEXED"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "store"
    folder.mkdir()
    return Store(folder)
