"""What only PostgreSQL can do to us: lost connections, deadlocks, a second gateway, another program's tables."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from hermes.core.errors import ConfigError, ForeignHomeError, OutcomeOfCommitUnknownError, StoreIsDownError
from hermes.store.db import Database, StoreLimits, Trouble, Tx
from hermes.store.open import open_database
from hermes.store.postgres import translate
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


async def test_a_second_gateway_on_the_same_database_is_refused_in_words(
    store: Database, url: str, notes: Path
) -> None:
    await store.own()
    await store.own()
    second = await open_database(url, migrations=notes)
    try:
        with pytest.raises(ConfigError, match="Another gateway"):
            await second.own()
        await store.close()
        await second.own()
    finally:
        await second.close()


HOLDERS = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = 1213353299
    AND objid::bigint = (hashtext(current_database() || '.' || current_schema())::bigint & 4294967295)
"""


async def take_from_the_other(second: Database, url: str) -> None:
    while True:  # the other one may be quicker to take it again
        for pid in await second.read(lambda tx: tx.all(HOLDERS, int)):
            await asyncio.to_thread(end_backend, url, pid)
        try:
            return await second.own()
        except ConfigError:
            continue


async def test_a_hold_on_the_database_that_was_lost_to_another_is_told(
    url: str, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.postgres._GRACE_SECONDS", 0.5)  # long enough for the second to be quicker
    troubles: asyncio.Queue[Trouble] = asyncio.Queue()
    first = await open_database(url, migrations=notes, on_trouble=troubles.put_nowait)
    second = await open_database(url, migrations=notes, limits=StoreLimits(own_seconds=0))
    try:
        await first.own()
        async with asyncio.timeout(30):
            await take_from_the_other(second, url)
            assert (await troubles.get()).kind == "owner"
    finally:
        await first.close()
        await second.close()


async def test_a_hold_on_the_database_is_taken_again_after_a_lost_connection(
    url: str, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.postgres._GRACE_SECONDS", 0.02)
    store = await open_database(url, migrations=notes)
    try:
        await store.own()
        [pid] = await store.read(lambda tx: tx.all(HOLDERS, int))
        await asyncio.to_thread(end_backend, url, pid)
        async with asyncio.timeout(20):
            while (held := await store.read(lambda tx: tx.all(HOLDERS, int))) in ([], [pid]):  # noqa: ASYNC110 - nothing tells us
                await asyncio.sleep(0.01)
        assert len(held) == 1, "by another connection, and by no more than one"
    finally:
        await store.close()


@pytest.fixture
def own_role(url: str) -> Iterator[str]:
    """A role that nobody else logs in with."""
    name = f"r_{os.urandom(4).hex()}"
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN SUPERUSER".encode())
        yield name
        admin.execute(f"REASSIGN OWNED BY {name} TO CURRENT_USER".encode())
        admin.execute(f"DROP ROLE {name}".encode())


async def test_a_server_that_is_away_for_a_while_is_told_and_is_no_loss_of_the_hold_on_it(
    url: str, own_role: str, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.postgres._GRACE_SECONDS", 0.02)
    refused = threading.Semaphore(0)
    connect = psycopg.connect

    def counted(conninfo: str, **options: object) -> object:
        try:
            return connect(conninfo, **options)  # type: ignore[arg-type]
        except psycopg.OperationalError:
            refused.release()
            raise

    troubles: list[Trouble] = []
    store = await open_database(f"{url}&user={own_role}", migrations=notes, on_trouble=troubles.append)
    with connect(url, autocommit=True) as admin:
        try:
            await store.own()
            [pid] = await store.read(lambda tx: tx.all(HOLDERS, int))
            monkeypatch.setattr(psycopg, "connect", counted)
            admin.execute(f"ALTER ROLE {own_role} NOLOGIN".encode())
            admin.execute("SELECT pg_terminate_backend(%s, 2000)", [pid])
            for _ in range(3):
                assert await asyncio.to_thread(refused.acquire, timeout=10)
            admin.execute(f"ALTER ROLE {own_role} LOGIN".encode())
            async with asyncio.timeout(20):
                while len(troubles) < 2:  # noqa: ASYNC110 - nothing tells us
                    await asyncio.sleep(0.01)
            assert len(await store.read(lambda tx: tx.all(HOLDERS, int))) == 1
        finally:
            await store.close()
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


async def test_a_silent_server_does_not_keep_the_owner_from_closing(
    url: str, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.postgres._GRACE_SECONDS", 0.02)
    store = await open_database(url, migrations=notes, limits=StoreLimits(connections=1, close_seconds=0.3))
    await store.own()
    [owner] = await store.read(lambda tx: tx.all(HOLDERS, int))
    os.kill(owner, signal.SIGSTOP)
    try:
        await asyncio.sleep(0.1)  # it is asked meanwhile whether the lock is still ours
        async with asyncio.timeout(20):
            await store.close()
    finally:
        os.kill(owner, signal.SIGCONT)
