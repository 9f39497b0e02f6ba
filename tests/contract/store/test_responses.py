"""Stored responses, on both databases: SQLite keeps them in a file of their own, PostgreSQL beside the other tables."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.store import migrate
from hermes.store.api import responses
from hermes.store.api.responses import Damaged, NewResponse, StoredResponse
from hermes.store.db import Database, Tx


@pytest.fixture
async def store(database: Database, tmp_path: Path) -> AsyncIterator[Database]:
    async with responses.open_store(database, tmp_path) as opened:
        yield opened


def new(number: int, *, conversation: str = "", asked_by: str = "key:default") -> NewResponse:
    body: dict[str, Any] = {"id": f"resp_{number}", "status": "in_progress", "output": []}
    return NewResponse(f"resp_{number}", f"ev_{number}", "s_one", asked_by, body, 1, "", conversation)


def spoil(tx: Tx, response_id: str, text: str) -> None:
    tx.run("UPDATE responses SET body = :text WHERE id = :id", id=response_id, text=text)


def names(tx: Tx) -> list[str]:
    return tx.all("SELECT name FROM conversations ORDER BY name", str)


def modes_beside(path: Path) -> dict[str, int]:
    return {found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.glob(f"{path.name}*")}


async def test_a_response_is_put_once_and_finished_once(store: Database) -> None:
    await store.write(responses.put, new(1), now=1.0)
    await store.write(responses.put, new(1), now=2.0)
    stored = await responses.load(store, "resp_1")
    assert stored == StoredResponse("resp_1", "ev_1", "s_one", "key:default", "in_progress", 1, "", new(1).body)
    assert stored.is_open
    done = {"id": "resp_1", "status": "completed", "output": ["hi"]}
    assert await store.write(responses.finish, done, now=3.0)
    assert not await store.write(responses.finish, {**done, "status": "failed"}, now=4.0)
    stored = await responses.load(store, "resp_1")
    assert stored is not None
    assert (stored.status, stored.body, stored.is_open) == ("completed", done, False)
    assert not await store.write(responses.finish, {**done, "id": "resp_gone"}, now=4.0)


async def test_only_those_without_a_final_state_are_open(store: Database) -> None:
    for number in (1, 2, 3):
        await store.write(responses.put, new(number), now=float(number))
    await store.write(responses.finish, {"id": "resp_2", "status": "failed"}, now=9.0)
    assert await store.read(responses.open_ones) == ["ev_1", "ev_3"]


async def test_a_conversation_names_its_newest_response_and_belongs_to_who_asked(store: Database) -> None:
    await store.write(responses.put, new(1, conversation="trip"), now=1.0)
    await store.write(responses.put, new(2, conversation="trip"), now=2.0)
    await store.write(responses.put, new(3, conversation="trip", asked_by="key:other"), now=3.0)
    assert await store.read(responses.newest_of, "key:default", "trip") == "resp_2"
    assert await store.read(responses.newest_of, "key:other", "trip") == "resp_3"
    assert await store.read(responses.newest_of, "key:third", "trip") == ""


async def test_a_deleted_response_takes_its_conversation_along(store: Database) -> None:
    await store.write(responses.put, new(1, conversation="trip"), now=1.0)
    assert await store.write(responses.delete, "resp_1")
    assert not await store.write(responses.delete, "resp_1")
    assert await store.read(names) == []
    assert await store.read(responses.newest_of, "key:default", "trip") == ""


@pytest.mark.parametrize("text", ["{oops", "[1]", "null", '{"id": "resp_9"}', ""])
async def test_a_damaged_response_is_removed_with_its_conversation_and_a_warning(
    store: Database, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    await store.write(responses.put, new(1, conversation="trip"), now=1.0)
    await store.write(spoil, "resp_1", text)
    assert isinstance(await store.read(responses.get, "resp_1"), Damaged)
    assert await responses.load(store, "resp_1") is None
    assert [record.getMessage() for record in caplog.records] == ["Response cannot be read; removed"]
    assert await store.read(responses.count) == 0
    assert await store.read(names) == []


async def test_the_oldest_beyond_the_limit_go_a_bite_at_a_time_with_their_conversations(store: Database) -> None:
    for number in range(1, 8):
        await store.write(responses.put, new(number, conversation=f"c{number}"), now=float(number))
        await store.write(responses.finish, {"id": f"resp_{number}", "status": "completed"}, now=10.0)
    assert await store.alone(responses.evict, most=3, bite=2) == 2
    assert await store.alone(responses.evict, most=3, bite=2) == 2
    assert await store.alone(responses.evict, most=3, bite=2) == 0
    assert await store.read(names) == ["c5", "c6", "c7"]


async def test_what_is_too_old_goes_and_what_is_still_open_is_not_crowded_out(store: Database) -> None:
    for number in (1, 2, 3):
        await store.write(responses.put, new(number, conversation=f"c{number}"), now=float(number))
    assert await store.alone(responses.evict, most=0) == 0
    assert await store.alone(responses.evict, before=2.5) == 2
    assert await store.read(names) == ["c3"]


async def test_opening_twice_keeps_what_is_there(database: Database, tmp_path: Path) -> None:
    async with responses.open_store(database, tmp_path) as store:
        await store.write(responses.put, new(1), now=1.0)
    async with responses.open_store(database, tmp_path) as store:
        assert await store.read(responses.count) == 1
        steps = migrate.load(responses.MIGRATIONS)
        family = "" if store is not database else responses.FAMILY
        assert await store.read(lambda tx: migrate.version(tx, family=family)) == steps[-1].number


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_every_file_is_private_while_it_is_in_use(database: Database, tmp_path: Path) -> None:
    loose = tmp_path / responses.FILE
    loose.touch(0o644)
    async with responses.open_store(database, tmp_path) as store:
        await store.write(responses.put, new(1), now=1.0)
        modes = modes_beside(loose)
    assert modes.keys() >= {responses.FILE, f"{responses.FILE}-wal", f"{responses.FILE}-shm"}
    assert set(modes.values()) == {0o600}
