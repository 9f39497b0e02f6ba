"""A deleted session leaves none of its words in the home, in tables, files or free pages; ids and states stay."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from hermes.agent.session_search import SessionSearch
from hermes.core.roles import PersonRole
from hermes.hosting.control.handlers.store import StoreVerbs
from hermes.services.deletion import SessionDeletion
from hermes.services.gateway import Gateway
from hermes.store.db import Tx
from hermes.store.open import open_database
from hermes.store.reports import trace
from hermes.store.retention import deletion
from hermes.store.sessions import sessions
from tests.fakes.clock import FakeClock
from tests.fakes.model import FakeModel, calls_tools
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import USER, Start
from tests.integration.test_rollback import says
from tests.integration.watching import SECONDS, answered, make, question, turn_is, until

SENTENCE = "the quince marmalade stands behind the seventh door"


class Silent:
    """Nobody listens to what a handler tells on its way."""

    async def event(self, _data: Any) -> None:
        raise AssertionError("deleting tells nothing on its way")


def holders(home: Path, sentence: str = SENTENCE) -> list[str]:
    """The files of a home that hold the sentence, by their raw bytes."""
    wanted = sentence.encode()
    files = [path for path in home.rglob("*") if path.is_file() and "backups" not in path.relative_to(home).parts]
    return sorted(str(path.relative_to(home)) for path in files if wanted in path.read_bytes())


async def delete(gateway: Gateway, session_id: str) -> dict[str, Any]:
    verbs = StoreVerbs(gateway.home, gateway.db, gateway.clock, gateway.deletion)
    deleted: dict[str, Any] = await verbs.delete({"id": session_id}, Silent())
    return deleted


async def plant(gateway: Gateway, telegram: FakeTelegram, model: FakeModel) -> str:
    """Say the sentence through every door of a chat; returns the id of its session."""
    await make(gateway, USER, PersonRole.OWNER)
    model.script(
        [
            calls_tools(("write_file", {"path": "note.txt", "content": f"{SENTENCE}\n"})),
            calls_tools(("write_file", {"path": "note.txt", "content": "nothing\n"})),
            calls_tools(("danger", {"text": SENTENCE})),
            calls_tools(("todo", {"items": [{"text": SENTENCE, "state": "pending"}]})),
            f"Yes: {SENTENCE}.",
        ]
    )
    telegram.user_says(f"Remember that {SENTENCE}.")
    telegram.user_presses(await question(telegram), "Approve")
    await answered(telegram, f"Yes: {SENTENCE}.")
    await turn_is(gateway, "done")
    await says(telegram, f"/title {SENTENCE}")
    [session] = await gateway.db.read(sessions.newest)
    await SessionSearch(gateway.db, gateway.home, gateway.clock).search(
        "marmalade", person_id="p_telegram_7", session_id="", count=1
    )
    return session.id


async def test_no_word_of_a_deleted_session_is_left_in_the_home(
    start: Start, telegram: FakeTelegram, model: FakeModel, tmp_path: Path
) -> None:
    async with start() as gateway:
        session_id = await plant(gateway, telegram, model)
        (gateway.home / "history").write_text(f"\n# 2026-01-01\n+other\n\n# 2026-01-02\n+{SENTENCE}\n")
        assert {"search.db", "state.db-wal", "history"} <= set(holders(gateway.home)), "it stands where it was said"
        turn = await turn_is(gateway, "done")
        (tmp_path / "work" / "note.txt").unlink(missing_ok=True)
        assert (await delete(gateway, session_id))["is_complete"]
        assert holders(gateway.home) == ["history"], "nobody of a terminal said it, so its history is left alone"
        life = await gateway.db.read(trace.life_of, turn.id)
        assert life is not None
        assert life.turn is not None
        assert (life.turn.state, life.turn.session_id) == ("done", session_id)
        assert [event.state for event in life.events] == ["answered"]
        assert {letter.state for letter in life.letters} == {"sent"}
        assert len(life.calls) == 4
        assert [asked.state for asked in life.approvals] == ["allowed"]
        telegram.user_says("are you well?")
        await answered(telegram, "echo: are you well?")
        (gateway.home / "history").unlink()
    assert holders(tmp_path / "home") == [], "nor after the gateway has closed its files"
    async with start():
        telegram.user_says("and now?")
        await answered(telegram, "echo: and now?")
    with closing(sqlite3.connect(tmp_path / "home" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def test_a_deletion_that_a_kill_cut_short_is_completed_by_the_next_look(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        session_id = await plant(gateway, telegram, model)
        await gateway.db.write(deletion.delete, session_id, now=gateway.clock.now())
        home = gateway.home
    assert "state.db" in holders(home)
    async with start() as gateway:
        await gateway.deletion().sweep(is_night=False)
        assert await gateway.db.read(deletion.unfinished) == []
        assert holders(home) == []


async def test_what_is_still_to_be_delivered_is_delivered_before_its_words_go(
    start: Start, telegram: FakeTelegram, model: FakeModel
) -> None:
    async with start() as gateway:
        telegram.limit_next_send(1)
        telegram.user_says(SENTENCE)
        await turn_is(gateway, "done")
        [session] = await gateway.db.read(sessions.newest)
        deleted = await delete(gateway, session.id)
        assert telegram.texts() == []
        assert not deleted["is_complete"]
        await answered(telegram, f"echo: {SENTENCE}")

        async def is_sent() -> bool:
            return await gateway.db.read(_open_deliveries) == 0

        await until(is_sent, SECONDS)
        await gateway.deletion().sweep(is_night=False)
        assert holders(gateway.home) == []


def _open_deliveries(tx: Tx) -> int:
    return int(tx.value("SELECT COUNT(*) FROM outbox WHERE state NOT IN ('sent', 'dead', 'joined')"))


async def test_a_database_that_is_large_is_written_anew_at_night(
    start: Start, telegram: FakeTelegram, model: FakeModel, monkeypatch: Any
) -> None:
    monkeypatch.setattr("hermes.services.deletion.COMPACTED_BYTES", 0)
    async with start() as gateway:
        telegram.user_says(SENTENCE)
        await answered(telegram, f"echo: {SENTENCE}")
        await turn_is(gateway, "done")
        [session] = await gateway.db.read(sessions.newest)
        assert not (await delete(gateway, session.id))["is_complete"]
        assert await gateway.db.read(_words) == 0, "the tables hold nothing of it at once"
        await gateway.deletion().sweep(is_night=False)
        assert [gone.id for gone in await gateway.db.read(deletion.unfinished)] == [session.id]
        await gateway.deletion().sweep(is_night=True)
        assert await gateway.db.read(deletion.unfinished) == []
        assert holders(gateway.home) == []


def _words(tx: Tx) -> int:
    """Rows of the tables in which words stand that still hold the sentence."""
    places = {"inbox": "body", "outbox": "body", "tool_calls": "result", "transcript": "body", "approvals": "question"}
    return sum(
        int(tx.value(f"SELECT COUNT(*) FROM {table} WHERE {column} LIKE :part", part=f"%{SENTENCE}%"))
        for table, column in places.items()
    )


async def test_a_home_without_a_gateway_is_cleaned_too(tmp_path: Path) -> None:
    home = tmp_path / "alone"
    home.mkdir()
    (home / "history").write_text(f"\n# 2026-01-01\n+other\n\n# 2026-01-02\n+{SENTENCE}\n")
    clock = FakeClock()
    db = await open_database(home / "state.db")
    try:
        await db.write(_terminal_session)
        await db.write(deletion.delete, "s_1", now=clock.now())
        assert await SessionDeletion(db, home, clock).erase(["s_1"])
        assert holders(home) == []
        assert "+other" in (home / "history").read_text()
    finally:
        await db.close()


def _terminal_session(tx: Tx) -> None:
    key, body = "agent:main:local:dm:cli", f'{{"text": "{SENTENCE}"}}'
    tx.run(f"INSERT INTO sessions (id, key, title, created_at, updated_at) VALUES ('s_1', '{key}', 'x', 1, 2)")
    columns = "id, lane, session_id, state, created_at, ended_at"
    tx.run(f"INSERT INTO turns ({columns}) VALUES ('t_1', :key, 's_1', 'done', 1, 2)", key=key)
    tx.run(
        """
        INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, turn_id, received_at,
                           ready_at, settled_at)
        VALUES ('ev_1', :key, 1, 'local', 'main', 'message', 'me', :body, 'answered', 't_1', 1, 1, 2)
        """,
        key=key,
        body=body,
    )
