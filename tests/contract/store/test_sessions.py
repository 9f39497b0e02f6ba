"""Sessions: which one lives under a key, and lists of them."""

from __future__ import annotations

from hermes.store.db import Database
from hermes.store.sessions import sessions, transcripts
from hermes.store.sessions.sessions import SessionFilter
from hermes.store.turns import turns
from tests.contract.store.rows import LANE, NOW, begun_turn, finish, said, start_session


async def test_leaving_ends_the_session_once(database: Database) -> None:
    await database.write(start_session)
    assert await database.write(sessions.leave, LANE, reason="/new", now=NOW + 1) == "s_1"
    assert await database.write(sessions.leave, LANE, reason="again", now=NOW + 2) == ""
    ended = await database.read(sessions.get, "s_1")
    assert ended is not None
    assert (ended.ended_at, ended.end_reason) == (NOW + 1, "/new")


async def test_deleting_removes_session_and_transcript(database: Database) -> None:
    await database.write(start_session)
    await database.write(transcripts.append, "s_1", "t_1", said("a"), now=NOW)
    assert await database.write(sessions.delete, "s_1")
    assert not await database.write(sessions.delete, "s_1")
    assert await database.read(sessions.get, "s_1") is None
    assert await database.read(transcripts.lines, "s_1") == []
    assert await database.write(sessions.leave, LANE, reason="", now=NOW) == ""


async def test_sessions_are_listed_newest_first_and_can_be_named(database: Database) -> None:
    for number in (1, 2, 3):
        await database.write(start_session, f"s_{number}", f"agent:main:telegram:dm:{number % 2}")
        await database.write(transcripts.append, f"s_{number}", "t", said("x"), now=NOW + number)
    assert [each.id for each in await database.read(sessions.newest)] == ["s_3", "s_2", "s_1"]
    assert [each.id for each in await database.read(sessions.newest, key="agent:main:telegram:dm:1")] == [
        "s_3",
        "s_1",
    ]
    assert await database.write(sessions.rename, "s_2", "Garden")
    assert [each.id for each in await database.read(sessions.find, "Garden")] == ["s_2"]
    assert [each.id for each in await database.read(sessions.find, "s_3")] == ["s_3"]
    assert not await database.write(sessions.rename, "s_9", "x")


async def test_pages_are_newest_first_and_hold_what_is_wanted(database: Database) -> None:
    keys = ["agent:main:api:dm:a", "agent:main:api:dm:b:p=key%3Abob", "agent:main:api:dm:c:p=key%3ABob"]
    keys += ["agent:main:telegram:dm:7", "agent:main:telegram@work:dm:7", "agent:main:telegramx:dm:7"]
    for number, key in enumerate(keys):
        await database.write(sessions.start, f"s_{number}", key, now=NOW + number // 2)

    async def page(wanted: SessionFilter, before: tuple[float, str] = (NOW * 2, ""), limit: int = 10) -> list[str]:
        return [found.id for found in await database.read(sessions.page, wanted, before=before, limit=limit)]

    assert await page(SessionFilter(), limit=3) == ["s_5", "s_4", "s_3"]
    assert await page(SessionFilter(), before=(NOW + 1, "s_3")) == ["s_2", "s_1", "s_0"]
    assert await page(SessionFilter(key=keys[3])) == ["s_3"]
    assert await page(SessionFilter(beginnings=("agent:main:telegram:", "agent:main:telegram@"))) == ["s_4", "s_3"]
    assert await page(SessionFilter(own=("agent:main:api:", ":p=key%3Abob"))) == ["s_1"]
    shared = {"s_3": ("p_bob",), "s_4": ("p_bob", "p_eve"), "s_5": ("p_eve",)}
    for session, people in shared.items():
        for person in people:
            name, lane = f"t_{session}_{person}", keys[int(session[2:])]
            await database.write(
                turns.insert, name, lane=lane, session_id=session, person_id=person, reply_to="", now=NOW
            )
    own = SessionFilter(own=("agent:main:api:", ":p=key%3Abob"), person_id="p_bob")
    assert await page(own) == ["s_3", "s_1"]  # a talk that others share belongs to nobody alone


async def test_a_fork_has_lines_of_its_own_and_is_made_once(database: Database) -> None:
    await database.write(start_session)
    await database.write(transcripts.append, "s_1", "t_1", said(*"abcde"), now=NOW)
    key = "agent:main:api:dm:fork"
    for _ in range(2):
        await database.alone(sessions.fork, "s_1", "s_2", key, title="Fork", up_to=3, now=NOW + 1)
    assert [message.text for message in await database.read(transcripts.history, "s_2")] == ["a", "b", "c"]
    assert await database.write(transcripts.append, "s_2", "t_2", said("x"), now=NOW + 2) == 4
    assert len(await database.read(transcripts.lines, "s_1")) == 5
    forked = await database.read(sessions.get, "s_2")
    assert forked is not None
    assert (forked.key, forked.title, forked.created_at) == (key, "Fork", NOW + 1)
    await database.write(sessions.leave, key, reason="/new", now=NOW + 3)
    assert (await database.read(sessions.get, "s_2")).end_reason == "/new"  # type: ignore[union-attr]


async def test_only_ended_sessions_grow_stale(database: Database) -> None:
    begun = await begun_turn(database)
    await finish(database, begun)
    session_id = begun.turn.session_id
    assert await database.read(sessions.stale, NOW + 1) == []
    await database.write(sessions.end, session_id, reason="/new", now=NOW)
    assert await database.read(sessions.stale, NOW + 1) == [session_id]
    assert await database.read(sessions.stale, NOW) == []
