"""Run the store on SQLite: one writer with group commit, and a few readers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.core.errors import GatewayError, StoreIsDownError
from hermes.store import home_faults, migrate
from hermes.store.db import SQLITE, Database, Job, OnTrouble, Pause, StoreLimits, Trouble, Tx
from hermes.store.sqlite import file as sqlite_file
from hermes.store.sqlite.connection import TOUCHED, ReaderConnection, SqliteConnection
from hermes.store.sqlite.file import Location, error_code
from hermes.store.sqlite.schema_repair import lacks_column_or_table

if TYPE_CHECKING:
    from hermes.store.sqlite.healing import Healing

KEEP_AFTER_SECONDS = 0.5
"""Changes of this long are written to the mirror and the transcripts' files together."""

TRY_AGAIN_SECONDS = 2.0
"""While the file cannot be written and nobody writes, so often a small write of our own finds out whether it can."""

CHECK_AFTER_SECONDS = 60.0
"""A large file is checked table by table once the start is well behind it."""

log = logging.getLogger(__name__)


class _DriftError(Exception):
    """A statement named a column or a table that the file lacks."""


class _Heal:
    """A reader's request to the writer: the file was not sound when it was of this generation, or lacks something."""

    kind = "heal"

    def __init__(self, generation: int, *, lacks_something: bool) -> None:
        self.generation = generation
        self.lacks_something = lacks_something
        self.done = threading.Event()


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
        limits: StoreLimits,
    ) -> None:
        super().__init__(loop, on_trouble)
        self._limits = limits
        self._file = SqliteConnection(location, steps, clock, limits, self._tell)
        self._pause = Pause.from_environment()
        self._writes: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._healing: Healing | None = None
        self._unchecked: list[str] = []
        self._down = ""
        self._index_timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def start(self) -> None:
        opened = self._loop.create_future()
        self._start_thread("store-writer", self._write_forever, opened)
        await asyncio.shield(opened)
        if self._file.has_wal:
            for number, reader in enumerate(self._file.readers):
                self._start_thread(f"store-reader-{number}", self._read_forever, reader)

        if self._file.is_large():
            self._loop.call_later(CHECK_AFTER_SECONDS, self._check_soon, None)

    def _check_soon(self, before: asyncio.Future[None] | None) -> None:
        """Check the next table of a large file; a table that is not sound is healed as any damage is."""
        if before is None:
            self._unchecked = list(self._file.table_names)
        if self._is_closed or not self._unchecked:
            return
        job: Job[None] = Job("read", sqlite_file.check_table, (self._unchecked.pop(),), {}, self._loop.create_future())
        job.future.add_done_callback(_say_if_failed)
        job.future.add_done_callback(self._check_soon)
        self._submit(job)

    def _start_thread(self, name: str, run: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=run, args=args, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self._threads[1:]:
            self._reads.put(_STOP)
        await self._join(self._threads[1:], self._limits.close_seconds)
        self._writes.put(_STOP)
        await self._join(self._threads[:1], self._limits.close_seconds)

    def _submit(self, job: Job[Any]) -> None:
        if self._is_closed:
            raise StoreIsDownError(f"{self._file.name} is closed.")
        if job.kind == "read" and self._file.has_wal:
            self._reads.put(job)
        else:
            self._writes.put(job)

    def free_caches(self) -> None:
        for reader in self._file.readers:
            reader.free_cache()

    # The writer's thread

    def _write_forever(self, opened: asyncio.Future[None]) -> None:
        try:
            self._file.open()
        except BaseException as error:  # noqa: BLE001 - carried to the caller of open_database
            self._loop.call_soon_threadsafe(opened.set_exception, self._in_words(error))
            return
        self._loop.call_soon_threadsafe(opened.set_result, None)
        self._after_commit()
        held: Any = None
        while (job := held or self._writes.get()) is not _STOP:
            held = None
            if job.kind == "heal":
                self._answer_heal(job)
                continue
            if job.kind == "compact":
                self._compact(job)
                continue
            group = [job]
            if job.kind == "write":
                held = self._gather(group)
            self._settle(group)
            self._release_later(group)
            # What was committed is told already: only what comes now waits for the copying.
            if self._file.is_checkpoint_due(is_alone=job.kind != "write"):
                self._file.checkpoint()
            del job, group
        if self._healing is not None:
            self._healing.join(None)
        connection = self._file.connection
        if connection is not None:
            self._file.sidecar.committed()
            with contextlib.suppress(sqlite3.Error):  # what is not written down now is at the next start
                self._file.sidecar.keep(sqlite_file.tx_of(connection), is_last=True)
        self._file.close()

    def _gather(self, group: list[Job[Any]]) -> Any:
        """Take everything that waits, up to the first job that may not ride in a group; returns that one."""
        with contextlib.suppress(queue.Empty):
            while len(group) < self._limits.group:
                job = self._writes.get_nowait()
                if job is _STOP or job.kind != "write":
                    return job
                group.append(job)
        return None

    def _settle(self, group: list[Job[Any]]) -> None:
        """Bring every member to a result or an error, mending the file on the way where that helps."""
        has_mended = False
        for _ in range(3):
            try:
                self._make_ready()
                has_written = self._run_group(group, may_drift=not has_mended)
                if self._down and has_written and self._has_room():
                    self._tell(Trouble("back", f"{self._file.name} works again. (It was: {self._down})"))
                    self._down = ""
                return None
            except _DriftError:
                self._undo()
                self._mend()
                has_mended = True
            except sqlite3.Error as error:
                self._undo()
                if not sqlite_file.is_damage(error):
                    return self._fail_all(group, error)
                try:
                    self._heal(str(error))
                except (GatewayError, sqlite3.Error, OSError) as worse:
                    return self._fail_all(group, worse)
            except (GatewayError, OSError) as error:
                return self._fail_all(group, error)
            for job in group:
                job.error = None
        return self._fail_all(group, StoreIsDownError(f"{self._file.name} breaks again and again."))

    def _mend(self) -> None:
        """Add what the file lacks. Where that fails, the next run tells each member what is wrong with its own."""
        try:
            self._file.mend()
        except (sqlite3.Error, OSError) as error:
            self._undo()
            log.warning("Schema not repaired", extra={"path": str(self._file.path), "reason": str(error)})

    def _make_ready(self) -> None:
        if self._healing is not None:
            self._await_healing(0.0)
        if reason := self._file.reason_to_reopen():
            self._heal(reason)

    def _run_group(self, group: list[Job[Any]], *, may_drift: bool) -> bool:
        """Run them in one transaction. Returns whether rows were changed and committed."""
        connection = self._file.connection
        assert connection is not None  # noqa: S101 - _make_ready saw to it
        self._file.sync_commits(group[0].kind != "prune")
        execute = connection.cursor().execute  # for COMMIT too: it ends whatever was read only in part
        tx = Tx(SQLITE, execute)
        execute("BEGIN" if group[0].kind == "read" else "BEGIN IMMEDIATE")
        before = connection.total_changes
        if len(group) == 1:
            try:
                group[0].run(tx)
            except BaseException as error:  # noqa: BLE001 - carried to the caller
                self._fail_member(group[0], error, connection, may_drift)
                execute("ROLLBACK")
                return False
        elif not _run_plainly(group, tx):
            self._undo()
            execute("BEGIN IMMEDIATE")
            self._run_each(group, tx, execute, connection, may_drift)
        if self._pause:
            self._pause.at("before_commit")
        execute("COMMIT")
        if self._pause:
            self._pause.at("after_commit")
        self._file.note_commit()
        self._after_commit()
        return connection.total_changes > before and any(job.error is None for job in group)

    def _run_each(
        self,
        group: list[Job[Any]],
        tx: Tx,
        execute: Callable[[str], sqlite3.Cursor],
        connection: sqlite3.Connection,
        may_drift: bool,
    ) -> None:
        """Run each in a savepoint, on the transaction's own cursor: an unfinished SELECT would block RELEASE."""
        for job in group:
            execute("SAVEPOINT member")
            try:
                job.run(tx)
            except BaseException as error:  # noqa: BLE001 - carried to the caller
                self._fail_member(job, error, connection, may_drift)
                execute("ROLLBACK TO member")
            execute("RELEASE member")

    def _fail_member(
        self, job: Job[Any], error: BaseException, connection: sqlite3.Connection, may_drift: bool
    ) -> None:
        """Fail one member; an error that ended the transaction itself, or that can be mended, is everybody's."""
        if isinstance(error, sqlite3.Error):
            if not connection.in_transaction or sqlite_file.is_damage(error):
                raise error
            if may_drift and lacks_column_or_table(error):
                raise _DriftError from error
            if error_code(error) in sqlite_file.DOWN:
                self._say_down(error)
        job.fail(self._in_words(error))

    def _fail_all(self, group: list[Job[Any]], error: BaseException) -> None:
        if isinstance(error, GatewayError) and not isinstance(error, StoreIsDownError):
            error = StoreIsDownError(str(error))  # a file that is another's by now: who writes can only wait
        self._say_down(error)
        described = self._in_words(error)
        for job in group:
            job.fail(described)

    def _undo(self) -> None:
        connection = self._file.connection
        if connection is not None and connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # SQLite has rolled back already
                connection.execute("ROLLBACK")

    def _after_commit(self) -> None:
        if self._file.sidecar.committed():
            with contextlib.suppress(RuntimeError):  # the loop is closed: the end of this thread writes it down
                self._loop.call_soon_threadsafe(self._loop.call_later, KEEP_AFTER_SECONDS, self._keep_soon)

    def _keep_soon(self) -> None:
        if not self._is_closed:
            job: Job[None] = Job("read", self._file.sidecar.keep, (), {}, self._loop.create_future())
            job.future.add_done_callback(_say_if_failed)
            job.future.add_done_callback(self._keep_index_later)
            self._submit(job)

    def _keep_index_later(self, _kept: asyncio.Future[None]) -> None:
        seconds = self._file.sidecar.index_due_in()
        if seconds is not None and self._index_timer is None and not self._is_closed:
            self._index_timer = self._loop.call_later(seconds + KEEP_AFTER_SECONDS, self._keep_index)

    def _keep_index(self) -> None:
        self._index_timer = None
        self._keep_soon()

    async def compact(self) -> None:
        await self._finish(Job("compact", lambda _tx: None, (), {}, self._loop.create_future()))

    def _compact(self, job: Job[None]) -> None:
        try:
            self._make_ready()
            self._file.compact()
            assert self._file.connection is not None  # noqa: S101 - opened again
            self._file.sidecar.committed()
            self._file.sidecar.keep(sqlite_file.tx_of(self._file.connection), is_last=True)
        except (GatewayError, sqlite3.Error, OSError) as error:
            job.fail(self._in_words(error))
        self._release_later([job])

    # Damage

    def _heal(self, reason: str) -> None:
        """Have the file opened anew, recovered if need be; raises StoreIsDownError when that takes too long."""
        if not self._down:
            log.warning("Reopening store", extra={"path": str(self._file.path), "reason": reason})
        from hermes.store.sqlite.healing import Healing  # a sound file needs it not

        self._healing = Healing(self._file, is_only_touched=reason == TOUCHED)
        self._await_healing(self._limits.heal_wait_seconds)

    def _await_healing(self, seconds: float) -> None:
        healing = self._healing
        if healing is None:
            return
        if not healing.join(seconds):
            raise StoreIsDownError(f"{self._file.name} is being recovered. Try again in a moment.")
        self._healing = None
        if healing.error is not None:
            raise healing.error
        if healing.is_only_touched and self._file.is_large():
            with contextlib.suppress(RuntimeError):  # the loop is closed: there is nothing left to check
                self._loop.call_soon_threadsafe(self._loop.call_later, CHECK_AFTER_SECONDS, self._check_soon, None)

    def _answer_heal(self, asked: _Heal) -> None:
        try:
            if asked.lacks_something:
                self._make_ready()
                self._file.mend()
            elif asked.generation == self._file.generation and self._healing is None:
                self._heal("a reader found it damaged")
            else:
                self._make_ready()
        except (GatewayError, sqlite3.Error, OSError) as error:
            self._say_down(error)
        finally:
            asked.done.set()

    def _say_down(self, error: BaseException) -> None:
        """Report the trouble once; the next write that works reports its end."""
        described = self._in_words(error)
        if not self._down and (isinstance(described, StoreIsDownError | OSError) or error_code(error)):
            self._down = str(described)
            kinds = {sqlite3.SQLITE_FULL: "full", sqlite3.SQLITE_BUSY: "locked"}
            self._tell(Trouble(kinds.get(error_code(error), "down"), self._down))
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._loop.call_later, TRY_AGAIN_SECONDS, self._try_again)

    def _try_again(self) -> None:
        """Write what is there already, so that the end of a trouble is noticed though nobody has anything to store."""
        if self._is_closed or not self._down:
            return
        statement = "UPDATE meta SET value = value WHERE key = 'version'"
        job: Job[int] = Job("write", lambda tx: tx.run(statement), (), {}, self._loop.create_future())
        job.future.add_done_callback(lambda future: future.cancelled() or future.exception())  # told when it began
        job.future.add_done_callback(lambda _: self._loop.call_later(TRY_AGAIN_SECONDS, self._try_again))
        self._submit(job)

    def _has_room(self) -> bool:
        """Whether the disk takes more than the few pages that a full one still has inside the file."""
        try:
            home_faults.write_probe(self._file.path.parent)
        except OSError:
            return False
        return True

    def _in_words(self, error: BaseException) -> BaseException:
        return sqlite_file.in_words(error, self._file.path)

    # The readers' threads

    def _read_forever(self, reader: ReaderConnection) -> None:
        while (job := self._reads.get()) is not _STOP:
            has_mended = False
            for _ in range(3):
                generation = self._file.generation
                if not reader.lock.acquire(timeout=self._limits.heal_wait_seconds):
                    job.fail(StoreIsDownError(f"{self._file.name} is being recovered. Try again in a moment."))
                    break
                try:
                    is_sound = self._read(reader, job)
                finally:
                    reader.lock.release()
                lacks_something = is_sound and not has_mended and lacks_column_or_table(job.error)
                if is_sound and not lacks_something:
                    break
                has_mended |= lacks_something
                asked = _Heal(generation, lacks_something=lacks_something)
                self._writes.put(asked)
                asked.done.wait(self._limits.heal_wait_seconds)
            self._release_later((job,))
            del job

    def _read(self, reader: ReaderConnection, job: Job[Any]) -> bool:
        """Run a job; returns whether the file was sound, so that the outcome stands."""
        job.error = None
        if self._file.connection is None or not self._file.is_same():
            job.fail(StoreIsDownError(f"{self._file.name} cannot be read now: {self._down or 'it is being reopened'}"))
            return False
        try:
            if reader.connection is None:
                reader.connection = self._file.location.connect(self._limits)
                reader.connection.execute("PRAGMA query_only = ON")
            connection = reader.connection
            execute = connection.cursor().execute
            execute("BEGIN")
            try:
                job.run(Tx(SQLITE, execute))
            finally:
                if connection.in_transaction:
                    execute("ROLLBACK")
        except BaseException as error:  # noqa: BLE001 - carried to the caller
            job.fail(self._in_words(error))
            return not sqlite_file.is_damage(error)
        return True


def _run_plainly(group: list[Job[Any]], tx: Tx) -> bool:
    """Run all without savepoints, which copy every page. False when one failed: the caller retries one by one."""
    try:
        for job in group:
            job.run(tx)
    except BaseException:  # noqa: BLE001 - it comes again when they run one by one, and is told to whoever asked then
        return False
    return True


def _say_if_failed(future: asyncio.Future[None]) -> None:
    if not future.cancelled() and (error := future.exception()):
        log.warning("Sidecar not written", extra={"reason": str(error)})


async def open_sqlite(
    text: str,
    *,
    migrations: str | Path,
    clock: Callable[[], float],
    on_trouble: OnTrouble | None,
    limits: StoreLimits,
) -> SqliteDatabase:
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
