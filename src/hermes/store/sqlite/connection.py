"""The database file we have open: opened, mended, and got again when it broke or was swapped under us."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from hermes.store import home, migrate
from hermes.store.db import StoreLimits, Trouble
from hermes.store.sqlite import backup, recovery, schema_repair
from hermes.store.sqlite import file as sqlite_file
from hermes.store.sqlite.file import DamagedError, Location, beside, error_code
from hermes.store.sqlite.sidecar import SidecarWriter

log = logging.getLogger(__name__)


class ReaderConnection:
    """A thread's own connection; the lock is held while it is used, so that the writer can close it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


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
        self.readers = [ReaderConnection() for _ in range(limits.readers)]
        self.has_wal = True
        self.connection: sqlite3.Connection | None = None
        self.identity: tuple[int, int] | None = None
        self.generation = 0
        self.table_names: list[str] = []

    # Opening

    def open(self, *, check_whole: bool = False, rescued: Path | None = None) -> bool:
        """Open the file, recovering it first if it must be. No connection of ours may be open.

        Returns whether it was sound.
        """
        is_sound = True
        if recovery.finished(self.path).exists():
            kept = recovery.adopt(self.path, self._clock())
            self._tell(Trouble("damage", f"A recovery of {self.name} was finished; the damaged file is {kept.name}."))
        try:
            if not self.path.exists() and self.location.head.exists():
                raise DamagedError("the file is gone")
            sqlite_file.prepare(self.location)
            self._connect_anyhow(check_whole=check_whole or not self.is_large())
        except (DamagedError, sqlite3.DatabaseError) as error:
            if not sqlite_file.is_damage(error):
                raise
            is_sound = False
            self._recover(str(error), rescued)
            sqlite_file.prepare(self.location)
            self._connect(check_whole=False)
        self.generation += 1
        return is_sound

    def is_large(self) -> bool:
        """Too large to be checked whole at every start."""
        return self.path.stat().st_size > self._limits.checked_at_open_bytes

    def _connect_anyhow(self, *, check_whole: bool) -> None:
        """Connect also to a file that has a write-ahead log and was moved to where there can be none."""
        try:
            self._connect(check_whole=check_whole)
        except sqlite3.OperationalError as error:
            if error_code(error) not in sqlite_file.NO_LOG_HERE or sqlite_file.is_damage(error):
                raise
            sqlite_file.leave_log(self.location, self._limits)
            self._connect(check_whole=check_whole)

    def _connect(self, *, check_whole: bool) -> None:
        has_head = sqlite_file.is_head_current(self.location)
        connection = self.location.connect(self._limits)
        try:
            sqlite_file.check(connection, whole=check_whole)
            sqlite_file.claim(connection)
            self._choose_journal(connection)
            is_fresh = not schema_repair.tables(connection)
            sqlite_file.apply_migrations(connection, self._steps, self.name, self._back_up)
            if added := schema_repair.mend_unless_known(connection, self._steps, is_fresh=is_fresh):
                self._tell_added(added)
            schema = connection.execute("PRAGMA schema_version").fetchone()[0]
            if not has_head or schema != sqlite_file.stored_schema_version(self.location):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.close()
                sqlite_file.keep_head(self.location)
                connection = self.location.connect(self._limits)
                self._choose_journal(connection)
            self.sidecar.watch(connection)
            self.table_names = schema_repair.tables(connection)
        except BaseException:
            connection.close()
            raise
        for suffix in sqlite_file.SUFFIXES:
            home.narrow_one(beside(self.path, suffix))
        self.connection = connection
        self.identity = sqlite_file.identity(self.path)
        self._wal = sqlite_file.identity(beside(self.path, "-wal"))
        self.note_content()

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

    def _back_up(self, connection: sqlite3.Connection, number: int) -> None:
        backup.backup(connection, self.path, f"before-{number}", self._clock())

    def _recover(self, reason: str, rescued: Path | None) -> None:
        was_there = self.path.exists()
        found = recovery.rebuild(self.path, self._steps, self._clock(), rescued=rescued)
        kept = f"; the damaged file is kept as {found.kept_as.name}" if was_there else ""
        self._tell(
            Trouble(
                "damage",
                f"{self.name} was damaged ({reason}). Recovered {found.rows} of about {found.about} rows{kept}.",
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

    def is_same(self) -> bool:
        """Whether the path still names the file we have open."""
        return sqlite_file.identity(self.path) == self.identity

    def note_content(self) -> None:
        """Called after each commit, with which alone our own checkpoints come."""
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
        return "another program wrote into it" if self.has_wal and found.content != self._content else ""

    def heal(self) -> None:
        """Close every handle and open the file again, whatever it is now; recover it if it is not sound."""
        with contextlib.ExitStack() as stack:
            for reader in self.readers:
                stack.enter_context(reader.lock)
            is_same = self.identity is None or self.is_same()
            was_touched = is_same and self.connection is not None and self.was_touched()
            if not is_same and self.connection is not None:
                self._rescued = self._rescue()
            self.close()
            if not is_same:
                self._drop_old_journal(is_rescued=self._rescued is not None)
            if self._rescued is not None and not self.path.exists():
                self._rescued.replace(self.path)
                self._rescued, is_same = None, True
                self._tell(Trouble("replaced", f"{self.name} was deleted while in use. I have put it back, whole."))
            is_sound = self.open(check_whole=True, rescued=self._rescued)
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
                recovery.carry_over(self._rescued, self.connection)
            except BaseException:
                self.close()  # nothing may be written before what was going on is there
                raise
            self.note_content()
            text += f" What was going on goes on; what else the old one held is kept as backups/{self._rescued.name}."
        self._tell(Trouble("replaced", text))

    def _rescue(self) -> Path | None:
        """Copy what the open handle still sees of a file that has lost its name.

        Raises when there is no room for that: the handle then stays open until there is.
        """
        assert self.connection is not None  # noqa: S101 - the caller looked
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            return backup.backup(self.connection, self.path, "replaced", self._clock())
        except sqlite3.Error as error:
            if not sqlite_file.is_damage(error):
                raise
            log.warning("Could not save the old content", extra={"reason": str(error)})
            return None

    def _drop_old_journal(self, *, is_rescued: bool) -> None:
        """Take away the old file's -wal, which SQLite would otherwise replay into the new file."""
        wal = beside(self.path, "-wal")
        if self._wal is not None and sqlite_file.identity(wal) == self._wal:
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
            self.connection.close()
            self.connection = None
