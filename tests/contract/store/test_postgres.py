"""What only PostgreSQL can do to us: lost connections, deadlocks, other nodes, another program's tables."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hermes.core.errors import ConfigError, ForeignHomeError, OutcomeOfCommitUnknownError, StoreIsDownError
from hermes.store.cluster.node_connection import NODE_LOCK, NodeConnection
from hermes.store.cluster.nodes import ClusterView, NewNode
from hermes.store.cluster.notifications import notify
from hermes.store.db import Database, StoreLimits, Trouble, Tx
from hermes.store.open import open_database
from hermes.store.postgres import HERE, OWNER_LOCK, PostgresDatabase, translate
from tests.contract.store.servers import PostgresForTests


@pytest.fixture
def url(postgres: PostgresForTests) -> Iterator[str]:
    with postgres.schema() as found:
        yield found


@pytest.fixture
async def store(url: str, notes: Path) -> AsyncIterator[Database]:
    opened = await open_database(url, migrations=notes, limits=StoreLimits(busy_seconds=0.3, statement_seconds=5))
    yield opened
    await opened.close()


def backend(tx: Tx) -> int:
    return int(tx.value("SELECT pg_backend_pid()"))


def put(tx: Tx, key: str) -> None:
    tx.run("INSERT INTO notes (key, text) VALUES (:key, '')", key=key)


def keys(tx: Tx) -> list[str]:
    return tx.all("SELECT key FROM notes ORDER BY key", str)


def end_backend(url: str, pid: int) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])


async def test_connections_that_died_while_idle_are_made_anew_without_an_error(store: Database, url: str) -> None:
    pids = {await store.write(backend) for _ in range(12)}
    for pid in pids:
        await asyncio.to_thread(end_backend, url, pid)
    for number in range(8):
        await store.write(put, f"k{number}")
    assert len(await store.read(keys)) == 8


async def test_a_connection_lost_before_commit_means_nothing_was_stored(store: Database, url: str) -> None:
    def put_and_be_cut_off(tx: Tx) -> None:
        put(tx, "a")
        end_backend(url, backend(tx))
        tx.value("SELECT 1")

    with pytest.raises(StoreIsDownError) as caught:
        await store.write(put_and_be_cut_off)
    assert not isinstance(caught.value, OutcomeOfCommitUnknownError)
    assert await store.read(keys) == []


async def test_a_connection_lost_at_commit_is_told_apart(store: Database, url: str) -> None:
    def put_and_be_cut_off(tx: Tx) -> None:
        put(tx, "a")
        end_backend(url, backend(tx))

    with pytest.raises(OutcomeOfCommitUnknownError):
        await store.write(put_and_be_cut_off)


async def test_a_deadlock_is_tried_again_until_both_are_done(store: Database) -> None:
    await store.write(put, "a")
    await store.write(put, "b")
    both_have_one = threading.Barrier(2, timeout=5)
    meetings: list[str] = []

    def swap(tx: Tx, first: str, second: str) -> None:
        tx.run("SET LOCAL lock_timeout = '5s'")
        tx.run("SET LOCAL deadlock_timeout = '20ms'")
        tx.run("UPDATE notes SET count = count + 1 WHERE key = :key", key=first)
        if len(meetings) < 2:
            meetings.append(first)
            both_have_one.wait()
        tx.run("UPDATE notes SET count = count + 1 WHERE key = :key", key=second)

    await asyncio.gather(store.write(swap, "a", "b"), store.write(swap, "b", "a"))
    assert await store.read(lambda tx: tx.all("SELECT count FROM notes", int)) == [2, 2]


async def test_a_lock_held_too_long_is_a_store_that_is_down_and_then_back(store: Database, url: str) -> None:
    await store.write(put, "a")

    def touch(tx: Tx) -> int:
        return tx.run("UPDATE notes SET count = 1")

    with psycopg.connect(url) as other:
        other.execute("UPDATE notes SET count = 5")
        with pytest.raises(StoreIsDownError):
            await store.write(touch)
        other.rollback()
    assert await store.write(touch) == 1


async def test_an_error_that_a_function_swallowed_is_not_committed_as_success(store: Database) -> None:
    def swallow(tx: Tx) -> None:
        put(tx, "a")
        try:
            put(tx, "a")
        except psycopg.errors.UniqueViolation:
            return

    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        await store.write(swallow)
    assert await store.read(keys) == []


class Joined:
    """A node's connection to the product's tables, and what it posted."""

    def __init__(self, store: PostgresDatabase, name: str) -> None:
        self.views: asyncio.Queue[ClusterView] = asyncio.Queue()
        self.news: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.connection = NodeConnection(
            store,
            NewNode(f"inc_{name}", name, "host", 1, "1.0", 6),
            monotonic=time.monotonic,
            system_time=time.time,
            on_view=lambda view, _: self.views.put_nowait(view),
            on_news=lambda kind, key: self.news.put_nowait((kind, key)),
            on_gone=self.gone.set,
        )

    async def check_names_seen(self, *wanted: str) -> None:
        async with asyncio.timeout(20):
            while [node.name for node in (await self.views.get()).nodes] != list(wanted):
                continue


@asynccontextmanager
async def joined(store: PostgresDatabase, name: str, *, wait_seconds: float = 0.0) -> AsyncIterator[Joined]:
    node = Joined(store, name)
    try:
        await node.connection.join(wait_seconds)
        yield node
    finally:
        await node.connection.close(10)


@asynccontextmanager
async def opened(url: str, **options: Any) -> AsyncIterator[PostgresDatabase]:
    store = await open_database(url, **options)
    assert isinstance(store, PostgresDatabase)
    try:
        yield store
    finally:
        await store.close()


async def test_two_nodes_work_on_one_database_and_see_each_other(url: str) -> None:
    async with opened(url) as store, joined(store, "a") as first, joined(store, "b") as second:
        await first.check_names_seen("a", "b")
        await second.check_names_seen("a", "b")


async def test_a_notification_of_one_node_reaches_the_others(url: str) -> None:
    async with opened(url) as store, joined(store, "a"), joined(store, "b") as second:
        await store.write(notify, "target", "telegram:42")
        async with asyncio.timeout(20):
            while (news := await second.news.get())[0] != "target":
                continue
        assert news == ("target", "telegram:42")


async def test_a_gateway_of_before_clusters_keeps_nodes_out_in_words(url: str) -> None:
    async with opened(url) as store:
        with psycopg.connect(url, autocommit=True) as old:
            old.execute(f"SELECT pg_advisory_lock({OWNER_LOCK}, {HERE})".encode())
            with pytest.raises(ConfigError, match="an older Hermes"):
                async with joined(store, "a"):
                    pass
        async with joined(store, "a", wait_seconds=10):
            with psycopg.connect(url, autocommit=True) as old:
                taken = old.execute(f"SELECT pg_try_advisory_lock({OWNER_LOCK}, {HERE})".encode()).fetchone()
                assert taken == (False,)


HOLDERS = f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = {NODE_LOCK}"


def holder(url: str) -> list[int]:
    with psycopg.connect(url, autocommit=True) as admin:
        return [pid for (pid,) in admin.execute(HOLDERS.encode()).fetchall()]


async def test_a_node_whose_connection_was_lost_goes_on_with_another_one(url: str) -> None:
    async with opened(url) as store, joined(store, "a") as node:
        [pid] = holder(url)
        await asyncio.to_thread(end_backend, url, pid)
        async with asyncio.timeout(20):
            while (held := holder(url)) in ([], [pid]):  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.01)
        assert len(held) == 1, "by another connection, and by no more than one"
        await node.check_names_seen("a")
        assert not node.gone.is_set()


async def test_a_node_that_others_buried_learns_so_at_its_next_beat(url: str) -> None:
    async with opened(url) as store, joined(store, "a") as node:
        await node.check_names_seen("a")
        await store.write(lambda tx: tx.run("UPDATE nodes SET state = 'gone'"))
        async with asyncio.timeout(20):
            await node.gone.wait()
            assert node.gone.is_set()


@pytest.fixture
def own_role(url: str) -> Iterator[str]:
    """A role that nobody else logs in with."""
    name = f"r_{os.urandom(4).hex()}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN SUPERUSER".encode())
        yield name
        admin.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER".encode())
        admin.execute(f"DROP ROLE {name}".encode())


async def test_a_server_that_is_away_for_a_while_is_told_and_the_node_goes_on(
    url: str, own_role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = threading.Semaphore(0)
    connect = psycopg.connect

    def counted(conninfo: str, **options: object) -> object:
        try:
            return connect(conninfo, **options)  # type: ignore[arg-type]
        except psycopg.OperationalError:
            refused.release()
            raise

    troubles: list[Trouble] = []
    async with opened(f"{url}&user={own_role}", on_trouble=troubles.append) as store, joined(store, "a") as node:
        with connect(url, autocommit=True) as admin:
            [pid] = holder(url)
            monkeypatch.setattr(psycopg, "connect", counted)
            admin.execute(f"ALTER ROLE {own_role} NOLOGIN".encode())
            admin.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])
            for _ in range(3):
                assert await asyncio.to_thread(refused.acquire, timeout=10)
            admin.execute(f"ALTER ROLE {own_role} LOGIN".encode())
            async with asyncio.timeout(20):
                while len(troubles) < 2:  # noqa: ASYNC110 - nothing tells us
                    await asyncio.sleep(0.01)
            assert not node.gone.is_set()
    assert [trouble.kind for trouble in troubles] == ["down", "back"]


async def test_another_programs_tables_are_left_alone(url: str, notes: Path) -> None:
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE TABLE invoices (id INT)")
    with pytest.raises(ForeignHomeError, match="another program's tables"):
        await open_database(url, migrations=notes)
    with psycopg.connect(url) as admin:
        found = admin.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
        assert found.fetchall() == [("invoices",)]


async def test_a_server_that_is_not_there_is_a_store_that_is_down(notes: Path) -> None:
    with pytest.raises(StoreIsDownError, match="cannot be reached"):
        await open_database("postgresql://127.0.0.1:1/none", migrations=notes)


def test_parameters_are_translated_and_everything_else_is_left_alone() -> None:
    assert translate("SELECT :a::text, ':b', '%', x % 2 WHERE c = :c_1") == (
        "SELECT %(a)s::text, ':b', '%%', x %% 2 WHERE c = %(c_1)s"
    )


async def test_a_server_that_falls_silent_is_cut_off(url: str, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.store.postgres._GRACE_SECONDS", 0.05)
    store = await open_database(url, migrations=notes, limits=StoreLimits(connections=1, statement_seconds=0.2))
    stopped: list[int] = []

    def be_met_with_silence(tx: Tx) -> None:
        put(tx, "a")
        stopped.append(backend(tx))
        os.kill(stopped[-1], signal.SIGSTOP)
        tx.value("SELECT 1")

    try:
        with pytest.raises(StoreIsDownError):
            await store.write(be_met_with_silence)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        await store.close()


async def test_a_silent_server_does_not_keep_a_node_from_closing(url: str) -> None:
    async with opened(url, limits=StoreLimits(connections=1, close_seconds=0.3)) as store:
        async with joined(store, "a"):
            [pid] = holder(url)
            os.kill(pid, signal.SIGSTOP)
            started = time.monotonic()
        assert time.monotonic() - started < 20
        os.kill(pid, signal.SIGCONT)


async def test_a_node_whose_server_fell_silent_tries_another_connection(url: str) -> None:
    async with opened(url) as store, joined(store, "a") as node:
        await node.check_names_seen("a")
        [pid] = holder(url)
        os.kill(pid, signal.SIGSTOP)
        try:
            while not node.views.empty():
                node.views.get_nowait()
            async with asyncio.timeout(30):
                while node.views.empty():
                    node.connection.cut_if_silent()  # as the event loop of a node does
                    await asyncio.sleep(0.05)
            assert [seen.name for seen in node.views.get_nowait().nodes] == ["a"]
        finally:
            os.kill(pid, signal.SIGCONT)
