"""Transcripts beside the database, and what they bring back when it is gone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.store.db import Database, Trouble, Tx
from hermes.store.open import open_database
from hermes.store.sessions import sessions, transcripts, undo
from hermes.store.sessions.undo import Shorter
from hermes.store.sqlite.transcript_files import LOST, Journal, read

KEY = "agent:main:telegram:dm:42"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
async def database(folder: Path) -> AsyncIterator[Database]:
    opened = await open_database(folder / "state.db")
    yield opened
    await opened.close()


def talk(tx: Tx, session_id: str, *texts: str) -> None:
    sessions.start(tx, session_id, KEY, now=1.0)
    tx.run("INSERT INTO lanes (key) VALUES (:key) ON CONFLICT DO NOTHING", key=KEY)
    transcripts.append(tx, session_id, "t_1", [ChatMessage(Role.USER, text) for text in texts], now=2.0)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def test_what_is_stored_stands_in_the_sessions_file_in_order(database: Database, folder: Path) -> None:
    await database.write(talk, "s_1", "hello", "你好")
    await database.write(talk, "s_1", "again")
    await database.close()
    told = lines(folder / "sessions" / "s_1.jsonl")
    assert [(line["seq"], line["role"]) for line in told] == [(0, "session"), (1, "user"), (2, "user"), (3, "user")]
    assert [line["body"]["text"] for line in told[1:]] == ["hello", "你好", "again"]
    assert told[0]["body"]["key"] == KEY


async def test_the_file_follows_while_the_store_is_open(database: Database, folder: Path) -> None:
    await database.write(talk, "s_1", "hello")
    path = folder / "sessions" / "s_1.jsonl"
    async with asyncio.timeout(20):
        while not path.exists() or len(lines(path)) < 2:  # noqa: ASYNC110 - a file gives no signal
            await asyncio.sleep(0.02)
    assert "hello" in path.read_text("utf-8")


@pytest.mark.parametrize("torn", [b'{"session":"s_1","se', b"\xff\xfe\n", b'{"no": "seq"}\n', b'{"seq": 9'])
async def test_a_torn_last_line_is_cut_off_and_written_again(database: Database, folder: Path, torn: bytes) -> None:
    journal = Journal(folder / "sessions")
    await database.write(talk, "s_1", "one", "two")
    await database.read(journal.catch_up, "s_1")
    path = folder / "sessions" / "s_1.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10] + torn if torn.endswith(b"\n") else whole + torn)
    await database.write(talk, "s_1", "three")
    await database.read(journal.catch_up, "s_1")
    assert [line["seq"] for line in lines(path)] == [0, 1, 2, 3]


async def test_a_title_and_an_end_are_lines_and_a_deleted_session_leaves_no_file(
    database: Database, folder: Path
) -> None:
    await database.write(talk, "s_1", "one")
    await database.write(talk, "s_2", "one")
    await database.write(sessions.rename, "s_1", "A title")
    await database.write(sessions.delete, "s_2")
    await database.close()
    assert read(folder / "sessions" / "s_1.jsonl").session["title"] == "A title"
    assert not (folder / "sessions" / "s_2.jsonl").exists()


async def test_a_session_whose_deletion_was_undone_keeps_its_file(database: Database, folder: Path) -> None:
    def delete_and_fail(tx: Tx) -> None:
        sessions.delete(tx, "s_1")
        raise LookupError

    path = folder / "sessions" / "s_1.jsonl"
    await database.write(talk, "s_1", "hello")
    async with asyncio.timeout(20):
        while not path.exists() or len(lines(path)) < 2:  # noqa: ASYNC110 - a file gives no signal
            await asyncio.sleep(0.02)
    with pytest.raises(LookupError):
        await database.write(delete_and_fail)
    await database.write(talk, "s_2", "hello")
    await database.close()
    assert len(lines(path)) == 2


async def test_an_id_that_is_no_file_name_is_not_made_one(database: Database, folder: Path) -> None:
    await database.write(talk, "../../evil", "one")
    await database.close()
    assert Journal(folder / "sessions").path("../../evil") is None
    assert not (folder.parent / "evil.jsonl").exists()


def test_a_rebuild_ends_at_the_first_gap(tmp_path: Path) -> None:
    body = {"role": "user", "text": "x"}
    path = tmp_path / "s_1.jsonl"
    path.write_text(
        "".join(
            json.dumps({"session": "s_1", "seq": seq, "at": 1.0, "role": "user", "turn": "", "body": body}) + "\n"
            for seq in (1, 2, 2, 3, 5, 6)
        )
    )
    assert [line["seq"] for line in Journal(tmp_path).rebuild("s_1").lines] == [1, 2, 3]


async def test_a_rebuild_closes_the_calls_that_were_never_answered(database: Database, folder: Path) -> None:
    def ask(tx: Tx) -> None:
        talk(tx, "s_1", "do it")
        calls = (ToolCall("c1", "read_file", "{}"), ToolCall("c2", "read_file", "{}"))
        answered = ChatMessage(Role.TOOL, "done", tool_call_id="c1")
        transcripts.append(tx, "s_1", "t_1", [ChatMessage(Role.ASSISTANT, "", calls), answered], now=3.0)

    await database.write(ask)
    await database.close()
    rebuilt = Journal(folder / "sessions").rebuild("s_1")
    assert [line["seq"] for line in rebuilt.lines] == [1, 2, 3, 4]
    assert rebuilt.lines[-1]["body"] == {"role": "tool", "text": LOST, "tool_call_id": "c2"}


async def test_a_store_that_is_gone_comes_back_from_its_transcripts_and_its_mirror(folder: Path) -> None:
    def fill(tx: Tx) -> None:
        talk(tx, "s_1", "hello", "world")
        tx.run("INSERT INTO people (id, name, role, created_at) VALUES ('p_1', 'Ana', 'owner', 1.0)")
        tx.run("INSERT INTO cursors (platform, account, name, value) VALUES ('slack', 'main', 'C1', '17')")

    database = await open_database(folder / "state.db")
    await database.write(fill)
    await database.close()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (folder / name).unlink(missing_ok=True)
    troubles: list[Trouble] = []
    database = await open_database(folder / "state.db", on_trouble=troubles.append)
    try:
        history = await database.read(transcripts.history, "s_1")
        assert [message.text for message in history] == ["hello", "world"]
        assert await database.read(lambda tx: tx.value("SELECT role FROM people WHERE name = 'Ana'")) == "owner"
        assert await database.read(lambda tx: tx.value("SELECT value FROM cursors")) == "17"
        assert await database.read(lambda tx: tx.value("SELECT session_id FROM lanes WHERE key = :key", key=KEY)) == (
            "s_1"
        )
        await database.write(talk, "s_1", "and on")
        assert (await database.read(sessions.get, "s_1")) is not None
    finally:
        await database.close()
    assert "the file is gone" in troubles[0].text


async def test_people_survive_a_file_of_garbage(folder: Path) -> None:
    database = await open_database(folder / "state.db")
    await database.write(
        lambda tx: tx.run("INSERT INTO people (id, name, role, created_at) VALUES ('p_1', 'Ana', 'owner', 1.0)")
    )
    await database.close()
    (folder / "state.db").write_bytes(b"garbage" * 5000)
    database = await open_database(folder / "state.db")
    try:
        assert await database.read(lambda tx: tx.value("SELECT name FROM people")) == "Ana"
    finally:
        await database.close()
    assert (folder / "mirror.jsonl").stat().st_mode & 0o777 == 0o600


async def test_a_file_that_cannot_be_written_holds_up_no_other_and_is_written_later(folder: Path) -> None:
    database = await open_database(folder / "state.db")
    try:
        in_the_way = folder / "sessions" / "s_1.jsonl"
        in_the_way.mkdir(parents=True)
        await database.write(talk, "s_1", "hello")
        await database.write(talk, "s_2", "hello")
        async with asyncio.timeout(20):
            while not (folder / "mirror.jsonl").exists():  # noqa: ASYNC110 - a file gives no signal
                await asyncio.sleep(0.02)
        in_the_way.rmdir()
        await database.write(talk, "s_2", "and on")
    finally:
        await database.close()
    assert [line["seq"] for line in lines(folder / "sessions" / "s_2.jsonl")] == [0, 1, 2]
    assert [line["seq"] for line in lines(in_the_way)] == [0, 1]


async def test_what_was_summed_up_and_taken_back_comes_back_too(folder: Path) -> None:
    database = await open_database(folder / "state.db")

    def shorten(tx: Tx) -> None:
        talk(tx, "s_1", "one", "two", "three")
        undo.compress(tx, "s_1", Shorter(transcripts.context(tx, "s_1"), 1, "first"), now=3.0)
        transcripts.append(tx, "s_1", "t_2", [ChatMessage(Role.USER, "four")], now=4.0)
        undo.compress(tx, "s_1", Shorter(transcripts.context(tx, "s_1"), 2, "second"), now=5.0)
        undo.undo(tx, "s_1", now=6.0)
        undo.undo(tx, "s_1", now=7.0)

    await database.write(shorten)
    before = await database.read(transcripts.context, "s_1")
    assert (before.summary, [message.text for message in before.messages]) == ("first", ["two", "three"])
    await database.close()
    for name in ("state.db", "state.db-wal", "state.db-shm"):
        (folder / name).unlink(missing_ok=True)
    database = await open_database(folder / "state.db")
    assert await database.read(transcripts.context, "s_1") == before
    await database.close()
