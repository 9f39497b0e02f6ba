"""Open, check, copy and set aside one SQLite file.

Once a connection exists, nothing in this process may open the file except through sqlite3: closing any other
descriptor drops the process's POSIX locks. So headers are read, and pages kept, before the first connect.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ForeignHomeError, StoreIsDownError
from hermes.core.i18n.failures import sentence
from hermes.store import home, home_faults, migrate
from hermes.store.db import SQLITE, StoreLimits, Tx
from hermes.store.private_files import write_private
from hermes.store.sqlite import wal

APPLICATION_ID = 0x48524D53
"""In the header of every SQLite file of ours ("HRMS"): a file without it is never touched."""

MAGIC = b"SQLite format 3\x00"
SUFFIXES = ("", "-wal", "-shm")


UNREADABLE_SCHEMA = "its schema is damaged"
"""SQLite quotes a schema that it cannot read; where that is no text, Python raises UnicodeDecodeError for the quote."""


class DamagedError(Exception):
    """The file is not sound; the text is SQLite's own."""


@dataclass(frozen=True, slots=True)
class Location:
    path: Path
    vfs: str = ""

    @classmethod
    def parse(cls, text: str) -> Location:
        """Read a path, ``sqlite:///path`` or ``file:/path``, the last two with ``?vfs=…`` if need be."""
        if not text.startswith(("sqlite:///", "file:")):
            return cls(Path(text))
        parts = urlsplit(text)
        path = unquote(parts.path)
        if parts.scheme == "sqlite":  # three slashes: relative; four: absolute
            path = path.removeprefix("/")
        return cls(Path(path), parse_qs(parts.query).get("vfs", [""])[0])

    @property
    def head(self) -> Path:
        """Where page 1 is kept, for the day the file's own is gone."""
        return beside(self.path, ".head")

    def connect(self, limits: StoreLimits) -> sqlite3.Connection:
        connection = self.connect_bare(limits)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA temp_store = MEMORY")
        except UnicodeDecodeError as error:
            connection.close()
            raise DamagedError(UNREADABLE_SCHEMA) from error
        except BaseException:
            connection.close()
            raise
        return connection

    def connect_bare(self, limits: StoreLimits) -> sqlite3.Connection:
        """A connection that has not looked at the file yet."""
        uri = f"file:{quote(str(self.path.absolute()))}" + (f"?vfs={self.vfs}" if self.vfs else "")
        return sqlite3.connect(
            uri,
            uri=True,
            timeout=limits.busy_seconds,
            isolation_level=None,
            check_same_thread=False,  # the writer closes the readers' connections when the file was replaced
            cached_statements=512,
        )


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def identity(path: Path) -> tuple[int, int] | None:
    """Which file this path names now; None when it names none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@dataclass(frozen=True, slots=True)
class Look:
    """A file as it is now: which one it is, and a mark that changes when anybody writes into it."""

    identity: tuple[int, int] | None = None
    content: tuple[int, int] | None = None


def look(path: Path) -> Look:
    """One look for both. None and None: there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return Look()
    return Look((found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))


def finished_recovery(path: Path) -> Path:
    """The name of a recovery that is complete but not yet in place."""
    return beside(path, ".rebuilt")


def tx_of(connection: sqlite3.Connection) -> Tx:
    """One cursor for all statements, each of which ends the one before it: none is left open with unread rows."""
    return Tx(SQLITE, connection.cursor().execute)


# Before the first connect


def prepare(location: Location) -> bool:
    """Create the file privately or check that it is ours; True if fresh. ForeignHomeError or DamagedError otherwise."""
    path = location.path
    if not path.parent.is_dir():
        home.make_private_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        if location.head.exists():  # page 1 is kept only of a file that held our tables
            raise DamagedError("the file is empty")
        is_fresh = True
    else:
        is_fresh = False
        _refuse_foreign_or_damaged(location, header)
        if wal.lost_commits(path):
            raise DamagedError("its write-ahead log is damaged")
    for suffix in SUFFIXES:
        home.narrow_one(beside(path, suffix))
    return is_fresh


def _refuse_foreign_or_damaged(location: Location, header: bytes) -> None:
    if header[:16] == MAGIC and int.from_bytes(header[68:72], "big") == APPLICATION_ID:
        return
    tables = _table_count(location.path) if header[:16] == MAGIC else None
    if tables and not _has_our_tables(location.path):
        raise ForeignHomeError(
            f"{location.path} is a database of another program. I have changed nothing there.\n"
            "  Give Hermes a home of its own with HERMES_HOME."
        )
    if tables == 0:
        return  # being made this moment by another process of ours
    if location.head.exists() or home.marker(location.path.parent) is not None:
        raise DamagedError("file is not a database" if header[:16] != MAGIC else "its header is damaged")
    raise ForeignHomeError(
        f"{location.path} is there already and is no database of ours. I have changed nothing there.\n"
        "  Give Hermes a home of its own with HERMES_HOME, or move that file away."
    )


def _table_count(path: Path) -> int | None:
    """Count what the schema names; None where it cannot be read."""
    try:
        with contextlib.closing(home.read_only(path)) as connection:
            return int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def _has_our_tables(path: Path) -> bool:
    try:
        with contextlib.closing(home.read_only(path)) as connection:
            return connection.execute("SELECT 1 FROM meta WHERE key = 'version'").fetchone() is not None
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def keep_head(location: Location) -> None:
    """Keep page 1 for a later recovery. Only while no connection of this process is open."""
    page = _first_page(location.path)
    if page[:16] == MAGIC:
        write_private(location.head, page)


def is_head_current(location: Location) -> bool:
    """Whether the kept page 1 leads to the same tables as the file's own. Only before the first connect."""
    try:
        kept = location.head.read_bytes()
    except FileNotFoundError:
        return False
    page = _first_page(location.path)
    # The header's counters change all the time; the schema's cookie and its tree of tables must agree.
    return kept[40:44] == page[40:44] and kept[100:] == page[100:]


def stored_schema_version(location: Location) -> int:
    try:
        return int.from_bytes(location.head.read_bytes()[40:44], "big")
    except FileNotFoundError:
        return -1


def _first_page(path: Path) -> bytes:
    with path.open("rb") as file:
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")
        file.seek(0)
        return file.read(65536 if size == 1 else size)


# With a connection


NO_LOG_HERE = frozenset({sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""What SQLite answers where the shared memory of a write-ahead log cannot be had, as on network filesystems."""


def leave_log(location: Location, limits: StoreLimits) -> None:
    """Take a file off its write-ahead log where that cannot be shared: one process alone can do without sharing."""
    with contextlib.closing(location.connect_bare(limits)) as connection:
        connection.execute("PRAGMA locking_mode = exclusive")
        connection.execute("PRAGMA journal_mode = truncate")


def check(connection: sqlite3.Connection, *, whole: bool) -> None:
    """Raise DamagedError unless the schema can be read and, if ``whole``, every page is where it belongs."""
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        answer = connection.execute("PRAGMA integrity_check(1)").fetchone()[0] if whole else "ok"
    except UnicodeDecodeError as error:
        raise DamagedError(UNREADABLE_SCHEMA) from error
    except sqlite3.DatabaseError as error:
        if error_code(error) in DAMAGE:
            raise DamagedError(str(error)) from error
        raise
    if answer != "ok":
        raise DamagedError(answer.splitlines()[-1])


def check_table(tx: Tx, table: str) -> None:
    """Raise DamagedError unless every page of one table is where it belongs."""
    answer = tx.value(f"PRAGMA quick_check({table})")
    if answer != "ok":
        raise DamagedError(str(answer))


def claim(connection: sqlite3.Connection) -> None:
    """Write our application_id: before anything else is in the file, so that a kill never leaves it a stranger's."""
    # Asked first, because setting it writes the page even when nothing changes.
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def apply_migrations(
    connection: sqlite3.Connection,
    steps: Sequence[migrate.Migration],
    name: str,
    before: Callable[[sqlite3.Connection, int], object] | None = None,
) -> bool:
    """Apply missing migrations, one transaction each; True if any. ``before`` runs ahead of each, unless fresh."""
    tx = tx_of(connection)
    claim(connection)
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        with transaction(connection):
            connection.execute(migrate.META)
    steps_ahead = migrate.pending(tx, steps, name)
    is_fresh = not migrate.version(tx)
    for step in steps_ahead:
        if before is not None and not is_fresh:
            before(connection, step.number)
        with transaction(connection):
            migrate.apply(tx, step)
    return bool(steps_ahead)


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# Errors

DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
DOWN = frozenset(
    {
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
)
LOST_PAGES = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_READ})
"""A file cut short under a running process answers so; opening it again shows what is left."""


def error_code(error: BaseException) -> int:
    """SQLite's primary result code, or 0."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF if isinstance(error, sqlite3.Error) else 0


def is_damage(error: BaseException) -> bool:
    return (
        isinstance(error, DamagedError)
        or error_code(error) in DAMAGE
        or getattr(error, "sqlite_errorcode", 0) in LOST_PAGES
    )


def in_words(error: BaseException, path: Path) -> BaseException:
    """Put what the disk or another process did into words, with the cure; a bug in a statement stays what it is."""
    code = error_code(error)
    fault: home_faults.Fault | None = None
    if code == sqlite3.SQLITE_FULL:
        fault = home_faults.disk_is_full(path.parent, f", so {path.name} cannot grow")
    elif code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        fault = home_faults.lock_fault(path)
    elif code in DOWN or isinstance(error, OSError):
        # SQLite says of missing rights, and at times of a full disk, only that it cannot open or write the file.
        places = (path.parent, *(beside(path, suffix) for suffix in SUFFIXES))
        found = (home_faults.access_fault(place) for place in places)
        fault = next((refused for refused in found if refused is not None), None) or home_faults.disk_fault(path.parent)
    elif code not in DAMAGE:
        return error
    if fault is not None:
        text = str(fault)
    elif code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        text = f"{path.name} is locked by another process."
    else:
        text = f"{path.name} cannot be used: {sentence(str(error))}"
    down = StoreIsDownError(text)
    down.__cause__ = error
    return down


# Setting aside


def stamp(now: float) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(now))


def set_aside(path: Path, word: str, now: float) -> Path:
    """Move a database with its -wal and -shm together, so that the set can be opened later as it was."""
    kept = beside(path, f".{word}.{stamp(now)}")
    while kept.exists():
        now += 1
        kept = beside(path, f".{word}.{stamp(now)}")
    for suffix in reversed(SUFFIXES):  # the main file last: while it is there, the set is not done moving
        with contextlib.suppress(FileNotFoundError):
            os.rename(beside(path, suffix), beside(kept, suffix))
    return kept
