"""What the commands ask of the store: asking again, what was spent, imports, who looks after the gateway."""

from __future__ import annotations

from dataclasses import replace

from hermes.core.keys import AccountKey
from hermes.core.messages import ChatMessage, Role, Usage
from hermes.store import chat_settings, codec, inbox, people
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxRow
from hermes.store.outbox import Outgoing
from hermes.store.people import AdminsChat
from hermes.store.reports import usage
from hermes.store.reports.usage import Spent
from hermes.store.sessions import imports, sessions, transcripts
from hermes.store.sessions.imports import ImportedLine, ImportedSession, ImportOutcome
from hermes.store.sessions.sessions import Session
from hermes.store.turns import retry, turns
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.retry import Retried, RetryOrigin
from tests.contract.store.rows import DONE, LANE, NOW, begun_turn, finish, incoming, letter, rules, take

TELEGRAM = AccountKey("telegram")

PLACE = RetryOrigin(LANE, "telegram", "main", "7", "p_7")


async def ana(db: Database, role: str = "user") -> None:
    await db.write(people.ensure, "p_7", platform="telegram", user_id="7", name="Ana", role=role, now=NOW)


async def answered(db: Database, text: str = "hi", *, spent: Usage = Usage(10, 5), now: float = NOW) -> BegunTurn:  # noqa: B008 - frozen
    begun = await begun_turn(db, text, now=now)
    await finish(db, begun, replace(DONE, usage=spent), now=now)
    return begun


def again(row: InboxRow | None, said: str) -> tuple[str, str]:
    return (row.kind, row.body) if row is not None else ("message", f"forgotten: {said}")


async def test_what_is_asked_again_is_taken_back_and_queued_once(database: Database) -> None:
    await ana(database)
    begun = await answered(database, "hello")
    session = begun.turn.session_id
    for _ in range(2):
        retried = await database.write(retry.retry, session, PLACE, again, asked="ev_c", now=NOW + 1)
        assert retried == Retried("hello")
    assert await database.read(transcripts.history, session) == []
    queued = await database.read(inbox.queued, LANE)
    assert [codec.load_message(row.body).text for row in queued] == ["hello"]
    assert queued[0].id == retry.event_after("ev_c")


async def test_what_is_anothers_or_runs_or_was_never_said_is_not_asked_again(database: Database) -> None:
    await ana(database)
    begun = await begun_turn(database, "hello")
    session = begun.turn.session_id
    assert (await database.write(retry.retry, session, PLACE, again, asked="ev_1", now=NOW)).is_busy
    await finish(database, begun)
    other = replace(PLACE, person_id="p_8", sender_id="8")
    assert (await database.write(retry.retry, session, other, again, asked="ev_2", now=NOW)).is_anothers
    assert await database.write(retry.retry, "s_none", PLACE, again, asked="ev_3", now=NOW) == Retried()
    assert await database.read(inbox.queued, LANE) == []


async def test_what_was_spent_is_summed_by_session_by_person_and_by_day(database: Database) -> None:
    await ana(database)
    begun = await answered(database, "one", spent=Usage(100, 10))
    await answered(database, "two", spent=Usage(200, 20), now=NOW + 100)
    assert await database.read(usage.of_session, begun.turn.session_id) == Spent(2, 300, 30)
    assert await database.read(usage.of_session, "s_none") == Spent()
    assert await database.read(usage.of_person, "p_7", since=NOW + 50) == Spent(1, 200, 20)
    assert await database.read(usage.by_person, since=NOW) == [("Ana", Spent(2, 300, 30))]
    assert await database.read(usage.by_person, since=NOW + 1000) == []


async def test_a_personality_goes_with_every_turn_that_begins(database: Database) -> None:
    await database.write(chat_settings.choose, LANE, "personality", "pirate")
    assert (await database.read(chat_settings.of_lane, LANE)).personality == "pirate"
    assert (await begun_turn(database)).choices.personality == "pirate"


async def test_chats_of_admins_are_those_in_which_they_have_turns(database: Database) -> None:
    await ana(database)
    await answered(database)
    assert await database.read(people.chats_of_admins, TELEGRAM) == []
    await database.write(people.set_role, "p_7", "owner")
    assert await database.read(people.chats_of_admins, TELEGRAM) == [AdminsChat(LANE, "owner", "")]


async def test_chats_of_admins_are_found_across_sessions_that_ended_moved_or_were_deleted(database: Database) -> None:
    other, group = LANE.replace("dm:", "dm:9"), LANE.replace("dm:", "group:")
    had = [
        ("s_a", LANE, "p_7"), ("s_a", other, "p_7"),  # taken up again in another chat
        ("s_b", group, "p_7"), ("s_b", group, "p_8"), ("s_b", group, ""),
        ("s_c", LANE, "p_7"), ("s_d", "agent:main:telegram:dm:8", "p_8"), ("s_e", "agent:main:telegram:dm:1", ""),
    ]  # fmt: skip

    def write(tx: Tx) -> None:
        people.ensure(tx, "p_7", platform="telegram", user_id="7", name="Ana", role="owner", now=NOW)
        people.ensure(tx, "p_8", platform="telegram", user_id="8", name="Bo", role="user", now=NOW)
        people.ensure(tx, "p_9", platform="telegram", user_id="9", name="Cy", role="admin", now=NOW)
        for number, (session_id, lane, person_id) in enumerate(had):
            where = {"lane": lane, "session_id": session_id, "person_id": person_id}
            turns.insert(tx, f"t_{number}", **where, reply_to="", now=NOW + number)

    await database.write(write)
    found = await database.read(people.chats_of_admins, TELEGRAM)
    assert sorted(one.lane for one in found) == sorted({LANE, other, group})
    assert {one.role for one in found} == {"owner"}


async def test_chats_of_admins_are_those_of_one_account_whatever_else_their_owners_had_answered(
    database: Database,
) -> None:
    had = [
        ("p_7", LANE), ("p_7", LANE.replace("telegram", "telegram@second")), ("p_7", "agent:main:api:dm:linked"),
        ("p_key", "agent:main:api:dm:1"), ("p_key", "agent:main:api:dm:2"),
    ]  # fmt: skip

    def write(tx: Tx) -> None:
        people.ensure(tx, "p_7", platform="telegram", user_id="7", name="Ana", role="owner", now=NOW)
        people.ensure(tx, "p_key", platform="api", user_id="default", name="default", role="owner", now=NOW)
        for number, (person_id, lane) in enumerate(had):
            where = {"lane": lane, "session_id": f"s_{number}", "person_id": person_id}
            turns.insert(tx, f"t_{number}", **where, reply_to="", now=NOW + number)

    await database.write(write)
    assert await database.read(people.chats_of_admins, TELEGRAM) == [AdminsChat(LANE, "owner", "")]
    second = await database.read(people.chats_of_admins, AccountKey("telegram", "second"))
    assert [chat.lane for chat in second] == [LANE.replace("telegram", "telegram@second")]


async def test_what_is_said_of_a_renewal_is_stored_with_the_begin_of_the_turn(database: Database) -> None:
    await answered(database)

    def tell(session: Session, _language: str, _now: float) -> list[Outgoing]:
        return [letter(f"{session.seq} lines are over", row_id=f"ob_{session.id}")]

    await database.write(inbox.accept, [incoming("again")], now=NOW)
    begun = await database.write(take, by=replace(rules(renews="quiet"), tell_renewed=tell))
    assert begun is not None
    assert begun.renewed == "quiet"
    [told] = begun.outgoing
    stored = await database.read(lambda tx: tx.value("SELECT state FROM outbox WHERE id = :id", id=told.id))
    assert stored == "ready"


def imported(*texts: str, is_current: bool = True, key: str = LANE) -> ImportedSession:
    lines = [
        ImportedLine(number, codec.dump(ChatMessage(Role.USER, text)), NOW + number)
        for number, text in enumerate(texts, 1)
    ]
    return ImportedSession("s_old", key, "Old", NOW, "7", is_current, lines)


async def test_an_import_is_known_again_grows_and_is_taken_back(database: Database) -> None:
    await ana(database)
    assert await database.write(imports.bring_in, imported("a", "b"), batch="im_1") == (ImportOutcome.NEW, 2)
    assert await database.write(imports.bring_in, imported("a", "b"), batch="im_2") == (ImportOutcome.SAME, 0)
    assert await database.write(imports.bring_in, imported("a", "b", "c"), batch="im_3") == (ImportOutcome.LONGER, 1)
    assert [line.text for line in await database.read(transcripts.history, "s_old")] == ["a", "b", "c"]
    assert await database.read(sessions.of_lane, LANE) == "s_old"
    assert await database.read(sessions.belongs_to, "s_old", "p_7")
    assert await database.write(imports.remove, "im_2", now=NOW) == ([], [])
    assert await database.write(imports.remove, "im_1", now=NOW) == (["s_old"], [])
    assert await database.read(sessions.get, "s_old") is None
    assert await database.read(sessions.of_lane, LANE) == ""


async def test_what_went_on_here_is_neither_added_to_nor_taken_back(database: Database) -> None:
    await database.write(imports.bring_in, imported("a"), batch="im_1")
    begun = await begun_turn(database, "going on")
    assert begun.turn.session_id == "s_old"
    await finish(database, begun)
    more = imported(*"abcdefgh")
    assert await database.write(imports.bring_in, more, batch="im_2") == (ImportOutcome.OURS, 0)
    assert await database.write(imports.remove, "im_1", now=NOW) == ([], ["s_old"])


async def test_an_ended_session_is_brought_in_without_touching_a_lane(database: Database) -> None:
    begun = await answered(database)
    await database.write(imports.bring_in, imported("a", is_current=False), batch="im_1")
    assert await database.read(sessions.of_lane, LANE) == begun.turn.session_id
    known = await database.read(sessions.get, "s_old")
    assert known is not None
    assert (known.ended_at, known.end_reason) == (NOW + 1, "imported")
    assert await database.read(turns.of_lane, LANE) is None
