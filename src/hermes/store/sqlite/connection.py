"""Open the database file; repair and reopen it when it broke or was replaced."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.store import home, migrate
from hermes.store.db import StoreLimits, Trouble
from hermes.store.sqlite import backup, page_map, schema_repair, wal
from hermes.store.sqlite import file as sqlite_file
from hermes.store.sqlite.file import DamagedError, Location, beside, error_code
from hermes.store.sqlite.page_map import Difference, PageMap, PageMapFile
from hermes.store.sqlite.sidecar import SidecarWriter

log = logging.getLogger(__name__)

CHECKPOINT_COMMITS = 100
CHECKPOINT_ROWS = 2000
CHECKPOINT_BYTES = 4 * 1024 * 1024
"""The write-ahead log is copied into the database after so many commits or changed rows, or when it grew by so much."""
CHECKPOINT_BYTES_ALONE = 1024 * 1024
"""After a write that is nobody's message: pruning changes many pages, and messages wait while these are copied."""

TOUCHED = "another program wrote into it"
TOUCHED_SECONDS = 60.0
"""A file whose time was changed and nothing else is not compared again for so long, however often that happens."""

COMPARED_BYTES = 32 * 1024 * 1024
"""Files up to this size are compared with the checksums of their pages at every start: 1 ms for each MB."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A file before it is opened, against the checksums of its pages; None where these are not at hand."""

    known: PageMap | None = None
    differences: Sequence[Difference] = ()
    is_proof: bool = True  # that a page which differs was not written by a database program
    is_as_written: bool = False  # every page was read, and none differs


class ReaderConnection:
    """A thread's own connection; the lock is held while it is used, so that the writer can close it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def free_cache(self) -> None:
        """Drop the pages that SQLite keeps of the file, up to two megabytes, unless the connection is in use."""
        if self.lock.acquire(blocking=False):
            try:
                if self.connection is not None:
                    self.connection.execute("PRAGMA shrink_memory")
            except sqlite3.Error as error:
                log.debug("Cache not freed", extra={"reason": str(error)})
            finally:
                self.lock.release()


class SqliteConnection:
    """The open file: its writer's connection, and all it takes to get one again."""

    def __init__(
        self,
        location: Location,
        steps: Sequence[migrate.Migration],
        clock: Callable[[], float],
        limits: StoreLimits,
        tell: Callable[[Trouble], None],
    ) -> None:
        self._steps = steps
        self._clock = clock
        self._limits = limits
        self._tell = tell
        self._wal: tuple[int, int] | None = None
        self._content: tuple[int, int] | None = None
        self._rescued: Path | None = None
        self.location = location
        self.path = location.path
        self.name = location.path.name
        self.sidecar = SidecarWriter(location.path.parent)
        self._pages = PageMapFile(location.path)
        self._touched_at = -TOUCHED_SECONDS
        self._is_touched = False
        self._commits = 0
        self._changes = 0
        self._is_synced = True
        self._log_end: tuple[bytes, int] = (b"", 0)  # after the last checkpoint: the log's salts, and where it ended
        self.readers = [ReaderConnection() for _ in range(limits.readers)]
        self.has_wal = True
        self.connection: sqlite3.Connection | None = None
        self.identity: tuple[int, int] | None = None
        self.generation = 0
        self.table_names: list[str] = []

    # Opening

    def open(self, *, check_whole: bool = False, rescued: Path | None = None, is_only_touched: bool = False) -> bool:
        """Open the file, recovering it first if it must be. No connection of ours may be open.

        ``is_only_touched``: only its time has changed, so that it is sound if its pages are as they were written.
        Returns whether it was sound.
        """
        is_sound = True
        if sqlite_file.finished_recovery(self.path).exists():
            from hermes.store.sqlite import recovery  # only where there is damage

            recovery.adopt(self.path, self._clock())
            self._pages.drop()
        try:
            if not self.path.exists() and self.location.head.exists():
                raise DamagedError("the file is gone")
            sqlite_file.prepare(self.location)
            compared = self._compare(check_whole=check_whole and not is_only_touched)
            is_as_left = is_only_touched and compared.known is not None and not compared.differences
            self._touched_at = time.monotonic() if is_as_left else -TOUCHED_SECONDS
            # Pages that are as they were written need no second look, which costs a start more than all the rest.
            is_new_to_us = not self.is_large() and not compared.is_as_written
            is_checked = (check_whole or is_new_to_us) and not is_as_left
            self._connect_anyhow(compared, check_whole=is_checked)
        except (DamagedError, sqlite3.DatabaseError) as error:
            if not sqlite_file.is_damage(error):
                raise
            is_sound = False
            from hermes.store.sqlite import recovery  # only where there is damage

            recovery.rebuild(self.path, self._steps, self._clock(), reason=str(error), rescued=rescued)
            self._pages.drop()
            sqlite_file.prepare(self.location)
            self._connect(_Compared(), check_whole=False)
        self.generation += 1
        return is_sound

    def _compare(self, *, check_whole: bool) -> _Compared:
        size = self.path.stat().st_size
        known = page_map.load(self._pages.path) if size else None
        if known is None or not known.is_whole:
            return _Compared()
        if size > COMPARED_BYTES and not check_whole and page_map.is_current(self.path, known):
            return _Compared(known)
        newer = page_map.pages_in_log(self.path, known)
        if newer is None:
            raise DamagedError("its write-ahead log is damaged")
        found = page_map.compare(self.path, known, newer)
        # After a kill the log may have been copied into the database by whoever looked into the file.
        is_proof = known.was_closed or bool(newer)
        is_proof = is_proof and not page_map.was_written_by_sqlite(self.path, known, found)
        return _Compared(known, found, is_proof, is_as_written=not found)

    def is_large(self) -> bool:
        """Too large to be checked whole at every start."""
        return self.path.stat().st_size > self._limits.checked_at_open_bytes

    def _connect_anyhow(self, compared: _Compared, *, check_whole: bool) -> None:
        """Connect also to a file that has a write-ahead log and was moved to where there can be none."""
        try:
            self._connect(compared, check_whole=check_whole)
        except sqlite3.OperationalError as error:
            if error_code(error) not in sqlite_file.NO_LOG_HERE or sqlite_file.is_damage(error):
                raise
            sqlite_file.leave_log(self.location, self._limits)
            self._connect(_Compared(), check_whole=check_whole)

    def _connect(self, compared: _Compared, *, check_whole: bool) -> None:
        has_head = sqlite_file.is_head_current(self.location)
        has_map = compared.known is not None and not compared.differences
        if compared.known is not None:
            self._pages.go_on(compared.known)
            if self._wal_size():  # left by a kill: whoever closes the file next copies it into the database
                self._note_pages(wal.last_commit(self.path))
        connection = self.location.connect(self._limits)
        try:
            sqlite_file.check(connection, whole=check_whole or bool(compared.differences))
            self._judge(compared)
            is_fresh = not schema_repair.tables(connection)
            if check_whole and not is_fresh and not has_map:
                from hermes.store.sqlite import row_shapes  # only for a file that is new to us

                row_shapes.check(connection)
            sqlite_file.claim(connection)
            self._choose_journal(connection)
            sqlite_file.apply_migrations(
                connection,
                self._steps,
                self.name,
                before=lambda open_file, number: backup.backup(open_file, self.path, f"before-{number}", self._clock()),
            )
            if added := schema_repair.mend_unless_known(connection, self._steps, is_fresh=is_fresh):
                self._tell_added(added)
            schema = connection.execute("PRAGMA schema_version").fetchone()[0]
            if not has_head or not has_map or schema != sqlite_file.stored_schema_version(self.location):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.close()
                sqlite_file.keep_head(self.location)
                self._keep_map()
                connection = self.location.connect(self._limits)
                self._choose_journal(connection)
            self._note_opened()
            if self.has_wal:
                # After each checkpoint the pages' checksums are noted, so no checkpoint may come by itself.
                connection.execute("PRAGMA wal_autocheckpoint = 0")
            self.sidecar.watch(connection)
            self._tell_of_recovery(connection)
            self.table_names = schema_repair.tables(connection)
        except BaseException as error:
            if not isinstance(error, DamagedError):  # then nothing was written, and closing copies nothing new
                self._note_pages()
            connection.close()
            raise
        for suffix in sqlite_file.SUFFIXES:
            home.narrow_one(beside(self.path, suffix))
        self._commits, self._changes, self._log_end = 0, connection.total_changes, (b"", 0)
        self._is_synced = True
        self.connection = connection
        self.identity = sqlite_file.identity(self.path)
        self._wal = sqlite_file.identity(beside(self.path, "-wal"))
        self.note_content()

    def _tell_of_recovery(self, connection: sqlite3.Connection) -> None:
        """Tell of a recovery that has just ended, or that a kill had interrupted at its last step."""
        if connection.execute("SELECT 1 FROM meta WHERE key = 'recovered'").fetchone() is None:
            return
        from hermes.store.sqlite import (
            losses,  # only where there was damage
            recovery,
        )

        report = recovery.untold_report(connection, self.path)
        try:
            losses.append(self.path.parent, report)
        except OSError as error:
            log.warning("Recovery not noted", extra={"path": str(self.path), "reason": str(error)})
        self._tell(Trouble("damage", str(report)))
        recovery.forget_report(connection)

    def _judge(self, compared: _Compared) -> None:
        """Decide about pages that are not as we left them, in a file that SQLite finds sound."""
        if not compared.differences:
            return
        if compared.is_proof:
            raise DamagedError(f"page {compared.differences[0].page} is not as it was written")
        if self.connection is None and not self.generation:
            text = f"Another program wrote into {self.name} while Hermes was not running. I use the file as it is."
            self._tell(Trouble("replaced", text))

    def _keep_map(self) -> None:
        """Without its map the store works as well: only a recovery would know less."""
        try:
            self._pages.build()
        except OSError as error:
            self._pages.drop()
            log.warning("Page map not written", extra={"path": str(self._pages.path), "reason": str(error)})

    def _note_opened(self) -> None:
        if not self.has_wal:
            self._pages.drop()  # pages then change with every commit
        elif self._pages.is_kept:
            try:
                self._pages.open()
            except OSError as error:
                self._pages.drop()
                log.warning("Page map not written", extra={"path": str(self._pages.path), "reason": str(error)})

    def _choose_journal(self, connection: sqlite3.Connection) -> None:
        """Take write-ahead logging, or do without it as network filesystems force us to: slower, equally safe."""
        try:
            mode = connection.execute("PRAGMA journal_mode = wal").fetchone()[0]
            reason = f"SQLite stays in mode {mode!r}"
        except sqlite3.OperationalError as error:
            if error_code(error) not in sqlite_file.NO_LOG_HERE:
                raise
            mode, reason = "", str(error)
        if mode == "wal":
            return
        connection.execute("PRAGMA journal_mode = truncate")
        if self.has_wal:
            self.has_wal = False
            self._tell(
                Trouble(
                    "journal",
                    f"{self.name}: write-ahead logging was refused ({reason}), so the slower TRUNCATE journal is used. "
                    f"Is {self.path.parent} on a network filesystem (NFS, SMB, FUSE, WSL1)? A local disk is faster.",
                )
            )

    def mend(self) -> bool:
        """Add what the schema lacks. Returns whether anything was added."""
        if self.connection is None:
            return False
        added = schema_repair.mend(self.connection, self._steps)
        self.note_content()
        if added:
            self._tell_added(added)
        return bool(added)

    def _tell_added(self, added: Sequence[str]) -> None:
        """In SQLite's own words too, which operators look for in the log."""
        for thing in added:  # "column outbox.reason"
            reason = f"no such {thing.replace(' ', ': ', 1)}"
            log.warning("Schema drift", extra={"path": str(self.path), "reason": reason})
        self._tell(Trouble("drift", f"{self.name} lacked {', '.join(added)}. I have added that."))

    # Healing and closing

    def sync_commits(self, is_wanted: bool) -> None:
        """Have every commit wait until it is on the disk, or only until the next one that does. Between transactions.

        Without a log, only the former keeps the file sound after a power cut.
        """
        assert self.connection is not None  # noqa: S101 - the caller looked
        if is_wanted != self._is_synced and self.has_wal:
            self.connection.execute(f"PRAGMA synchronous = {'FULL' if is_wanted else 'NORMAL'}")
            self._is_synced = is_wanted

    def note_commit(self) -> None:
        """Count a commit. It went to the write-ahead log, so the file itself is unchanged."""
        self._commits += 1

    def is_checkpoint_due(self, *, is_alone: bool) -> bool:
        """Whether the log has grown enough. ``is_alone``: by a write that may be followed by a thousand like it."""
        connection = self.connection
        if not self.has_wal or connection is None or not self._commits:
            return False
        if self._commits >= CHECKPOINT_COMMITS or connection.total_changes - self._changes >= CHECKPOINT_ROWS:
            return True
        if is_alone:
            return wal.has_grown(self.path, self._log_end, CHECKPOINT_BYTES_ALONE)
        return self._commits % 8 == 0 and wal.has_grown(self.path, self._log_end, CHECKPOINT_BYTES)

    def _wal_size(self) -> int:
        found = sqlite_file.look(beside(self.path, "-wal")).content
        return found[0] if found else 0

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the database, and note the checksums of the pages that this changes."""
        assert self.connection is not None  # noqa: S101 - the caller looked
        frames = 0
        with contextlib.suppress(sqlite3.Error):  # tried again with the next one, as SQLite's own are
            _, frames, _ = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._note_pages()
        self._commits, self._changes = 0, self.connection.total_changes
        self._log_end = wal.end_of(self.path, frames)
        self.note_content()

    def compact(self) -> None:
        """Write the file anew without its free space, which holds what was deleted; then open it again.

        The map of the pages goes first: a process that is killed on the way leaves a sound file without a map.
        """
        with contextlib.ExitStack() as stack:
            for reader in self.readers:
                stack.enter_context(reader.lock)
                reader.close()
            assert self.connection is not None  # noqa: S101 - the caller looked
            self.checkpoint()
            self._pages.drop()
            # A connection of its own: the writer keeps temporary tables in memory, and the copy may be large.
            with contextlib.closing(self.location.connect_bare(self._limits)) as own:
                own.execute("PRAGMA wal_autocheckpoint = 0")
                own.execute("VACUUM")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self.sidecar.write_anew()
            self.close()
            self.open()

    def _note_pages(self, up_to: int | None = None) -> None:
        try:
            self._pages.note_log() if up_to is None else self._pages.note_log(up_to)
        except OSError as error:
            log.warning("Page map not written", extra={"path": str(self._pages.path), "reason": str(error)})

    def is_same(self) -> bool:
        """Whether the path still names the file we have open."""
        return sqlite_file.identity(self.path) == self.identity

    def note_content(self) -> None:
        """Remember the file's size and time. Called after each write of our own into the file, such as a checkpoint."""
        self._content = sqlite_file.look(self.path).content

    def was_touched(self) -> bool:
        """Whether anybody but us has written into the file since. SQLite itself would not look, having a log."""
        return self.has_wal and sqlite_file.look(self.path).content != self._content

    def reason_to_reopen(self) -> str:
        """Why the file has to be opened again, '' for not at all: one look for every write."""
        if self.connection is None:
            return "the file is not open"
        found = sqlite_file.look(self.path)
        if found.identity != self.identity:
            return "the file is another one"
        if not self.has_wal or (found.content == self._content and not self._is_touched):
            return ""
        if time.monotonic() - self._touched_at >= TOUCHED_SECONDS or _size(found.content) != _size(self._content):
            return TOUCHED
        self._is_touched, self._content = True, found.content
        return ""

    def heal(self, *, is_only_touched: bool = False) -> None:
        """Close every handle and open the file again, whatever it is now; recover it if it is not sound."""
        with contextlib.ExitStack() as stack:
            for reader in self.readers:
                stack.enter_context(reader.lock)
            is_same = self.identity is None or self.is_same()
            was_touched = is_same and self.connection is not None and (self._is_touched or self.was_touched())
            if not is_same and self.connection is not None:
                self._rescued = self._rescue()
            self.close()
            if not is_same:
                self._pages.drop()
                self._drop_old_journal(is_rescued=self._rescued is not None)
            if self._rescued is not None and not self.path.exists():
                self._rescued.replace(self.path)
                self._rescued, is_same = None, True
                self._tell(Trouble("replaced", f"{self.name} was deleted while in use. I have put it back, whole."))
            self._is_touched = False
            is_sound = self.open(
                check_whole=True, rescued=self._rescued, is_only_touched=is_only_touched and was_touched
            )
            if is_sound and (self._rescued is not None or not is_same):
                self._go_on_in_new_file()
            elif is_sound and was_touched:
                text = f"Another program wrote into {self.name} while it was in use. I have read it anew."
                self._tell(Trouble("replaced", text))
            self._rescued = None

    def _go_on_in_new_file(self) -> None:
        text = f"{self.name} was replaced while in use. I work with the new file."
        if self._rescued is not None and self.connection is not None:
            try:
                from hermes.store.sqlite import recovery  # only where a file was replaced

                recovery.carry_over(self._rescued, self.connection)
            except BaseException:
                self.close()  # nothing may be written before what was going on is there
                raise
            self.note_content()
            text += f" What was going on goes on; what else the old one held is kept as backups/{self._rescued.name}."
        self._tell(Trouble("replaced", text))

    def _rescue(self) -> Path | None:
        """Copy what the open handle still sees of a file that lost its name. Without room it raises and stays open."""
        assert self.connection is not None  # noqa: S101 - the caller looked
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            return backup.backup(self.connection, self.path, "replaced", self._clock())
        except sqlite3.Error as error:
            if not sqlite_file.is_damage(error):
                raise
            log.warning("Replaced file not saved", extra={"reason": str(error)})
            return None

    def _drop_old_journal(self, *, is_rescued: bool) -> None:
        """Take away the old file's -wal, which SQLite would otherwise replay into the new file."""
        log_file = beside(self.path, "-wal")
        if self._wal is not None and sqlite_file.identity(log_file) == self._wal:
            for suffix in sqlite_file.SUFFIXES[1:]:
                old = beside(self.path, suffix)
                if is_rescued:
                    old.unlink(missing_ok=True)
                elif old.exists():
                    old.rename(beside(self.path, f".replaced.{sqlite_file.stamp(self._clock())}{suffix}"))

    def close(self) -> None:
        """Close every connection. The caller holds the readers' locks, or their threads have ended."""
        for reader in self.readers:
            reader.close()
        if self.connection is not None:
            self._note_pages()
            self.connection.close()
            self.connection = None
            try:
                self._pages.close()
            except OSError as error:
                log.warning("Page map not closed", extra={"path": str(self._pages.path), "reason": str(error)})


def _size(content: tuple[int, int] | None) -> int:
    return content[0] if content else 0
