"""Older boards, and boards that somebody has repaired by hand, are opened as they are."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from hermes.store import migrate
from hermes.store.kanban import tasks
from hermes.store.kanban.open import MIGRATIONS
from hermes.store.open import open_database
from hermes.store.sqlite.file import APPLICATION_ID

STEPS = migrate.load(MIGRATIONS)


def old_board(file: Path, version: int, *, by_hand: str = "") -> None:
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(migrate.META)
    for step in STEPS[:version]:
        for statement in step.statements:
            connection.execute(statement)
    notes = {"application": "hermes", "version": str(version), "min_reader": "1"}
    connection.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", notes.items())
    connection.execute("INSERT INTO boards (name, title, created_at) VALUES ('main', 'Main', 1)")
    connection.execute(
        "INSERT INTO tasks (id, board, title, state, created_at, updated_at) VALUES (1, 'main', 'old', 'todo', 1, 1)"
    )
    if by_hand:
        connection.execute(by_hand)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", range(1, len(STEPS) + 1))
async def test_every_earlier_schema_is_upgraded_with_its_rows(tmp_path: Path, version: int) -> None:
    old_board(tmp_path / "kanban.db", version)
    db = await open_database(tmp_path / "kanban.db", migrations=MIGRATIONS)
    try:
        task = await db.read(tasks.get, 1)
        assert task is not None
        assert (task.title, task.session_id) == ("old", None)
    finally:
        await db.close()


async def test_a_column_that_was_added_by_hand_is_tolerated(tmp_path: Path) -> None:
    old_board(tmp_path / "kanban.db", 1, by_hand="ALTER TABLE tasks ADD COLUMN session_id TEXT")
    db = await open_database(tmp_path / "kanban.db", migrations=MIGRATIONS)
    try:
        assert (await db.read(tasks.get, 1)) is not None
    finally:
        await db.close()
