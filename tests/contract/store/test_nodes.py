"""Nodes and duties: who lives by the database's clock, and what is free after a node is gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from hermes.core.errors import NodeIsGoneError, StoreIsDownError
from hermes.store import claims
from hermes.store.cluster import duties, nodes
from hermes.store.cluster.nodes import NewNode, NodeState
from hermes.store.db import Database, Tx
from hermes.store.open import open_database
from hermes.store.postgres import PostgresDatabase
from tests.contract.store.servers import PostgresForTests


def new(name: str) -> NewNode:
    return NewNode(f"inc_{name}", name, "host", 1, "1.0", 6)


async def join(database: Database, *names: str, lease: float = 60.0) -> None:
    for name in names:
        await database.write(nodes.join, new(name), lease_seconds=lease)


async def names(database: Database) -> list[str]:
    return [node.name for node in (await database.read(nodes.look)).nodes]


async def test_a_node_lives_as_long_as_its_beats_extend_its_lease(database: Database) -> None:
    await join(database, "a", lease=-1.0)
    view = await database.read(nodes.look)
    assert view.nodes[0].is_over(view.now)
    assert await database.write(nodes.beat, "inc_a") is not None
    view = await database.read(nodes.look)
    assert not view.nodes[0].is_over(view.now)
    assert await database.write(nodes.bury, "inc_a") is None


async def test_a_node_whose_lease_ran_out_is_buried_once_and_all_it_held_is_free(database: Database) -> None:
    await join(database, "a", lease=-1.0)
    await join(database, "b")
    await database.write(claims.wake, "lanes", "one", at=5.0)
    await database.write(claims.wake, "targets", "telegram:1", at=5.0)
    held = await database.write(claims.claim, "lanes", "one", owner="inc_a", now=9e9)
    sends = await database.write(claims.claim, "targets", "telegram:1", owner="inc_a", now=9e9)
    assert held is not None
    assert sends is not None
    assert await database.write(duties.claim, "account:telegram", owner="inc_a") == 1

    buried = await database.write(nodes.bury, "inc_a")
    assert buried is not None
    assert (buried.node.name, buried.lanes, buried.targets, buried.duties) == ("a", 1, 1, 1)
    assert await database.write(nodes.bury, "inc_a") is None
    assert await names(database) == ["b"]

    again = await database.write(claims.claim, "lanes", "one", owner="inc_b", now=0.0)
    assert again is not None, "due at once, whatever the clock of the next owner says"
    assert again.token > held.token + 1
    assert not await database.write(claims.release, "lanes", held, seen=held.seq, next_at=None)
    assert await database.write(duties.claim, "account:telegram", owner="inc_b") == 3


async def test_what_a_living_node_holds_stays_its_own(database: Database) -> None:
    await join(database, "a", "b")
    assert await database.write(duties.claim, "task:janitor", owner="inc_a") == 1
    assert await database.write(duties.claim, "task:janitor", owner="inc_b") is None
    assert await database.write(nodes.bury, "inc_a") is None
    assert not await database.write(duties.release, "task:janitor", owner="inc_b")
    assert (await database.read(nodes.look)).duties == {"task:janitor": "inc_a"}


async def test_a_node_that_said_goodbye_is_buried_before_its_lease_ends(database: Database) -> None:
    await join(database, "a", "b")
    await database.write(duties.claim, "account:qq", owner="inc_a")
    await database.write(nodes.leave, "inc_a")
    assert await database.write(nodes.beat, "inc_a") is None
    buried = await database.write(nodes.bury, "inc_a")
    assert buried is not None
    assert buried.duties == 1


async def test_a_node_that_is_gone_cannot_beat_itself_back(database: Database) -> None:
    await join(database, "a", lease=-1.0)
    await database.write(nodes.bury, "inc_a")
    assert await database.write(nodes.beat, "inc_a") is None
    assert not await database.write(nodes.join, new("a")), "a lost connection that comes back does not bring it back"
    assert await names(database) == []
    assert [node.state for node in await database.read(nodes.listed)] == [NodeState.GONE]


async def test_draining_gives_back_every_duty_and_the_node_lives_on(database: Database) -> None:
    await join(database, "a", "b")
    for key in ("account:qq", "account:telegram"):
        await database.write(duties.claim, key, owner="inc_a")
    assert await database.write(nodes.set_draining, "inc_a", is_draining=True)
    assert sorted(await database.write(duties.release_all, owner="inc_a")) == ["account:qq", "account:telegram"]
    assert await database.write(nodes.beat, "inc_a") is not None
    assert await database.write(duties.claim, "account:qq", owner="inc_b") is not None
    assert await database.write(nodes.set_draining, "inc_a", is_draining=False)


async def test_one_of_many_that_want_a_duty_at_once_gets_it(database: Database) -> None:
    taken = await asyncio.gather(*(database.write(duties.claim, "task:x", owner=f"inc_{n}") for n in range(8)))
    assert len([token for token in taken if token is not None]) == 1


async def test_targets_are_found_by_the_accounts_of_a_node(database: Database) -> None:
    for target in ("telegram:1", "telegram@work:1", "qq:5"):
        await database.write(claims.wake, "targets", target, at=1.0)
    assert await database.read(claims.due_targets, ["telegram:", "qq:"], now=2.0) == ["telegram:1", "qq:5"]
    assert await database.read(claims.due_targets, [], now=2.0) == []


# PostgreSQL alone: every write shows its node


def put(tx: Tx, key: str) -> None:
    tx.run("INSERT INTO meta (key, value) VALUES (:key, '')", key=key)


def has(tx: Tx, key: str) -> bool:
    return tx.value("SELECT 1 FROM meta WHERE key = :key", key=key) is not None


@pytest.fixture
def url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as found:
        yield found


@pytest.fixture
async def cluster(url: str) -> AsyncIterator[PostgresDatabase]:
    opened = await open_database(url)
    assert isinstance(opened, PostgresDatabase)
    yield opened
    await opened.close()


async def test_a_node_that_is_gone_writes_nothing_any_more(cluster: PostgresDatabase, url: str) -> None:
    await join(cluster, "a")
    cluster.show_node("inc_a")
    await cluster.write(put, "before")
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE nodes SET state = 'gone'")
    with pytest.raises(NodeIsGoneError):
        await cluster.write(put, "after")
    assert await cluster.read(has, "before"), "reading is no harm"
    assert not await cluster.read(has, "after")


async def test_burying_waits_for_a_write_under_way_and_refuses_the_next(cluster: PostgresDatabase, url: str) -> None:
    await join(cluster, "a", lease=-1.0)
    cluster.show_node("inc_a")
    has_begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def put_slowly(tx: Tx) -> None:
        put(tx, "slow")
        loop.call_soon_threadsafe(has_begun.set)
        assert may_end.wait(20)

    writing = asyncio.create_task(cluster.write(put_slowly))
    await has_begun.wait()
    other = await open_database(url)
    try:
        with pytest.raises(StoreIsDownError):
            await other.write(nodes.bury, "inc_a")  # it waits no longer than half a second
        may_end.set()
        await writing
        assert await other.write(nodes.bury, "inc_a") is not None
        with pytest.raises(NodeIsGoneError):
            await cluster.write(put, "late")
        assert await cluster.read(has, "slow")
    finally:
        may_end.set()
        await other.close()


async def test_a_node_that_stands_inside_a_transaction_is_cut_off_and_its_write_is_undone(
    cluster: PostgresDatabase, url: str
) -> None:
    cluster.show_node("inc_a")  # before its first connection
    other = await open_database(url)
    await join(other, "a", lease=-1.0)
    has_begun, may_end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    tries: list[int] = []

    def stand_still(tx: Tx) -> None:
        put(tx, "paused")
        tries.append(1)
        if len(tries) == 1:
            loop.call_soon_threadsafe(has_begun.set)
            assert may_end.wait(20)

    writing = asyncio.create_task(cluster.write(stand_still))
    await has_begun.wait()
    try:
        assert await other.alone(nodes.end_sessions, "inc_a") == 1
        assert await other.write(nodes.bury, "inc_a") is not None
        may_end.set()
        with pytest.raises(StoreIsDownError):
            await writing
        assert not await other.read(has, "paused")
    finally:
        may_end.set()
        await other.close()


async def test_a_beat_does_not_wait_for_a_write_under_way(cluster: PostgresDatabase, url: str) -> None:
    await join(cluster, "a")
    cluster.show_node("inc_a")
    beats: list[object] = []

    def beat_meanwhile(tx: Tx) -> None:
        tx.value("SELECT 1")
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("SET statement_timeout = '2s'")
            beats.append(other.execute("UPDATE nodes SET lease_until = lease_until + 1 RETURNING id").fetchone())

    await cluster.write(beat_meanwhile)
    assert beats == [("inc_a",)]
