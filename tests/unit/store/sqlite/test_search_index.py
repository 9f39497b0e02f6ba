"""The index of transcripts: derived, so a damaged one is made anew, and one that is only in use is left alone."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from hermes.core.errors import GatewayError
from hermes.store.sqlite import search_index
from hermes.store.sqlite.search_index import IndexedLine

LINE = IndexedLine("s_1", 1, "p_1", "user", "the blue bicycle", 1_780_000_000.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with contextlib.closing(search_index.open_index(tmp_path)) as index:
        search_index.add(index, "s_1", [LINE], up_to=1)
    return tmp_path


def found(folder: Path) -> list[str]:
    with contextlib.closing(search_index.open_index(folder)) as index:
        return [hit.session_id for hit in search_index.find(index, "bicycle", person_id="p_1", limit=5)]


def test_an_index_that_another_process_has_locked_is_not_thrown_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "BUSY_SECONDS", 0.05)
    with contextlib.closing(sqlite3.connect(folder / search_index.FILE, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(GatewayError, match=r"search\.db is locked by another process"):
            search_index.open_index(folder)
    assert found(folder) == ["s_1"]


def test_an_index_that_sqlite_refuses_for_another_reason_is_not_thrown_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_index, "_SCHEMA", "CREATE VIRTUAL TABLE others USING no_such_module(text);")
    with pytest.raises(GatewayError, match=r"search\.db cannot be used"):
        search_index.open_index(folder)
    monkeypatch.undo()
    assert found(folder) == ["s_1"]


def test_an_index_of_another_version_is_made_anew(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / search_index.FILE)) as index:
        index.execute("PRAGMA user_version = 99")
    assert found(folder) == []


def test_a_damaged_index_is_made_anew(folder: Path) -> None:
    (folder / search_index.FILE).write_bytes(b"this is no database" * 500)
    assert found(folder) == []
