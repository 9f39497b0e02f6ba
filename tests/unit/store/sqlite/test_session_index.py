"""sessions/sessions.json tells which session lives under which key, and costs the writer nothing."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.errors import StoreIsDownError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Role
from hermes.hosting.importers import hermes_agent
from hermes.store.db import Database, Tx
from hermes.store.open import open_database
from hermes.store.sessions import sessions, transcripts
from hermes.store.sqlite.session_index import WRITE_SECONDS, SessionIndex
from tests.fakes.clock import FakeClock

ANA = SessionKey("telegram", ChatKind.DM, "42")
REQUEST = SessionKey("api", ChatKind.DM, "chat-1")


@pytest.fixture
async def db(tmp_path: Path) -> AsyncIterator[Database]:
    database = await open_database(tmp_path / "state.db")
    yield database
    await database.close()


def begin(tx: Tx, session_id: str, key: SessionKey, now: float = 1_700_000_000.0) -> None:
    sessions.start(tx, session_id, str(key), now=now)
    transcripts.append(tx, session_id, "t_1", [ChatMessage(Role.USER, "hello")], now=now)
    tx.run(
        "INSERT INTO lanes (key, session_id) VALUES (:key, :id) ON CONFLICT (key) DO UPDATE SET session_id = :id",
        key=str(key),
        id=session_id,
    )


def index_of(home: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((home / "sessions" / "sessions.json").read_text())
    return told


async def test_the_index_names_the_session_of_each_chat_and_no_request_of_the_api(db: Database, tmp_path: Path) -> None:
    await db.write(begin, "s_1", ANA)
    await db.write(begin, "s_2", REQUEST)
    await db.close()
    assert index_of(tmp_path) == {
        "agent:main:telegram:dm:42": {
            "session_key": "agent:main:telegram:dm:42",
            "session_id": "s_1",
            "title": "",
            "platform": "telegram",
            "chat_type": "dm",
            "created_at": "2023-11-14T22:13:20+00:00",
            "updated_at": "2023-11-14T22:13:20+00:00",
        }
    }
    assert stat.S_IMODE((tmp_path / "sessions" / "sessions.json").stat().st_mode) == 0o600


async def test_a_fresh_session_takes_the_place_of_the_one_before_it(db: Database, tmp_path: Path) -> None:
    await db.write(begin, "s_1", ANA)
    await db.write(begin, "s_2", ANA)
    await db.close()
    assert index_of(tmp_path)[str(ANA)]["session_id"] == "s_2"


async def test_the_reader_of_such_an_index_reads_ours(db: Database, tmp_path: Path) -> None:
    await db.write(begin, "s_1", ANA)
    await db.close()
    source = hermes_agent.find(tmp_path)
    assert source.troubles == ()
    assert source.index["s_1"]["session_key"] == str(ANA)


async def test_it_is_due_once_in_a_while_however_much_is_said(db: Database, tmp_path: Path) -> None:
    clock = FakeClock()
    index = SessionIndex(tmp_path / "elsewhere", clock.monotonic)
    await db.write(begin, "s_1", ANA)
    await db.write(begin, "s_2", REQUEST)
    assert index.due_in() is None
    await db.read(index.note, {"s_2"})
    assert index.due_in() is None
    await db.read(index.note, {"s_2", "s_1"})
    assert index.due_in() == 0
    await db.read(index.write)
    await db.read(index.note, {"s_2", "s_1"})
    assert index.due_in() == WRITE_SECONDS
    clock.advance(WRITE_SECONDS)
    assert index.due_in() == 0


async def test_a_folder_that_cannot_be_written_leaves_the_index_due(db: Database, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    index = SessionIndex(tmp_path / "file")
    await db.write(begin, "s_1", ANA)
    await db.read(index.note, {"s_2", "s_1"})
    with pytest.raises(StoreIsDownError, match="Not a directory"):
        await db.read(index.write)
    assert index.due_in() == 0
