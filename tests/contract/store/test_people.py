"""Persons, their accounts and their pairings: who waits, who was let in, what is left of a role that was taken away."""

from __future__ import annotations

import asyncio

from hermes.store import inbox, pairings, people
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.pairings import PairingState
from tests.contract.store.rows import NOW, incoming

HOUR = 3600.0


def ask(tx: Tx, user: str = "42", *, chat: str = "", name: str = "Ana", now: float = NOW) -> None:
    pairings.ask(tx, "telegram", user, account="main", chat=chat or user, name=name, now=now)


def decide(tx: Tx, user: str, state: PairingState, now: float = NOW) -> bool:
    return pairings.decide(tx, "telegram", user, state, by="cli", now=now)


def ensure(tx: Tx, platform: str, user: str, role: str = "user") -> None:
    people.ensure(tx, f"p_{platform}_{user}", platform=platform, user_id=user, name="Ana", role=role, now=NOW)


async def test_a_request_waits_for_its_hour_and_is_asked_anew_after_any_decision(database: Database) -> None:
    await database.write(ask)
    await database.write(ask, "43", name="Ben", now=NOW + 1)
    assert [one.user_id for one in await database.read(pairings.waiting, "telegram", since=NOW - HOUR)] == ["42", "43"]
    assert await database.read(pairings.waiting, "telegram", since=NOW + 1) == []
    assert await database.read(pairings.waiting, "weixin", since=NOW - HOUR) == []
    for state in (PairingState.REFUSED, PairingState.APPROVED, PairingState.REVOKED):
        assert await database.write(decide, "42", state)
        assert not await database.write(decide, "42", state), "it is so already"
        assert await database.read(pairings.approved) == ({("telegram", "42")} if state == "approved" else set())
    await database.write(ask, now=NOW + 9)
    again = await database.read(pairings.get, "telegram", "42")
    assert again is not None
    assert (again.state, again.asked_at, again.decided_at, again.decided_by) == ("pending", NOW + 9, None, "")


async def test_the_newest_request_from_a_chat_is_found_by_it(database: Database) -> None:
    await database.write(ask, "42", chat="c1")
    await database.write(ask, "43", chat="c1", now=NOW + 1)
    found = await database.read(pairings.in_chat, "telegram", "c1")
    assert found is not None
    assert found.user_id == "43"
    assert await database.read(pairings.in_chat, "weixin", "c1") is None


async def test_wrong_codes_that_come_at_once_are_all_counted(database: Database) -> None:
    def wrong(tx: Tx) -> int:
        return pairings.note_wrong(tx, "telegram", most=5, lock_seconds=900, now=NOW)

    counted = await asyncio.gather(*(database.write(wrong) for _ in range(5)))
    assert sorted(counted) == [1, 2, 3, 4, 5]
    assert await database.read(pairings.locked_until, "telegram") == NOW + 900
    assert await database.read(pairings.locked_until, "weixin") == 0
    await database.write(pairings.forget_wrong, "telegram")
    assert await database.read(pairings.locked_until, "telegram") == 0


async def test_an_account_that_loses_its_role_leaves_the_others_of_its_person_alone(database: Database) -> None:
    await database.write(ensure, "telegram", "42", "admin")
    await database.write(ensure, "weixin", "w1")
    assert await database.write(people.link, "weixin", "w1", "p_telegram_42")
    await database.write(people.make_plain, "telegram", "42", role="user", now=NOW)
    left = await database.read(people.find, "telegram", "42")
    kept = await database.read(people.find, "weixin", "w1")
    assert left is not None
    assert kept is not None
    assert (left.role, kept.role, left.id == kept.id) == ("user", "admin", False)
    await database.write(people.make_plain, "weixin", "w1", role="user", now=NOW)
    alone = await database.read(people.find, "weixin", "w1")
    assert alone is not None
    assert (alone.id, alone.role) == (kept.id, "user")
    await database.write(people.make_plain, "telegram", "nobody", role="user", now=NOW)


async def test_the_last_that_somebody_wrote_is_found_with_what_became_of_it(database: Database) -> None:
    events = [incoming("one"), incoming("two", state=InboxState.REFUSED)]
    for later, event in enumerate(events):
        await database.write(inbox.accept, [event], now=NOW + later)
    last = await database.read(inbox.last_of, events[0].platform, events[0].sender_id)
    assert last is not None
    assert (last.id, last.state) == (events[1].id, "refused")
    assert await database.read(inbox.last_of, "weixin", events[0].sender_id) is None


async def test_the_chats_of_owners_who_were_let_in_are_found(database: Database) -> None:
    for user, role in (("42", "owner"), ("43", "user"), ("44", "owner")):
        await database.write(ask, user, chat=f"c{user}")
        await database.write(ensure, "telegram", user, role)
    assert await database.read(pairings.chats_of_owners) == []
    for later, user in enumerate(("44", "43", "42")):
        await database.write(decide, user, PairingState.APPROVED, NOW + later)
    assert await database.read(pairings.chats_of_owners) == [("telegram", "main", "c44"), ("telegram", "main", "c42")]


async def test_a_language_is_kept_with_a_person_and_with_a_request(database: Database) -> None:
    def write(tx: Tx) -> None:
        people.ensure(tx, "p_1", platform="x", user_id="1", name="安", role="owner", now=NOW, language="zh")
        people.ensure(tx, "p_2", platform="x", user_id="2", name="Ben", role="user", now=NOW)
        pairings.ask(tx, "x", "3", account="main", chat="3", name="Eve", now=NOW, language="zh")

    await database.write(write)
    known = [await database.read(people.find, "x", user) for user in ("1", "2")]
    assert [person.language for person in known if person is not None] == ["zh", ""]
    assert await database.read(people.language_of_owner) == "zh"
    assert await database.write(people.set_language, "p_1", "auto")
    assert await database.read(people.language_of_owner) == ""
    asked = await database.read(pairings.get, "x", "3")
    assert asked is not None
    assert asked.language == "zh"


async def test_marks_are_changed_one_by_one_and_an_empty_one_goes(database: Database) -> None:
    await database.write(people.move_marks, "discord", "main", {"since": "1", "channel:5": "7", "channel:6": "8"})
    await database.write(people.move_marks, "discord", "work", {"channel:5": "9"})
    await database.write(people.move_marks, "discord", "main", {"channel:5": "", "channel:6": "9", "unknown": ""})
    assert await database.read(people.cursor, "discord", "main") == {"since": "1", "channel:6": "9"}
    assert await database.read(people.cursor, "discord", "work") == {"channel:5": "9"}
