"""Approvals: stored questions with one answer."""

from __future__ import annotations

import asyncio

import pytest

from hermes.core.approval import ApprovalState
from hermes.store import approvals, claims
from hermes.store.db import Database
from hermes.store.turns import steps, tool_calls, turns
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.turns import TurnState
from tests.contract.store.rows import LANE, NOW, add_calls, begun_turn, question, take


async def waiting(db: Database, *asked: approvals.Question) -> BegunTurn:
    """A turn that sleeps on these questions."""
    begun, _ = await add_calls(db, await begun_turn(db), *(("danger", each) for each in asked))
    assert await db.write(steps.wait_for_approval, begun.claim, begun.turn, now=NOW)
    return begun


@pytest.mark.parametrize("allow", [True, False])
async def test_an_answer_moves_the_call_and_wakes_the_lane(database: Database, allow: bool) -> None:
    asked = question()
    begun = await waiting(database, asked)
    assert await database.read(claims.due, "lanes", now=NOW) == []
    assert await database.write(approvals.answer, asked.id, allow=allow, by="Ana", reason="why", now=NOW + 1)
    [call] = await database.read(tool_calls.of_turn, begun.turn.id)
    assert call.state == ("allowed" if allow else "refused")
    assert await database.read(claims.due, "lanes", now=NOW + 1) == [LANE]
    stored = await database.read(approvals.get, asked.id)
    assert stored is not None
    assert (stored.state, stored.answered_by, stored.reason) == ("allowed" if allow else "denied", "Ana", "why")


async def test_of_many_answers_at_once_one_wins(database: Database) -> None:
    for number in range(20):
        asked = question()
        lane = f"agent:main:telegram:dm:{number}"
        begun, _ = await add_calls(database, await begun_turn(database, lane=lane), ("danger", asked))
        assert await database.write(steps.wait_for_approval, begun.claim, begun.turn, now=NOW)
        answers = [
            database.write(approvals.answer, asked.id, allow=allow, by=f"p{allow:d}", reason="", now=NOW)
            for allow in (True, False, True, False)
        ]
        assert len([won for won in await asyncio.gather(*answers) if won is not None]) == 1
        stored = await database.read(approvals.get, asked.id)
        [call] = await database.read(tool_calls.of_turn, begun.turn.id)
        assert stored is not None
        assert call.state == {"allowed": "allowed", "denied": "refused"}[stored.state]


async def test_an_answer_after_the_time_counts_for_nothing(database: Database) -> None:
    asked = question(expires_at=NOW + 300)
    begun = await waiting(database, asked)
    assert not await database.write(approvals.answer, asked.id, allow=True, by="Ana", reason="", now=NOW + 300)
    [call] = await database.read(tool_calls.of_turn, begun.turn.id)
    assert call.state == "waiting"


async def test_a_turn_goes_on_when_its_question_expires(database: Database) -> None:
    asked = question(expires_at=NOW + 300)
    begun = await waiting(database, asked)
    assert await database.read(claims.next_due, "lanes") == NOW + 300
    assert await database.write(take, now=NOW + 299) is None
    resumed = await database.write(take, now=NOW + 300)
    assert resumed is not None
    assert resumed.turn.id == begun.turn.id
    assert [call.state for call in resumed.calls] == ["refused"]
    stored = await database.read(approvals.get, asked.id)
    assert stored is not None
    assert stored.state == ApprovalState.EXPIRED


async def test_one_of_two_answers_is_acted_on_while_the_other_question_waits(database: Database) -> None:
    first, second = question(), question()
    await waiting(database, first, second)
    assert await database.write(approvals.answer, first.id, allow=True, by="Ana", reason="", now=NOW)
    resumed = await database.write(take)
    assert resumed is not None
    assert [call.state for call in resumed.calls] == ["allowed", "waiting"]
    # Until that call has run, the lane does not sleep again.
    assert not await database.write(steps.wait_for_approval, resumed.claim, resumed.turn, now=NOW)
    await database.write(
        tool_calls.finish, resumed.claim, resumed.turn, resumed.calls[0], outcome="ok", result="done", now=NOW
    )
    assert await database.write(steps.wait_for_approval, resumed.claim, resumed.turn, now=NOW)
    turn = await database.read(turns.get, resumed.turn.id)
    assert turn is not None
    assert turn.state == TurnState.WAITING


async def test_an_answer_that_came_first_keeps_the_lane_awake(database: Database) -> None:
    asked = question()
    begun, _ = await add_calls(database, await begun_turn(database), ("danger", asked))
    await database.write(approvals.answer, asked.id, allow=True, by="Ana", reason="", now=NOW)
    assert not await database.write(steps.wait_for_approval, begun.claim, begun.turn, now=NOW)
    [call] = await database.write(tool_calls.as_they_stand, begun.turn.id, 1, now=NOW)
    assert call.state == "allowed"


async def test_questions_are_found_by_code_lane_and_turn(database: Database) -> None:
    asked = question(code="K7QP2M")
    begun = await waiting(database, asked)
    found = await database.read(approvals.by_code, "K7QP2M")
    assert found is not None
    assert found.id == asked.id
    assert await database.read(approvals.by_code, "NONE") is None
    assert [each.id for each in await database.read(approvals.pending, LANE)] == [asked.id]
    assert await database.read(approvals.pending, "agent:main:telegram:dm:8") == []
    assert [each.id for each in await database.read(approvals.pending)] == [asked.id]
    assert [each.id for each in await database.read(approvals.of_turn, begun.turn.id)] == [asked.id]
    assert await database.read(approvals.pending_count) == 1


async def test_cancelling_withdraws_what_is_pending_and_nothing_answered(database: Database) -> None:
    first, second = question(), question()
    begun = await waiting(database, first, second)
    await database.write(approvals.answer, first.id, allow=True, by="Ana", reason="", now=NOW)
    await database.write(approvals.cancel, begun.turn.id, reason="stopped", now=NOW + 1)
    states = {each.id: each.state for each in await database.read(approvals.of_turn, begun.turn.id)}
    assert states == {first.id: "allowed", second.id: "cancelled"}
    assert await database.read(approvals.pending_until, begun.turn.id) is None
