"""`hermes store recover FILE`: every row that is still there comes into a new file, and the old one stays as it is."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from hermes.cli.checks.stores import side_stores
from hermes.core.errors import GatewayError
from hermes.store.open import DEFAULT_MIGRATIONS, open_database
from hermes.store.sqlite.recover_file import recover_file

STORES = {"state.db": DEFAULT_MIGRATIONS, **side_stores()}
PAGE = 4096


def make_board(path: Path) -> None:
    async def make() -> None:
        db = await open_database(path, migrations=STORES["kanban.db"])
        await db.close()

    asyncio.run(make())
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.executemany(
            "INSERT INTO task_comments (id, task_id, author, body, created_at) VALUES (?, 1, 'ana', ?, 1.0)",
            [(f"c{number}", "x" * 300) for number in range(200)],
        )


def rows(path: Path, table: str) -> int:
    with contextlib.closing(sqlite3.connect(path)) as file:
        return int(file.execute(f'SELECT COUNT(*) FROM "{table}"').fetchone()[0])


def test_a_store_of_ours_is_known_by_its_tables_under_any_name(tmp_path: Path) -> None:
    make_board(tmp_path / "kanban.db")
    source = tmp_path / "from-a-stick"
    (tmp_path / "kanban.db").rename(source)
    before = source.read_bytes()
    done = recover_file(source, tmp_path / "new.db", STORES, 1.0)
    assert (done.kind, done.tables["task_comments"], done.report.losses) == ("kanban.db", 200, [])
    assert rows(tmp_path / "new.db", "task_comments") == 200
    assert source.read_bytes() == before
    assert not list(tmp_path.glob(".new.db*"))
    assert (tmp_path / "new.db").stat().st_mode & 0o077 == 0


def test_a_store_whose_header_is_gone_is_known_by_its_name(tmp_path: Path) -> None:
    make_board(tmp_path / "kanban.db")
    source = tmp_path / "kanban.db.corrupt.20260501153100"
    (tmp_path / "kanban.db").rename(source)
    with source.open("r+b") as file:
        file.write(b"\xa5" * 100)
    done = recover_file(source, tmp_path / "new.db", STORES, 1.0)
    assert (done.kind, done.tables["task_comments"]) == ("kanban.db", 200)


def test_the_rows_of_another_programs_file_come_back_around_what_is_broken(tmp_path: Path) -> None:
    source = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(source)) as file, file:
        file.execute('CREATE TABLE "my notes" (a, b)')
        file.executemany('INSERT INTO "my notes" VALUES (?, ?)', [(n, "y" * 200) for n in range(2000)])
    with source.open("r+b") as file_bytes:
        file_bytes.seek(20 * PAGE)
        file_bytes.write(b"\xa5" * (2 * PAGE))
    done = recover_file(source, tmp_path / "new.db", STORES, 1.0)
    assert done.kind == ""
    assert 1900 <= done.tables["my notes"] < 2000
    assert "lost: an unknown number of my notes" in done.report.outcome()


def test_what_cannot_be_recovered_is_refused_and_nothing_is_left_behind(tmp_path: Path) -> None:
    noise = tmp_path / "photo.jpg"
    noise.write_bytes(b"\xff\xd8" * 5000)
    with pytest.raises(GatewayError, match="no store of Hermes"):
        recover_file(noise, tmp_path / "new.db", STORES, 1.0)
    with pytest.raises(GatewayError, match="There is no file"):
        recover_file(tmp_path / "nothing.db", tmp_path / "new.db", STORES, 1.0)
    with pytest.raises(GatewayError, match="There is no file"):
        recover_file(tmp_path, tmp_path / "new.db", STORES, 1.0)
    with pytest.raises(GatewayError, match="exists already"):
        recover_file(noise, noise, STORES, 1.0)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["photo.jpg"]
