"""Turns: begun from the inbox, carried step by step, ended once; every call gets an answer."""

from __future__ import annotations

import pytest

from hermes.core.lane import BusyMode
from hermes.core.messages import ChatMessage, Role
from hermes.store import approvals, claims, inbox, outbox
from hermes.store.db import Database, Tx
from hermes.store.inbox import InboxState
from hermes.store.sessions import sessions, transcripts
from hermes.store.turns import end as turn_end
from hermes.store.turns import lanes, steps, tool_calls, turns
from hermes.store.turns.begin import BegunTurn
from hermes.store.turns.end import Ending
from hermes.store.turns.lanes import LostClaim
from hermes.store.turns.turns import TurnState
from tests.contract.store.rows import (
    DONE,
    LANE,
    NOW,
    add_calls,
    begin_next,
    begun_turn,
    compose,
    finish,
    incoming,
    letter,
    question,
    rules,
    take,
)

STOPPED = Ending(TurnState.STOPPED, InboxState.SET_ASIDE, "stopped")


async def history(db: Database, begun: BegunTurn) -> list[ChatMessage]:
    return await db.read(transcripts.history, begun.turn.session_id)


def crash(tx: Tx, owner: str = "inc_2") -> None:
    """The process died; the next one takes over."""
    claims.free_older(tx, "lanes", owner=owner, now=NOW)
    claims.free_older(tx, "targets", owner=owner, now=NOW)


async def test_a_message_becomes_a_turn_and_a_turn_an_answer(database: Database) -> None:
    begun = await begun_turn(database, "hello")
    assert [message.text for message in begun.history] == ["hello"]
    assert (begun.turn.attempts, begun.is_resumed) == (1, False)
    reply = letter("hi there", turn_id=begun.turn.id)
    ending = Ending(TurnState.DONE, InboxState.ANSWERED, "", [ChatMessage(Role.ASSISTANT, "hi there")], [reply])
    assert await finish(database, begun, ending)
    turn = await database.read(turns.get, begun.turn.id)
    assert turn is not None
    assert (turn.state, turn.ended_at) == ("done", NOW)
    assert [message.text for message in await history(database, begun)] == ["hello", "hi there"]
    assert [row.state for row in await database.read(outbox.of_turn, turn.id)] == ["ready"]
    assert await database.read(turns.of_lane, LANE) is None
    assert await database.write(take) is None


async def test_nothing_queued_lets_the_lane_sleep(database: Database) -> None:
    begun = await begun_turn(database)
    await finish(database, begun)
    assert await database.read(claims.due, "lanes", now=NOW + 9999) == []


async def test_a_message_that_may_go_on_is_waited_for(database: Database) -> None:
    await database.write(inbox.accept, [incoming("long", ready_at=NOW + 2)], now=NOW)
    assert await database.write(take, now=NOW) is None
    assert await database.read(claims.next_due, "lanes") == NOW + 2
    begun = await database.write(take, now=NOW + 2)
    assert begun is not None


async def test_in_queue_mode_each_message_is_a_turn_of_its_own(database: Database) -> None:
    for text in "abc":
        await database.write(inbox.accept, [incoming(text)], now=NOW)
    by = rules(BusyMode.QUEUE)
    begun = await database.write(take, by=by)
    said = []
    while begun is not None:
        said.append(begun.history[-1].text)
        is_asleep = await finish(database, begun)
        begun = None if is_asleep else await database.write(begin_next, begun, by=by)
    assert said == ["a", "b", "c"]


async def test_a_chats_own_busy_mode_is_kept(database: Database) -> None:
    assert await database.read(lanes.busy_mode, LANE) == ""
    await database.write(lanes.set_busy_mode, LANE, "queue")
    assert await database.read(lanes.busy_mode, LANE) == "queue"
    for text in "ab":
        await database.write(inbox.accept, [incoming(text)], now=NOW)
    begun = await database.write(take)
    assert begun is not None
    assert begun.history[-1].text == "a"


async def test_a_crash_in_mid_turn_is_resumed_and_counted(database: Database) -> None:
    begun = await begun_turn(database)
    await database.write(crash)
    resumed = await database.write(take, owner="inc_2")
    assert resumed is not None
    assert (resumed.turn.id, resumed.turn.attempts, resumed.is_resumed) == (begun.turn.id, 2, True)
    assert [message.text for message in resumed.history] == ["hi"]


async def test_a_clean_stop_in_mid_turn_is_resumed_and_not_counted(database: Database) -> None:
    begun = await begun_turn(database)
    for _ in range(5):
        await database.write(turn_end.abandon, begun.claim, begun.turn.id, now=NOW)
        resumed = await database.write(take)
        assert resumed is not None
        begun = resumed
    assert begun.turn.attempts == 1


async def test_whoever_lost_the_lane_can_write_nothing_more(database: Database) -> None:
    begun, [call] = await add_calls(database, await begun_turn(database), ("read_file", None))
    await database.write(crash)
    newer = await database.write(take, owner="inc_2")
    assert newer is not None
    said = ChatMessage(Role.ASSISTANT, "late")
    for late in (
        database.write(steps.add_message, begun.claim, begun.turn, said, now=NOW),
        database.write(tool_calls.start, begun.claim, call.id, now=NOW),
        database.write(tool_calls.finish, begun.claim, begun.turn, call, outcome="ok", result="x", now=NOW),
        database.write(steps.wait_for_approval, begun.claim, begun.turn, now=NOW),
        database.write(turn_end.finish, begun.claim, begun.turn, DONE, now=NOW),
        database.write(begin_next, begun),
        database.write(steps.steer, begun.claim, begun.turn, compose=compose, now=NOW),
    ):
        with pytest.raises(LostClaim):
            await late
    assert await database.read(turns.of_lane, LANE) is not None


async def test_a_call_is_started_before_it_ends_and_ends_once(database: Database) -> None:
    begun, [call] = await add_calls(database, await begun_turn(database), ("read_file", None))
    assert call.state == "proposed"
    await database.write(tool_calls.start, begun.claim, call.id, now=NOW + 1)
    [started] = await database.read(tool_calls.of_step, begun.turn.id, 1)
    assert (started.state, started.started_at) == ("started", NOW + 1)
    for result in ("first", "second"):
        await database.write(tool_calls.finish, begun.claim, begun.turn, call, outcome="ok", result=result, now=NOW + 2)
    results = [message.text for message in await history(database, begun) if message.role is Role.TOOL]
    assert results == ["first"]


async def test_ending_a_turn_answers_every_open_call(database: Database) -> None:
    asked = question()
    begun, calls = await add_calls(
        database, await begun_turn(database), ("a", None), ("b", None), ("danger", asked), ("d", None)
    )
    await database.write(tool_calls.finish, begun.claim, begun.turn, calls[0], outcome="ok", result="one", now=NOW)
    await database.write(tool_calls.start, begun.claim, calls[1].id, now=NOW)
    assert await finish(database, begun, STOPPED)
    rows = await database.read(tool_calls.of_turn, begun.turn.id)
    assert [row.outcome for row in rows] == ["ok", "interrupted", "skipped", "skipped"]
    lines = await history(database, begun)
    answered = [line.tool_call_id for line in lines if line.role is Role.TOOL]
    assert sorted(answered) == sorted(call.call_id for call in calls)
    stored = await database.read(approvals.get, asked.id)
    assert stored is not None
    assert (stored.state, stored.reason) == ("cancelled", "stopped")
    assert [row.reason for row in await database.read(inbox.of_turn, begun.turn.id)] == ["stopped"]


async def test_whoever_ends_a_turn_need_not_know_of_its_last_step(database: Database) -> None:
    """A cancellation can come between the commit of a step and the moment its caller hears of it."""
    before = await begun_turn(database)
    await add_calls(database, before, ("danger", question()))
    assert before.turn.steps == 0
    assert await finish(database, before, STOPPED)
    assert [row.outcome for row in await database.read(tool_calls.of_turn, before.turn.id)] == ["skipped"]
    assert await database.read(turns.of_lane, LANE) is None


async def test_a_fresh_session_is_begun_with_what_is_stored_of_it(database: Database) -> None:
    begun = await begun_turn(database)
    assert list(begun.history) == await history(database, begun)
    session = await database.read(sessions.get, begun.turn.session_id)
    assert session is not None
    assert session.seq == len(begun.history)
    assert await database.read(sessions.of_lane, LANE) == session.id


async def test_finishing_twice_stores_one_reply(database: Database) -> None:
    begun = await begun_turn(database)
    await database.write(inbox.accept, [incoming("next")], now=NOW)
    reply = letter(turn_id=begun.turn.id)
    ending = Ending(TurnState.DONE, InboxState.ANSWERED, "", [ChatMessage(Role.ASSISTANT, "x")], [reply])
    assert not await finish(database, begun, ending)
    assert not await finish(database, begun, ending)
    assert [line.text for line in await history(database, begun)] == ["hi", "x"]
    assert len(await database.read(outbox.of_turn, begun.turn.id)) == 1


async def test_usage_of_all_steps_is_summed(database: Database) -> None:
    begun, _ = await add_calls(database, await begun_turn(database), ("a", None))
    begun, _ = await add_calls(database, begun, ("b", None))
    await finish(database, begun)
    turn = await database.read(turns.get, begun.turn.id)
    assert turn is not None
    assert (turn.steps, turn.prompt_tokens, turn.completion_tokens) == (2, 20, 10)


async def test_steering_hands_over_what_came_meanwhile(database: Database) -> None:
    begun = await begun_turn(database)
    steer = (begun.claim, begun.turn)
    assert await database.write(steps.steer, *steer, compose=compose, now=NOW) is None
    more = incoming("more")
    await database.write(inbox.accept, [more], now=NOW)
    added = await database.write(steps.steer, *steer, compose=compose, now=NOW)
    assert added is not None
    assert added.text == "more"
    assert await finish(database, begun)
    row = await database.read(inbox.get, more.id)
    assert row is not None
    assert (row.state, row.turn_id) == ("answered", begun.turn.id)


async def test_only_the_named_turn_is_cancelled_while_it_sleeps(database: Database) -> None:
    begun, _ = await add_calls(database, await begun_turn(database), ("danger", question()))
    assert not await database.write(turn_end.cancel_waiting, LANE, STOPPED, now=NOW, only=begun.turn.id), "it runs"
    assert await database.write(steps.wait_for_approval, begun.claim, begun.turn, now=NOW)
    assert not await database.write(turn_end.cancel_waiting, LANE, STOPPED, now=NOW, only="t_other")
    assert await database.write(turn_end.cancel_waiting, LANE, STOPPED, now=NOW, only=begun.turn.id)
    assert not await database.write(turn_end.cancel_waiting, LANE, STOPPED, now=NOW, only=begun.turn.id)
    assert await database.read(turns.of_lane, LANE) is None
    assert await database.read(approvals.pending_count) == 0


async def test_a_session_is_renewed_only_between_turns(database: Database) -> None:
    begun = await begun_turn(database)
    await database.write(crash)
    resumed = await database.write(take, by=rules(renews="idle"))
    assert resumed is not None
    assert resumed.turn.session_id == begun.turn.session_id
    await finish(database, resumed)
    await database.write(inbox.accept, [incoming("next day")], now=NOW)
    fresh = await database.write(take, by=rules(renews="idle for 120 minutes"))
    assert fresh is not None
    assert fresh.turn.session_id != begun.turn.session_id
    assert fresh.renewed == "idle for 120 minutes"
    assert [line.text for line in fresh.history] == ["next day"]
    old = await database.read(sessions.get, begun.turn.session_id)
    assert old is not None
    assert old.end_reason == "idle for 120 minutes"


async def test_a_row_nobody_can_read_is_set_aside_and_the_rest_goes_on(database: Database) -> None:
    bad, good = incoming("bad"), incoming("good")
    await database.write(inbox.accept, [bad, good], now=NOW)

    def spoil(tx: Tx) -> None:
        tx.run("UPDATE inbox SET body = '{' WHERE id = :id", id=bad.id)

    await database.write(spoil)
    begun = await database.write(take)
    assert begun is not None
    assert begun.history[-1].text == "good"
    row = await database.read(inbox.get, bad.id)
    assert row is not None
    assert row.state == "set_aside"
    assert row.reason


async def test_a_session_deleted_under_a_running_turn_does_not_stop_the_lane(database: Database) -> None:
    begun, [call] = await add_calls(database, await begun_turn(database), ("read_file", None))
    assert await database.write(sessions.delete, begun.turn.session_id)
    await database.write(tool_calls.finish, begun.claim, begun.turn, call, outcome="ok", result="x", now=NOW)
    assert await finish(database, begun)
    assert (await begun_turn(database, "again")).history[-1].text == "again"


async def test_processes_of_unfinished_calls_are_known_after_a_crash(database: Database) -> None:
    begun, [call] = await add_calls(database, await begun_turn(database), ("terminal", None))
    await database.write(tool_calls.note_process, call.id, group=4711, started="99")
    [left] = await database.read(tool_calls.leftover_processes)
    assert (left.call_id, left.process_group, left.process_started) == (call.id, 4711, "99")
    await database.write(tool_calls.finish, begun.claim, begun.turn, call, outcome="ok", result="", now=NOW)
    assert await database.read(tool_calls.leftover_processes) == []
