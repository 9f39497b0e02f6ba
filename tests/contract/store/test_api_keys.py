"""Keys of the API, and answers kept for repeats, on both databases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hermes.store import people
from hermes.store.api import api_keys, idempotency
from hermes.store.api.api_keys import ApiKey, hash_of, new_token, own_key
from hermes.store.api.idempotency import KEPT_SECONDS, StoredAnswer
from hermes.store.db import Database

PHONE = ApiKey("phone", hash_of("one"), "user", "…one", 10.0, id="key_1")


async def test_a_key_is_found_until_it_is_revoked(database: Database) -> None:
    assert await database.write(api_keys.add, PHONE)
    assert await database.read(api_keys.working) == [PHONE]
    assert await database.write(api_keys.revoke, "phone", now=20.0)
    assert not await database.write(api_keys.revoke, "phone", now=21.0)
    assert await database.read(api_keys.working) == []
    assert await database.read(api_keys.listed) == [replace(PHONE, revoked_at=20.0)]


async def test_a_name_is_taken_as_long_as_its_key_works(database: Database) -> None:
    other = ApiKey("phone", hash_of("two"), "admin", "…two", 30.0, id="key_2")
    assert await database.write(api_keys.add, PHONE)
    assert not await database.write(api_keys.add, other)
    assert await database.read(api_keys.working) == [PHONE]
    await database.write(api_keys.revoke, "phone", now=20.0)
    assert await database.write(api_keys.add, other)
    assert await database.read(api_keys.working) == [other]
    assert await database.read(api_keys.label_of, "key:key_2") == "key:phone"
    assert await database.read(api_keys.label_of, "key:key_1") == "key:key_1"


async def test_a_revoked_key_takes_the_rights_of_its_person_along(database: Database) -> None:
    await database.write(api_keys.add, replace(PHONE, role="admin"))
    for sender in ("key:key_1", "key:key_2"):
        person_id = people.first_id("api", sender)
        await database.write(
            people.ensure, person_id, platform="api", user_id=sender, name=sender, role="admin", now=10.0
        )
    await database.write(api_keys.revoke, "phone", now=20.0)
    roles = [await database.read(people.find, "api", sender) for sender in ("key:key_1", "key:key_2")]
    assert [person.role for person in roles if person is not None] == ["guest", "admin"]


async def test_a_row_of_an_older_program_has_its_name_as_its_id(database: Database) -> None:
    await database.write(api_keys.add, replace(PHONE, id=""))
    assert await database.read(api_keys.working) == [replace(PHONE, id="phone")]
    assert await database.read(api_keys.label_of, "key:phone") == "key:phone"


async def test_the_first_answer_under_a_key_stays_for_a_day(database: Database) -> None:
    first = StoredAnswer("k", "print", 200, "{}", '{"a":"ü"}', 100.0)
    await database.write(idempotency.keep, first)
    await database.write(idempotency.keep, replace(first, body="other", created_at=200.0))
    assert await database.read(idempotency.find, "k", now=300.0) == first
    assert await database.read(idempotency.find, "k", now=100.0 + KEPT_SECONDS) is None
    later = replace(first, key="l", created_at=101.0 + KEPT_SECONDS)
    await database.write(idempotency.keep, later)
    assert await database.read(idempotency.find, "k", now=100.0) is None


def test_the_default_key_is_made_once_and_kept_to_its_owner(tmp_path: Path) -> None:
    key = own_key(tmp_path)
    assert own_key(tmp_path) == key
    assert (tmp_path / "api_server.key").stat().st_mode & 0o777 == 0o600
    assert len({new_token() for _ in range(50)}) == 50
    (tmp_path / "api_server.key").write_bytes(b"\xff\xfe")  # damaged: a new one, rather than none
    assert own_key(tmp_path) != key
