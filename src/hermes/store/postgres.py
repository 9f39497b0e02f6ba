"""Run the store on PostgreSQL: a pool of threads with one connection each."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import os
import queue
import random
import re
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import Loader
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.types.numeric import IntDumper

from hermes.core.errors import ForeignHomeError, NodeIsGoneError, OutcomeOfCommitUnknownError, StoreIsDownError
from hermes.core.i18n.failures import describe_failure
from hermes.store import migrate
from hermes.store.cluster.nodes import application_name
from hermes.store.db import POSTGRES, Database, Job, OnTrouble, Pause, StoreLimits, Tx

Connection = psycopg.Connection[tuple[Any, ...]]

OWNER_LOCK = 0x48524D53
"""Held alone by gateways of before clusters, shared by nodes: the two never work on one database at once."""
MIGRATION_LOCK = OWNER_LOCK + 1
HERE = "hashtext(current_database() || '.' || current_schema())"
"""Advisory locks are per server database; two gateways may share one in different schemas."""

log = logging.getLogger(__name__)

_RETRIES = 5
_GRACE_SECONDS = 5.0
"""How much longer than the server's own timeout a statement may take before its connection is cut."""
_MIGRATION_WAIT_SECONDS = 60
_IDLE_SECONDS = 5.0
"""A process that was paused inside a transaction holds others up for so long; a function of ours never pauses there."""
_FENCE = "BEGIN; SELECT 1 FROM nodes WHERE id = '{node}' AND state <> 'gone' FOR KEY SHARE"
"""Waits for whoever buries this node, and sees what that one wrote; a beat does not wait for it."""

_CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure)
_DOWN = (
    errors.AdminShutdown,
    errors.CannotConnectNow,
    errors.CrashShutdown,
    errors.DiskFull,
    errors.IdleInTransactionSessionTimeout,
    errors.LockNotAvailable,
    errors.OutOfMemory,
    errors.QueryCanceled,
    errors.ReadOnlySqlTransaction,
    errors.TooManyConnections,
)

_IS_ID = re.compile(r"\w{1,80}", re.ASCII)
_TOKENS = re.compile(r"'(?:[^']|'')*'|::|:([A-Za-z_]\w*)|%")


@functools.lru_cache(maxsize=1024)
def translate(sql: str) -> str:
    """Turn ``:name`` into psycopg's ``%(name)s``; string literals and ``::casts`` are left alone."""

    def replace(found: re.Match[str]) -> str:
        return f"%({found[1]})s" if found[1] else found[0].replace("%", "%%")

    return _TOKENS.sub(replace, sql)


class _NumericLoader(Loader):
    """Read NUMERIC (the type of SUM over BIGINT) as SQLite would give it: an int, or a float."""

    def load(self, data: bytes | bytearray | memoryview) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


class _LostError(Exception):
    """The connection ended before COMMIT: nothing was stored."""


class PostgresDatabase(Database):
    dialect = POSTGRES

    def __init__(
        self, url: str, loop: asyncio.AbstractEventLoop, *, on_trouble: OnTrouble | None, limits: StoreLimits
    ) -> None:
        super().__init__(loop, on_trouble)
        self._url = url
        self._limits = limits
        self._pause = Pause.from_environment()
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._workers = [_ThreadConnection(self) for _ in range(limits.connections)]
        self._watching: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._node = ""
        self._fence = ""

    def show_node(self, node_id: str) -> None:
        """From now on every write shows this node's row, and fails with NodeIsGoneError when the node is gone.

        Called before the first write, so that all connections carry the node's name.
        """
        if not _IS_ID.fullmatch(node_id):
            raise ValueError(f"{node_id!r} is no id of a node")
        self._node = node_id
        self._fence = _FENCE.format(node=node_id)

    async def start(self, steps: Sequence[migrate.Migration]) -> None:
        self.schema_version = steps[-1].number if steps else 0
        await asyncio.to_thread(self._migrate, steps)
        for number, worker in enumerate(self._workers):
            thread = threading.Thread(target=self._work_forever, args=(worker,), name=f"store-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

        self._watch()

    def _watch(self) -> None:
        """Cut connections whose server has gone silent: its own timeouts cannot end a wait for it."""
        if self._is_closed:
            return
        patience = self._limits.statement_seconds + _GRACE_SECONDS
        for worker in self._workers:
            worker.cut_if_silent(patience)
        self._watching = self._loop.call_later(_GRACE_SECONDS, self._watch)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._watching is not None:
            self._watching.cancel()
        for _ in self._threads:
            self._jobs.put(None)
        await self._join(self._threads, self._limits.close_seconds)

    async def compact(self) -> None:
        """Do nothing: autovacuum frees the space of deleted rows, and new rows overwrite them."""

    def free_caches(self) -> None:
        """Do nothing: the server keeps the pages."""

    def connect(self, seconds: float | None = None) -> Connection:
        """Open a connection with the timeouts that every connection of ours has. The caller closes it."""
        try:
            connection = psycopg.connect(
                self._url,
                connect_timeout=max(2, round(self._limits.connect_seconds if seconds is None else seconds)),
                keepalives=1,
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=20_000,
                application_name=application_name(self._node) if self._node else "hermes",
            )
            try:
                self._set_up(connection)
            except BaseException:
                connection.close()
                raise
        except psycopg.OperationalError as error:
            raise StoreIsDownError(f"PostgreSQL cannot be reached: {_first_line(error)}") from error
        return connection

    def _set_up(self, connection: Connection) -> None:
        connection.adapters.register_dumper(bool, IntDumper)  # flags are BIGINT in both databases
        connection.adapters.register_loader("numeric", _NumericLoader)
        statement = self._limits.statement_seconds
        connection.execute(
            "SELECT set_config('statement_timeout', %s, false), set_config('lock_timeout', %s, false),"
            " set_config('idle_in_transaction_session_timeout', %s, false)",
            [f"{round(seconds * 1000)}ms" for seconds in (statement, self._limits.busy_seconds, _IDLE_SECONDS)],
        )
        connection.commit()

    # Migrations

    def _migrate(self, steps: Sequence[migrate.Migration]) -> None:
        connection = self.connect()
        try:
            connection.execute(f"SET lock_timeout = '{_MIGRATION_WAIT_SECONDS}s'")
            connection.execute(f"SET statement_timeout = '{_MIGRATION_WAIT_SECONDS * 10}s'")
            connection.execute(f"SELECT pg_advisory_lock({MIGRATION_LOCK}, {HERE})")
            connection.commit()
            tx = tx_of(connection)
            refuse_foreign(tx)
            tx.run(migrate.META)
            migrate.note(tx, "application", "hermes")
            connection.commit()
            for step in migrate.pending(tx, steps, "The PostgreSQL database"):
                migrate.apply(tx, step)
                connection.commit()
        except psycopg.OperationalError as error:
            raise StoreIsDownError(f"PostgreSQL could not be prepared: {_first_line(error)}") from error
        finally:
            connection.close()  # gives the advisory lock back too

    # The threads

    def _submit(self, job: Job[Any]) -> None:
        if self._is_closed:
            raise StoreIsDownError("The PostgreSQL database is closed.")
        self._jobs.put(job)

    def _work_forever(self, worker: _ThreadConnection) -> None:
        while (job := self._jobs.get()) is not None:
            worker.settle(job)
            self._release_later((job,))
        worker.drop()


class _ThreadConnection:
    """One thread's connection, made when it is first needed and again after it was lost."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._pause = database._pause
        self._connection: Connection | None = None
        self._asked_at = math.inf
        """When the statement under way was sent; infinity while none is."""

    def drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def cut_if_silent(self, seconds: float) -> None:
        """Called on the event loop: end a wait that has gone on for too long."""
        connection = self._connection
        if time.monotonic() - self._asked_at < seconds or connection is None or connection.closed:
            return
        log.warning("PostgreSQL is silent", extra={"seconds": round(seconds)})
        cut(connection)

    def _tx(self, connection: Connection) -> Tx:
        cursor_of = connection.cursor

        def execute(sql: str, params: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
            self._asked_at = time.monotonic()
            try:
                return cursor_of().execute(translate(sql).encode(), params)
            finally:
                self._asked_at = math.inf

        return Tx(POSTGRES, execute)

    def settle(self, job: Job[Any]) -> None:
        """Run a job to its end: a result, or an error that says whether it may have been stored."""
        lost = 0
        conflicts = 0
        while True:
            try:
                self._attempt(job)
            except _LostError as error:
                # The server may have been restarted while this connection idled; a fresh one tells.
                lost += 1
                if lost > 1:
                    return job.fail(_down(error.__cause__ or error))
            except _CONFLICTS as error:
                conflicts += 1
                if conflicts > _RETRIES:
                    return job.fail(_down(error))
                time.sleep(random.uniform(0.002, 0.01) * 2**conflicts)
            except BaseException as error:  # noqa: BLE001 - carried to the caller
                return job.fail(_down(error) if isinstance(error, _DOWN) else error)
            else:
                return None

    def _attempt(self, job: Job[Any]) -> None:
        if self._connection is None:
            self._connection = self._database.connect()
        connection = self._connection
        is_read = job.kind == "read"
        connection.read_only = is_read or None
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ if is_read else None
        try:
            if fence := "" if is_read else self._database._fence:
                self._begin_as_node(connection, fence)
            job.run(self._tx(connection))
            if connection.info.transaction_status == TransactionStatus.INERROR:
                # COMMIT would quietly roll back: the function swallowed an error of the database.
                raise errors.InFailedSqlTransaction("a statement failed and its error was swallowed")
        except BaseException as error:
            try:
                connection.rollback()
            except psycopg.Error:
                self.drop()
                raise _LostError from error
            if connection.closed or connection.broken:
                self.drop()
                raise _LostError from error
            raise
        self._commit(connection)

    def _begin_as_node(self, connection: Connection, fence: str) -> None:
        """Begin, and show the node's row. By libpq itself: one journey, and no more work than BEGIN alone costs."""
        self._asked_at = time.monotonic()
        try:
            result = connection.pgconn.exec_(fence.encode())
        finally:
            self._asked_at = math.inf
        if result.status != ExecStatus.TUPLES_OK:
            raise errors.error_from_result(result)
        if not result.ntuples:
            raise NodeIsGoneError("Other nodes have taken over the work of this one: its lease had ended.")

    def _commit(self, connection: Connection) -> None:
        if self._pause:
            self._pause.at("before_commit")
        self._asked_at = time.monotonic()
        try:
            connection.commit()
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not isinstance(error, _CONFLICTS) and (connection.closed or connection.broken):
                self.drop()
                raise OutcomeOfCommitUnknownError(
                    f"PostgreSQL went away while it was committing: {_first_line(error)}"
                ) from error
            connection.rollback()
            raise
        finally:
            self._asked_at = math.inf
        if self._pause:
            self._pause.at("after_commit")


def cut(connection: Connection | None) -> None:
    """End the connection under a thread that waits on it; the thread sees an error and goes on."""
    if connection is None or connection.closed:
        return
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as wire:
        wire.shutdown(socket.SHUT_RDWR)


def tx_of(connection: Connection) -> Tx:
    cursor_of = connection.cursor

    def execute(sql: str, params: dict[str, Any]) -> psycopg.Cursor[tuple[Any, ...]]:
        return cursor_of().execute(translate(sql).encode(), params)

    return Tx(POSTGRES, execute)


def refuse_foreign(tx: Tx) -> None:
    """Raise ForeignHomeError if the schema holds another program's tables."""
    tables = set(tx.all("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()", str))
    if not tables:
        return
    if "meta" not in tables or tx.value("SELECT value FROM meta WHERE key = 'application'") != "hermes":
        raise ForeignHomeError(
            f"The PostgreSQL database in HERMES_DATABASE_URL holds another program's tables ({len(tables)})."
            " I have changed nothing there. Give Hermes an empty database or schema."
        )


def _down(error: BaseException) -> StoreIsDownError:
    if isinstance(error, StoreIsDownError):
        return error
    if isinstance(error, _CONFLICTS):
        text = f"PostgreSQL gave up on this write {_RETRIES} times ({_first_line(error)})."
    else:
        text = f"PostgreSQL is not available: {_first_line(error)}"
    down = StoreIsDownError(text)
    down.__cause__ = error
    return down


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), describe_failure(error))


async def open_postgres(
    url: str, *, migrations: str | Path, on_trouble: OnTrouble | None, limits: StoreLimits
) -> PostgresDatabase:
    database = PostgresDatabase(url, asyncio.get_running_loop(), on_trouble=on_trouble, limits=limits)
    await database.start(migrate.load(migrations))
    return database
