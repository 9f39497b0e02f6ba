"""Every schema there ever was, of every store, is upgraded with its rows, and keeps a copy of before."""

from __future__ import annotations

import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hermes.store import migrate
from hermes.store.backup.contents import MIGRATIONS
from hermes.store.copy.snapshot import TableShape, tables_of
from hermes.store.db import Tx
from hermes.store.open import open_database
from tests.fakes.rows import fill

ROWS = 7
OLDER = [(store, step.number) for store, package in MIGRATIONS.items() for step in migrate.load(package)[:-1]]


def older(folder: Path, package: str, last: int) -> Path:
    """Lay out the migrations up to this number, as a program of that time had them."""
    folder.mkdir()
    for path in Path(str(import_module(package).__file__)).parent.glob("*.sql"):
        if int(path.name[:4]) <= last:
            shutil.copy(path, folder)
    return folder


def _row(*values: Any) -> tuple[Any, ...]:
    return values


def rows(tx: Tx, table: TableShape, columns: list[str]) -> list[Any]:
    key = ", ".join(table.key) or "1"
    return [repr(row) for row in tx.all(f"SELECT {', '.join(columns)} FROM {table.name} ORDER BY {key}", _row)]


@pytest.mark.parametrize("store, version", OLDER)
async def test_older_schema_is_upgraded_with_every_row(tmp_path: Path, store: str, version: int) -> None:
    path, package = tmp_path / store, MIGRATIONS[store]
    old_steps = older(tmp_path / "older", package, version)
    tables = tables_of(migrate.load(old_steps))
    db = await open_database(path, migrations=old_steps)
    await db.alone(fill, tables, ROWS)
    now = {table.name: set(table.columns) for table in tables_of(migrate.load(package))}
    kept = {
        table.name: [name for name in table.columns if name in now[table.name]] for table in tables if table.name in now
    }
    before = {table.name: await db.read(rows, table, kept[table.name]) for table in tables if table.name in kept}
    await db.close()
    db = await open_database(path, migrations=package)
    try:
        after = {table.name: await db.read(rows, table, kept[table.name]) for table in tables if table.name in kept}
        assert {name: len(found) for name, found in after.items()} == dict.fromkeys(kept, ROWS)
        assert after == before
    finally:
        await db.close()
    copies = list((tmp_path / "backups").glob(f"{store}.*.before-*"))
    assert copies, "a copy of before the migration is kept"
