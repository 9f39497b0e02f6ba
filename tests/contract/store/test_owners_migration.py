"""The data of API keys from before keys had ids: nobody loses theirs when the schema changes, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.store.api import api_keys
from hermes.store.db import Database, Tx
from hermes.store.open import open_database
from tests.fixtures.schemas import OLDER, older_migrations

ADMINS = "agent:main:api:dm:work"
SHARED = "agent:main:api:dm:both"
OWNERS = "agent:main:api:dm:own"
USERS = "agent:main:api:dm:work:p=key%3Abob"
TAKEN = "agent:main:api:dm:taken"
LANES = {
    ADMINS: ("ann",),
    SHARED: ("ann", "default"),
    OWNERS: ("default",),
    USERS: ("bob",),
    TAKEN: ("ann",),
    f"{TAKEN}:p=key%3Aann": ("ann",),
}


def fill(tx: Tx) -> None:
    for name, role, revoked_at in (("ann", "admin", None), ("bob", "user", None), ("old", "user", 5.0)):
        tx.run(
            """
            INSERT INTO api_keys (name, hash, role, hint, created_at, revoked_at)
            VALUES (:name, :name, :role, '…', 1.0, :revoked_at)
            """,
            name=name,
            role=role,
            revoked_at=revoked_at,
        )
    for name in ("default", "ann", "bob"):
        person = f"p_api_key:{name}"
        tx.run("INSERT INTO people (id, name, role, created_at) VALUES (:id, :id, 'user', 1.0)", id=person)
        tx.run(
            "INSERT INTO person_accounts (platform, user_id, person_id) VALUES ('api', :user, :id)",
            user=f"key:{name}",
            id=person,
        )
    number = 0
    for place, (lane, names) in enumerate(LANES.items()):
        session = f"s_{place}"
        tx.run("INSERT INTO lanes (key, session_id) VALUES (:lane, :session)", lane=lane, session=session)
        tx.run(
            "INSERT INTO sessions (id, key, created_at, updated_at) VALUES (:id, :lane, 1.0, 1.0)",
            id=session,
            lane=lane,
        )
        for name in names:
            number += 1
            tx.run(
                """
                INSERT INTO turns (id, lane, session_id, state, person_id, created_at)
                VALUES (:id, :lane, :session, 'done', :person, 1.0)
                """,
                id=f"t_{number}",
                lane=lane,
                session=session,
                person=f"p_api_key:{name}",
            )
            tx.run(
                """
                INSERT INTO inbox
                    (id, lane, seq, platform, account, kind, sender_id, body, state, received_at, ready_at)
                VALUES (:id, :lane, 1, 'api', 'main', 'request', :sender, '{}', 'answered', 1.0, 1.0)
                """,
                id=f"ev_{number}",
                lane=lane,
                sender=f"key:{name}",
            )


def values_of(tx: Tx, table: str, column: str) -> list[str]:
    return tx.all(f"SELECT {column} FROM {table}", str)


@pytest.fixture
async def migrated(database_url: str, notes: Path, tmp_path: Path) -> Database:
    """A database of the schema before, with keys and sessions, after it was opened by the program of today."""
    old = await open_database(database_url, migrations=older_migrations(tmp_path / "older", 3))
    await old.write(fill)
    await old.close()
    return await open_database(database_url)


async def test_a_key_keeps_its_data_and_a_name_used_again_inherits_nothing(migrated: Database) -> None:
    try:
        assert {key.name: key.id for key in await migrated.read(api_keys.listed)} == {
            "ann": "ann",
            "bob": "bob",
            "old": "old",
        }
        again = api_keys.ApiKey("old", "new", "user", "…", 9.0, id="key_9")
        assert await migrated.write(api_keys.add, again)
        assert {key.id for key in await migrated.read(api_keys.working)} == {"ann", "bob", "key_9"}
    finally:
        await migrated.close()


async def test_the_sessions_of_an_admins_key_move_to_that_key_alone(migrated: Database) -> None:
    try:
        for table, column in (("lanes", "key"), ("sessions", "key"), ("turns", "lane"), ("inbox", "lane")):
            found = await migrated.read(values_of, table, column)
            assert set(found) == {
                f"{ADMINS}:p=key%3Aann",
                SHARED,
                OWNERS,
                USERS,
                TAKEN,  # the key had a session of that name already: neither is lost
                f"{TAKEN}:p=key%3Aann",
            }, table
    finally:
        await migrated.close()


@pytest.mark.parametrize("version", OLDER)
async def test_every_older_schema_is_brought_up_to_date(
    database_url: str, notes: Path, tmp_path: Path, version: int
) -> None:
    old = await open_database(database_url, migrations=older_migrations(tmp_path / "older", version))
    await old.close()
    now = await open_database(database_url)
    try:
        assert await now.write(api_keys.add, api_keys.ApiKey("phone", "h", "user", "…", 1.0, id="key_1"))
        assert [key.id for key in await now.read(api_keys.working)] == ["key_1"]
    finally:
        await now.close()
