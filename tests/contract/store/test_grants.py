"""Grants: what they cover, for whom, how long, and that they end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.core.messages import ChatMessage, Role, ToolCall
from hermes.core.roles import PersonRole
from hermes.store import approvals, grants, people
from hermes.store.db import Database
from hermes.store.grants import Grant
from hermes.store.sessions import sessions
from hermes.store.turns import steps, tool_calls, turns
from tests.contract.store.rows import LANE, NOW, add_calls, begun_turn, question

GRANT = Grant("gr_1", "p_7", "always", "delete on local", "", 1, "p_admin", NOW, "asked as K7QP2M", None)


async def met(db: Database, person_id: str, role: PersonRole, *, user: str = "") -> None:
    await db.write(
        people.ensure,
        person_id,
        platform="telegram",
        user_id=user or person_id,
        name=person_id,
        role=role.value,
        now=NOW,
    )


async def covers(db: Database, *, person: str = "p_7", session: str = "s_1", host: bool = True, **more: str) -> bool:
    subject = more.get("subject", GRANT.subject)
    found = await db.read(grants.covering, person_id=person, session_id=session, subject=subject, touches_host=host)
    return found is not None


async def test_a_grant_covers_its_person_and_its_kind_and_nothing_else(database: Database) -> None:
    await met(database, "p_admin", PersonRole.ADMIN)
    await database.write(grants.give, GRANT)
    assert await covers(database)
    assert await covers(database, host=False), "who may do it on the host may do it in a sandbox"
    assert not await covers(database, person="p_8")
    assert not await covers(database, subject="delete on docker")
    assert not await covers(database, subject="")
    assert not await covers(database, person="")


async def test_a_grant_for_a_session_is_for_that_one(database: Database) -> None:
    await met(database, "p_admin", PersonRole.ADMIN)
    await database.write(grants.give, replace(GRANT, session_id="s_1", scope="session"))
    assert await covers(database, session="s_1")
    assert not await covers(database, session="s_2")
    assert not await covers(database, session="")


@pytest.mark.parametrize("role", PersonRole)
async def test_what_reaches_the_host_holds_as_long_as_who_gave_it_may_give_it(
    database: Database, role: PersonRole
) -> None:
    await met(database, "p_admin", PersonRole.ADMIN)
    await database.write(grants.give, GRANT)
    await database.write(people.set_role, "p_admin", role.value)
    assert await covers(database) is (role in (PersonRole.ADMIN, PersonRole.OWNER))


async def test_a_grant_for_a_sandbox_does_not_reach_the_host(database: Database) -> None:
    await met(database, "p_7", PersonRole.USER)
    await database.write(grants.give, replace(GRANT, touches_host=0, granted_by="p_7"))
    assert await covers(database, host=False)
    assert not await covers(database, host=True)


async def test_a_grant_ends_when_it_is_revoked_and_only_once(database: Database) -> None:
    await met(database, "p_admin", PersonRole.ADMIN)
    await database.write(grants.give, GRANT)
    revoked = await database.write(grants.revoke, GRANT.id, now=NOW + 5)
    assert revoked is not None
    assert revoked.revoked_at == NOW + 5
    assert not await covers(database)
    assert await database.write(grants.revoke, GRANT.id, now=NOW + 6) is None
    assert await database.read(grants.standing) == []
    await database.write(grants.give, replace(GRANT, id="gr_2"))
    assert await covers(database), "and can be given again"


async def test_the_same_grant_twice_is_one(database: Database) -> None:
    await database.write(grants.give, GRANT)
    await database.write(grants.give, replace(GRANT, id="gr_2", granted_at=NOW + 9))
    assert await database.read(grants.standing) == [GRANT]


async def test_grants_are_listed_by_person_and_not_of_sessions_that_ended(database: Database) -> None:
    await database.write(sessions.start, "s_1", LANE, now=NOW)
    await database.write(grants.give, replace(GRANT, session_id="s_1", scope="session"))
    await database.write(grants.give, replace(GRANT, id="gr_2", person_id="p_8", granted_at=NOW + 1))
    assert [grant.id for grant in await database.read(grants.standing)] == ["gr_2", "gr_1"]
    assert [grant.id for grant in await database.read(grants.standing, person_id="p_7")] == ["gr_1"]
    await database.write(sessions.end, "s_1", reason="new", now=NOW + 2)
    assert [grant.id for grant in await database.read(grants.standing)] == ["gr_2"]


async def test_a_task_that_was_handed_on_asks_for_the_session_of_the_chat_it_works_for(database: Database) -> None:
    chat = await begun_turn(database, lane="agent:main:telegram:dm:9")
    errand = await begun_turn(database)
    call = ToolCall("call_1", "danger", "{}")
    asked = replace(question(), subject="kind")
    await database.write(
        steps.add_step,
        errand.claim,
        errand.turn,
        ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
        [tool_calls.NewCall("c_1", call, asked)],
        usage=turns.NO_USAGE,
        origin=chat.turn.lane,
        now=NOW,
    )
    stored = await database.read(approvals.get, asked.id)
    assert stored is not None
    assert stored.session_id == chat.turn.session_id != errand.turn.session_id


async def test_a_step_asks_about_nothing_that_a_grant_covers_and_writes_down_why(database: Database) -> None:
    await met(database, "p_7", PersonRole.OWNER, user="7")
    await database.write(grants.give, replace(GRANT, granted_by="p_7"))
    covered = replace(question(), subject=GRANT.subject)
    asked = replace(question(), subject="another kind")
    begun, calls = await add_calls(database, await begun_turn(database), ("danger", covered), ("danger", asked))
    assert [call.state for call in calls] == ["allowed", "waiting"]
    noted = await database.read(approvals.get, covered.id)
    assert noted is not None
    assert (noted.state, noted.answered_by, noted.scope) == ("allowed", "grant gr_1", "always")
    [waiting] = await database.read(approvals.pending)
    assert waiting.id == asked.id
    assert waiting.session_id == begun.turn.session_id
    assert await database.read(tool_calls.get, calls[0].id) == calls[0]
