"""SQLite: one writer thread with group commit, a few readers, and a file that may be swapped under us."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from hermes.core.errors import StoreIsDownError
from hermes.store import migrate
from hermes.store.db import SQLITE, Database, Job, Limits, OnTrouble, Pause, Trouble, Tx

APPLICATION_ID = 0x48524D53
"""In the header of every SQLite file of ours ("HRMS"): a file without it is never touched."""

_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

log = logging.getLogger(__name__)


class DamagedError(Exception):
    """The file is not sound; carries SQLite's own words."""


@dataclass(frozen=True, slots=True)
class Location:
    path: Path
    vfs: str = ""

    @classmethod
    def parse(cls, text: str) -> Location:
        """Read a path, ``sqlite:///path`` or ``file:/path?vfs=…``."""
        if text.startswith("sqlite:///"):  # three slashes: relative; four: absolute
            return cls(Path(unquote(text.removeprefix("sqlite:///"))))
        if text.startswith("file:"):
            parts = urlsplit(text)
            return cls(Path(unquote(parts.path)), parse_qs(parts.query).get("vfs", [""])[0])
        return cls(Path(text))

    def connect(self, limits: Limits) -> sqlite3.Connection:
        uri = f"file:{quote(str(self.path.absolute()))}" + (f"?vfs={self.vfs}" if self.vfs else "")
        connection = sqlite3.connect(
            uri,
            uri=True,
            timeout=limits.busy_seconds,
            isolation_level=None,
            check_same_thread=False,  # the writer closes the readers' connections when the file was replaced
            cached_statements=512,
        )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


def tx_of(connection: sqlite3.Connection) -> Tx:
    return Tx(SQLITE, connection.execute, connection.executemany)


def error_code(error: BaseException) -> int:
    """SQLite's primary result code, or 0."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF if isinstance(error, sqlite3.Error) else 0


_DOWN = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}


class _Reader:
    """A thread's own connection; the lock is held while it is used, so that the writer can close it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


_STOP = object()


class SqliteDatabase(Database):
    dialect = SQLITE

    def __init__(
        self,
        location: Location,
        steps: Sequence[migrate.Migration],
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Callable[[], float],
        on_trouble: OnTrouble | None,
        limits: Limits,
    ) -> None:
        super().__init__(loop, on_trouble)
        self._location = location
        self._steps = steps
        self._clock = clock
        self._limits = limits
        self._pause = Pause.from_environment()
        self._writes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._has_readers = True
        self._is_closed = False
        self._readers = [_Reader() for _ in range(limits.readers)]
        self._threads: list[threading.Thread] = []

    # Opening and closing

    async def start(self) -> None:
        opened = self._loop.create_future()
        writer = threading.Thread(target=self._write_forever, args=(opened,), name="store-writer", daemon=True)
        writer.start()
        self._threads.append(writer)
        await asyncio.shield(opened)
        if self._has_readers:
            for number, reader in enumerate(self._readers):
                thread = threading.Thread(
                    target=self._read_forever, args=(reader,), name=f"store-reader-{number}", daemon=True
                )
                thread.start()
                self._threads.append(thread)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self._threads[1:]:
            self._reads.put(_STOP)
        self._writes.put(_STOP)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def own(self) -> None:
        """Nothing to do: the lock file of the home decides who may open the files at all."""

    def _open(self) -> None:
        connection = self._location.connect(self._limits)
        try:
            mode = connection.execute("PRAGMA journal_mode = wal").fetchone()[0]
            if mode != "wal":
                self._fall_back(connection, mode)
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._identity = self._identity_now()

    def _fall_back(self, connection: sqlite3.Connection, mode: str) -> None:
        """Do without WAL, as network filesystems force us to: slower, equally safe."""
        connection.execute("PRAGMA journal_mode = truncate")
        if self._has_readers:
            self._has_readers = False
            name = self._location.path.name
            self._tell(
                Trouble(
                    "journal",
                    f"{name}: write-ahead logging was refused (SQLite stays in mode {mode!r}), so the slower TRUNCATE "
                    f"journal is used. Is {self._location.path.parent} on a network filesystem (NFS, SMB, FUSE, WSL1)? "
                    "A local disk is faster.",
                )
            )

    def _migrate(self, connection: sqlite3.Connection) -> None:
        tx = tx_of(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(migrate.META)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
        for step in migrate.pending(tx, self._steps, self._location.path.name):
            connection.execute("BEGIN IMMEDIATE")
            try:
                migrate.apply(tx, step)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _identity_now(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._location.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    # The threads

    def _submit(self, job: Job[Any]) -> None:
        if self._is_closed:
            raise StoreIsDownError(f"{self._location.path.name} is closed.")
        if job.kind == "read" and self._has_readers:
            self._reads.put(job)
        else:
            self._writes.put(job)

    def _write_forever(self, opened: asyncio.Future[None]) -> None:
        try:
            self._open()
        except BaseException as error:  # noqa: BLE001 - carried to the caller of open_database
            self._loop.call_soon_threadsafe(opened.set_exception, as_gateway_error(error, self._location.path.name))
            return
        self._loop.call_soon_threadsafe(opened.set_result, None)
        job: Any = None
        while job is not _STOP:
            job = job or self._writes.get()
            if job is _STOP:
                break
            if job.kind == "write":
                group, job = self._gather(job)
                self._commit(group)
            else:
                group, job = [job], None
                self._commit(group)
            self._release_later(group)
            group = []
        for reader in self._readers:
            with reader.lock:
                reader.close()
        if self._connection is not None:
            self._connection.close()

    def _gather(self, first: Job[Any]) -> tuple[list[Job[Any]], Any]:
        """Take everything that waits, up to the first job that may not ride in a group."""
        group = [first]
        with contextlib.suppress(queue.Empty):
            while len(group) < self._limits.group:
                job = self._writes.get_nowait()
                if job is _STOP or job.kind != "write":
                    return group, job
                group.append(job)
        return group, None

    def _commit(self, group: list[Job[Any]]) -> None:
        """Run a group in one transaction; every member ends with a result or an error."""
        try:
            self._run_group(group)
        except sqlite3.Error as error:
            self._undo()
            down = as_gateway_error(error, self._location.path.name)
            for job in group:
                job.fail(down)

    def _run_group(self, group: list[Job[Any]]) -> None:
        connection = self._connection
        assert connection is not None  # noqa: S101 - set by _open, which ended well
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        tx = Tx(SQLITE, execute, connection.executemany)
        if len(group) == 1:
            job = group[0]
            try:
                job.run(tx)
            except BaseException as error:  # noqa: BLE001 - carried to the caller
                self._member_failed(job, error, connection)
                execute("ROLLBACK")
                return
        else:
            for job in group:
                execute("SAVEPOINT member")
                try:
                    job.run(tx)
                except BaseException as error:  # noqa: BLE001 - carried to the caller
                    self._member_failed(job, error, connection)
                    execute("ROLLBACK TO member")
                execute("RELEASE member")
        if self._pause:
            self._pause.at("before_commit")
        execute("COMMIT")
        if self._pause:
            self._pause.at("after_commit")

    def _member_failed(self, job: Job[Any], error: BaseException, connection: sqlite3.Connection) -> None:
        """Fail one member; an error that ended the transaction itself is everybody's."""
        if isinstance(error, sqlite3.Error) and (not connection.in_transaction or error_code(error) in _DAMAGE):
            raise error
        job.fail(as_gateway_error(error, self._location.path.name))

    def _undo(self) -> None:
        connection = self._connection
        if connection is not None and connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # SQLite has rolled back already
                connection.execute("ROLLBACK")

    def _read_forever(self, reader: _Reader) -> None:
        while True:
            job = self._reads.get()
            if job is _STOP:
                return
            with reader.lock:
                self._read(reader, job)
            self._release_later((job,))
            job = None

    def _read(self, reader: _Reader, job: Job[Any]) -> None:
        try:
            if reader.connection is None:
                reader.connection = self._location.connect(self._limits)
                reader.connection.execute("PRAGMA query_only = ON")
            connection = reader.connection
            connection.execute("BEGIN")
            try:
                job.run(Tx(SQLITE, connection.execute, connection.executemany))
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except BaseException as error:  # noqa: BLE001 - carried to the caller
            job.fail(as_gateway_error(error, self._location.path.name))


def as_gateway_error(error: BaseException, name: str) -> BaseException:
    """Put what the disk or another process did into words; a bug in a statement stays what it is."""
    code = error_code(error)
    if code not in _DOWN and code not in _DAMAGE:
        return error
    if code == sqlite3.SQLITE_FULL:
        text = f"{name} cannot grow: the disk is full. Free some space; nothing else is needed."
    elif code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        text = f"{name} is locked by another process."
    else:
        text = f"{name} cannot be used: {error}."
    down = StoreIsDownError(text)
    down.__cause__ = error
    return down


async def open_sqlite(
    text: str,
    *,
    migrations: str | Path,
    clock: Callable[[], float],
    on_trouble: OnTrouble | None,
    limits: Limits,
) -> Database:
    database = SqliteDatabase(
        Location.parse(text),
        migrate.load(migrations),
        asyncio.get_running_loop(),
        clock=clock,
        on_trouble=on_trouble,
        limits=limits,
    )
    await database.start()
    return database
