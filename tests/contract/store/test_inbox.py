"""The inbox: what arrived is stored once and settled once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes.store import claims, inbox
from hermes.store.db import Database
from hermes.store.inbox import InboxState
from tests.contract.store.rows import LANE, NOW, begun_turn, finish, incoming, take


async def test_an_event_is_stored_and_its_lane_is_due(database: Database) -> None:
    [accepted] = await database.write(inbox.accept, [incoming("hi", event_id="ev_a")], now=NOW)
    assert accepted.is_new
    row = await database.read(inbox.get, "ev_a")
    assert row is not None
    assert (row.state, row.lane, row.seq, row.settled_at) == ("queued", LANE, 1, None)
    assert await database.read(claims.due, "lanes", now=NOW) == [LANE]
    assert await database.read(inbox.waiting_count) == 1
    assert await database.read(inbox.has_queued, LANE)


@pytest.mark.parametrize(
    "keys", [("a",), ("b",), ("b", "a"), ("x", "b")], ids=["first", "second", "turned", "one of two"]
)
async def test_any_key_seen_before_makes_a_duplicate(database: Database, keys: tuple[str, ...]) -> None:
    await database.write(inbox.accept, [incoming(keys=("a", "b"))], now=NOW)
    [again] = await database.write(inbox.accept, [incoming(keys=keys)], now=NOW + 1)
    assert not again.is_new
    assert len(await database.read(inbox.queued, LANE)) == 1


async def test_a_batch_that_names_one_message_twice_stores_it_once(database: Database) -> None:
    accepted = await database.write(inbox.accept, [incoming(keys=("a",)), incoming(keys=("a", "a"))], now=NOW)
    assert [each.is_new for each in accepted] == [True, False]
    assert len(await database.read(inbox.queued, LANE)) == 1


async def test_the_same_message_stored_by_four_at_once_is_stored_once(database: Database) -> None:
    for number in range(25):
        keys = (f"a{number}", f"b{number}")
        batches = [[incoming(keys=keys)], [incoming(keys=keys)], [incoming(keys=keys)], [incoming(keys=keys[::-1])]]
        all_four = await asyncio.gather(*(database.write(inbox.accept, batch, now=NOW) for batch in batches))
        assert sum(accepted.is_new for [accepted] in all_four) == 1
    assert len(await database.read(inbox.queued, LANE)) == 25


async def test_writing_a_batch_again_after_an_unknown_commit_changes_nothing_and_says_the_same(
    database: Database,
) -> None:
    """Whoever repeats it never learned that it was stored: an event that must act at once has not acted yet."""
    batch = [
        incoming("hi"),
        incoming("/stop", state=InboxState.ACTING, kind="command"),
        replace(incoming(lane="", keys=(), state=InboxState.SET_ASIDE), reason="unreadable"),
    ]
    first = await database.write(inbox.accept, batch, now=NOW)
    second = await database.write(inbox.accept, batch, now=NOW + 1)
    assert [each.is_new for each in first] == [each.is_new for each in second] == [True, True, True]
    assert [row.id for row in await database.read(inbox.queued, LANE)] == [batch[0].id]
    assert len(await database.read(inbox.acting)) == 1


async def test_an_event_settled_at_once_has_its_time_and_wakes_nobody(database: Database) -> None:
    refused = replace(incoming(state=InboxState.REFUSED), reason="not_listed")
    await database.write(inbox.accept, [refused], now=NOW)
    row = await database.read(inbox.get, refused.id)
    assert row is not None
    assert (row.state, row.reason, row.settled_at) == ("refused", "not_listed", NOW)
    assert await database.read(claims.due, "lanes", now=NOW) == []
    assert await database.read(inbox.waiting_count) == 0


async def test_an_event_is_settled_only_once(database: Database) -> None:
    event = incoming()
    await database.write(inbox.accept, [event], now=NOW)
    assert await database.write(inbox.settle, event.id, state=InboxState.SET_ASIDE, reason="stopped", now=NOW + 1)
    assert not await database.write(inbox.settle, event.id, state=InboxState.ANSWERED, now=NOW + 2)
    row = await database.read(inbox.get, event.id)
    assert row is not None
    assert (row.state, row.reason, row.settled_at) == ("set_aside", "stopped", NOW + 1)


async def test_a_message_learns_which_turn_its_lane_is_in(database: Database) -> None:
    begun = await begun_turn(database)
    [accepted] = await database.write(inbox.accept, [incoming("more")], now=NOW)
    assert (accepted.turn_id, accepted.turn_state) == (begun.turn.id, "running")
    await database.write(inbox.settle, accepted.event_id, state=InboxState.SET_ASIDE, now=NOW)
    await finish(database, begun)
    [accepted] = await database.write(inbox.accept, [incoming("later")], now=NOW)
    assert (accepted.turn_id, accepted.turn_state) == ("", "")


async def test_a_turn_ends_the_events_it_consumed_and_no_other(database: Database) -> None:
    begun = await begun_turn(database, "first")
    later = incoming("later")
    await database.write(inbox.accept, [later], now=NOW)
    assert not await finish(database, begun), "the later message waits, so the lane does not sleep"
    [consumed] = await database.read(inbox.of_turn, begun.turn.id)
    assert (consumed.state, consumed.settled_at) == ("answered", NOW)
    row = await database.read(inbox.get, later.id)
    assert row is not None
    assert row.state == "queued"


async def test_what_waits_is_read_in_the_order_it_came(database: Database) -> None:
    for text in "abc":
        await database.write(inbox.accept, [incoming(text)], now=NOW)
    begun = await database.write(take)
    assert begun is not None
    assert begun.history[-1].text == "a\nb\nc"


async def test_stopping_sets_aside_what_came_before_the_command_and_leaves_what_came_after(database: Database) -> None:
    before, after = incoming("before"), incoming("after")
    stop = incoming("/stop", state=InboxState.ACTING, kind="command")
    await database.write(inbox.accept, [before, stop, after], now=NOW)
    row = await database.read(inbox.get, stop.id)
    assert row is not None
    assert await database.write(inbox.set_aside_queued, LANE, reason="stopped", now=NOW, up_to=row.seq) == 1
    states = [await database.read(inbox.get, event.id) for event in (before, after)]
    assert [state.state for state in states if state] == ["set_aside", "queued"]


async def test_a_message_waits_for_the_command_that_was_written_before_it(database: Database) -> None:
    new, hello = incoming("/new", state=InboxState.ACTING, kind="command"), incoming("hello")
    await database.write(inbox.accept, [new, hello], now=NOW)
    assert await database.write(take) is None
    assert await database.write(inbox.settle, new.id, state=InboxState.ANSWERED, now=NOW)
    assert await database.read(claims.due, "lanes", now=NOW) == [LANE]
    begun = await database.write(take)
    assert begun is not None
    assert begun.history[-1].text == "hello"


async def test_of_two_commands_that_end_at_once_the_later_wakes_what_waited_for_both(database: Database) -> None:
    for number in range(25):
        lane = f"agent:main:telegram:dm:{number}"
        commands = [incoming("/x", lane=lane, state=InboxState.ACTING, kind="command") for _ in range(2)]
        await database.write(inbox.accept, [*commands, incoming("hello", lane=lane)], now=NOW)
        results = await asyncio.gather(
            *(database.write(inbox.settle, each.id, state=InboxState.ANSWERED, now=NOW) for each in commands),
            database.write(take, lane),
        )
        begun = results[2] or await database.write(take, lane)
        assert begun is not None, f"stuck in round {number}"


async def test_what_must_act_is_found_again_after_a_crash(database: Database) -> None:
    stop = incoming("/stop", state=InboxState.ACTING, kind="command")
    await database.write(inbox.accept, [stop], now=NOW)
    assert [row.id for row in await database.read(inbox.acting)] == [stop.id]
    await database.write(inbox.settle, stop.id, state=InboxState.ANSWERED, now=NOW)
    assert await database.read(inbox.acting) == []


async def test_keys_are_forgotten_only_when_they_are_old(database: Database) -> None:
    await database.write(inbox.accept, [incoming(keys=("old",))], now=NOW)
    await database.write(inbox.accept, [incoming(keys=("new",))], now=NOW + 100)
    assert await database.alone(inbox.forget_keys, before=NOW + 50) == 1
    accepted = await database.write(inbox.accept, [incoming(keys=("old",)), incoming(keys=("new",))], now=NOW + 101)
    assert [each.is_new for each in accepted] == [True, False]


async def test_what_arrived_within_a_time_is_counted_by_account(database: Database) -> None:
    events = [incoming(event_id=f"ev_{number}") for number in range(3)]
    await database.write(inbox.accept, events[:1], now=NOW - 10)
    await database.write(inbox.accept, events[1:], now=NOW)
    await database.write(inbox.accept, [incoming(event_id="ev_1.0")], now=NOW)  # what a command queued again
    found = await database.read(inbox.arrived_counts, since=NOW - 5, before=NOW + 1)
    assert found == {(events[0].platform, events[0].account): 2}
    assert await database.read(inbox.arrived_counts, since=NOW - 50, before=NOW) == {
        (events[0].platform, events[0].account): 1
    }
