"""Claims: one owner at a time, a token that grows, and no lane that sleeps on a message."""

from __future__ import annotations

import asyncio

import pytest

from hermes.store import claims, inbox
from hermes.store.claims import Claim, Table
from hermes.store.cluster import nodes
from hermes.store.cluster.nodes import NewNode
from hermes.store.db import Database, Tx
from hermes.store.turns import lanes
from tests.contract.store.rows import DONE, NOW, OWNER, begin_next, begun_turn, finish, incoming, take

TABLES: list[Table] = ["lanes", "targets"]


def _wake_many(tx: Tx, table: Table, count: int) -> None:
    for number in range(count):
        claims.wake(tx, table, f"k{number:03}", at=NOW)


@pytest.mark.one_python
@pytest.mark.parametrize("table", TABLES)
async def test_four_at_once_make_four_hundred_claims_of_four_hundred_keys(database: Database, table: Table) -> None:
    """On PostgreSQL four threads with a connection each. A SQLite file has one writer: nobody opens it twice."""
    await database.write(_wake_many, table, 400)

    async def work(owner: str) -> list[str]:
        taken: list[str] = []
        while due := await database.read(claims.due, table, now=NOW, limit=5):
            asked = (database.write(claims.claim, table, key, owner=owner, now=NOW) for key in due)
            taken += [claim.key for claim in await asyncio.gather(*asked) if claim is not None]
        return taken

    each = await asyncio.gather(*(work(f"inc_{number}") for number in range(4)))
    taken = [key for keys in each for key in keys]
    assert len(taken) == 400
    assert len(set(taken)) == 400
    assert await database.write(claims.claim, table, taken[0], owner="late", now=NOW) is None


@pytest.mark.parametrize("table", TABLES)
async def test_one_key_asked_for_by_many_goes_to_one(database: Database, table: Table) -> None:
    await database.write(claims.wake, table, "k", at=NOW)
    asked = (database.write(claims.claim, table, "k", owner=f"inc_{number}", now=NOW) for number in range(8))
    won = [claim for claim in await asyncio.gather(*asked) if claim is not None]
    assert [claim.key for claim in won] == ["k"]


@pytest.mark.parametrize("table", TABLES)
async def test_what_is_not_due_is_not_claimed(database: Database, table: Table) -> None:
    await database.write(claims.wake, table, "k", at=NOW + 5)
    assert await database.write(claims.claim, table, "k", owner=OWNER, now=NOW) is None
    assert await database.read(claims.due, table, now=NOW) == []
    assert await database.read(claims.next_due, table) == NOW + 5
    assert await database.read(claims.due, table, now=NOW + 5) == ["k"]


@pytest.mark.parametrize("table", TABLES)
async def test_waking_keeps_the_earlier_time_and_counts_up(database: Database, table: Table) -> None:
    assert await database.write(claims.wake, table, "k", at=NOW) == 1
    assert await database.write(claims.wake, table, "k", at=NOW + 60) == 2
    assert await database.read(claims.next_due, table) == NOW


@pytest.mark.parametrize("table", TABLES)
async def test_one_who_saw_less_than_there_is_cannot_fall_asleep(database: Database, table: Table) -> None:
    await database.write(claims.wake, table, "k", at=NOW)
    held = await database.write(claims.claim, table, "k", owner=OWNER, now=NOW)
    assert held is not None
    await database.write(claims.wake, table, "k", at=NOW)
    assert not await database.write(claims.release, table, held, seen=held.seq, next_at=None)
    seen = await database.read(claims.seq_of, table, held)
    assert seen == held.seq + 1
    assert await database.write(claims.release, table, held, seen=seen, next_at=None)
    assert await database.read(claims.due, table, now=NOW + 999) == []


@pytest.mark.parametrize("table", TABLES)
async def test_whoever_lost_a_claim_can_neither_release_nor_abandon_it(database: Database, table: Table) -> None:
    await database.write(claims.wake, table, "k", at=NOW)
    old = await database.write(claims.claim, table, "k", owner=OWNER, now=NOW)
    assert old is not None
    assert await database.write(claims.free_older, table, owner="inc_2", now=NOW) == 1
    new = await database.write(claims.claim, table, "k", owner="inc_2", now=NOW)
    assert new is not None
    assert new.token > old.token
    assert await database.read(claims.seq_of, table, old) is None
    assert not await database.write(claims.release, table, old, seen=old.seq, next_at=None)
    await database.write(claims.abandon, table, old, now=NOW)
    assert await database.read(claims.held_by, table, owner="inc_2") == [new]


@pytest.mark.parametrize("table", TABLES)
async def test_a_new_incarnation_frees_what_others_held_and_nothing_else(database: Database, table: Table) -> None:
    await database.write(_wake_many, table, 3)
    await database.write(claims.claim, table, "k000", owner="dead", now=NOW)
    mine = await database.write(claims.claim, table, "k001", owner="alive", now=NOW)
    await database.write(claims.free_older, table, owner="alive", now=NOW + 1)
    assert await database.read(claims.held_by, table, owner="alive") == [mine]
    assert sorted(await database.read(claims.due, table, now=NOW + 1)) == ["k000", "k002"]


async def test_an_abandoned_claim_is_due_for_whoever_comes_next(database: Database) -> None:
    await database.write(claims.wake, "lanes", "k", at=NOW)
    held = await database.write(claims.claim, "lanes", "k", owner=OWNER, now=NOW)
    assert held is not None
    await database.write(claims.abandon, "lanes", held, now=NOW + 1)
    again = await database.write(claims.claim, "lanes", "k", owner="inc_2", now=NOW + 1)
    assert again == Claim("k", held.token + 1, held.seq)


@pytest.mark.one_python
async def test_a_lane_never_falls_asleep_with_a_message_in_it(database: Database) -> None:
    """Accepting and finishing race 500 times, on PostgreSQL truly at once; whatever wins, the message gets its turn."""

    async def hammer(lane: str) -> None:
        for number in range(50):
            begun = await begun_turn(database, f"first {number}", lane=lane)
            late = incoming(f"late {number}", lane=lane)
            is_asleep, _ = await asyncio.gather(
                finish(database, begun, DONE), database.write(inbox.accept, [late], now=NOW)
            )
            # Asleep means that the message came after and woke the lane, so that it can be taken.
            next_turn = await (database.write(take, lane) if is_asleep else database.write(begin_next, begun))
            assert next_turn is not None, f"{lane} is stuck in round {number}"
            assert next_turn.history[-1].text == f"late {number}"
            assert await finish(database, next_turn)

    await asyncio.gather(*(hammer(f"agent:main:telegram:dm:{number}") for number in range(10)))


async def test_two_owners_taking_one_lane_make_one_turn(database: Database) -> None:
    for number in range(20):
        await database.write(inbox.accept, [incoming(str(number))], now=NOW)
        both = await asyncio.gather(*(database.write(take, owner=f"inc_{each}") for each in range(4)))
        begun = [each for each in both if each is not None]
        assert len(begun) == 1
        await finish(database, begun[0])


async def test_a_lane_that_depends_on_a_node_stays_there_while_that_lives(database: Database) -> None:
    await database.write(nodes.join, NewNode("inc_a", "anna", "host", 1, "1.0", 6), lease_seconds=-1.0)
    await database.write(claims.wake, "lanes", "talk", at=NOW)
    await database.write(lanes.depend_on, "talk", "anna")
    assert await database.write(lanes.claim, "talk", owner="inc_b", now=NOW, node="bert") is None
    assert await database.read(lanes.due, now=NOW, node="bert") == []
    assert await database.read(lanes.due, now=NOW, node="anna") == ["talk"]
    await database.write(nodes.bury, "inc_a")
    assert await database.read(lanes.due, now=NOW, node="bert") == ["talk"]
    taken = await database.write(lanes.claim, "talk", owner="inc_b", now=NOW, node="bert")
    assert taken is not None
    assert taken[1].node == "anna", "so that bert can say from where it moved"
