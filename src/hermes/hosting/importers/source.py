"""Read another gateway's home without changing a byte of it.

Its files may be damaged or hostile: every read is bounded, no link is followed, and a database is opened as a copy.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes.core.errors import GatewayError
from hermes.core.text import one_line

MAX_FILE_BYTES = 5_000_000
MAX_ENTRIES = 20_000
MAX_CELL_BYTES = 20_000_000
COPY_TRIES = 3
COPY_PAUSE_SECONDS = 0.2
QUERY_SECONDS = 120.0
OPCODES = 100_000


class UnreadableError(GatewayError):
    """A part of the other home cannot be read; the text is half a sentence that says why."""


class SourceHome:
    """The folder of another gateway. ``scratch`` is a folder of ours, for copies of databases."""

    def __init__(self, path: Path, scratch: Path) -> None:
        self.path = path
        self._scratch = scratch
        self._copies = 0

    def is_file(self, *parts: str) -> bool:
        """Whether a plain file is there, reached without a link."""
        try:
            return stat.S_ISREG(self._status(*parts).st_mode)
        except (OSError, ValueError, UnreadableError):
            return False

    def is_folder(self, *parts: str) -> bool:
        try:
            return stat.S_ISDIR(self._status(*parts).st_mode)
        except (OSError, ValueError, UnreadableError):
            return False

    def names(self, *parts: str) -> list[str]:
        """The names in a folder, in order; none where there is no such folder."""
        if not self.is_folder(*parts):
            return []
        found = []
        try:
            with os.scandir(self.path.joinpath(*parts)) as entries:
                for entry in entries:
                    found.append(entry.name)
                    if len(found) >= MAX_ENTRIES:
                        break
        except OSError:
            return []
        return sorted(found)

    def read(self, *parts: str, most: int = MAX_FILE_BYTES) -> bytes:
        """The bytes of a file. UnreadableError: it is a link, no plain file, too large, or not ours to read."""
        status = self._status(*parts)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError("it is not a regular file")
        if status.st_size > most:
            raise UnreadableError(f"it is too large ({status.st_size:,} bytes)")
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with open(os.open(self.path.joinpath(*parts), flags), "rb") as file:
                return file.read(most)
        except OSError as error:
            raise UnreadableError(error.strerror or "it cannot be read") from None

    def text(self, *parts: str, most: int = MAX_FILE_BYTES) -> str:
        return self.read(*parts, most=most).decode("utf-8-sig", "replace").replace("\x00", "")

    def json(self, *parts: str, most: int = MAX_FILE_BYTES) -> Any:
        try:
            return json.loads(self.read(*parts, most=most).decode("utf-8-sig", "replace"), strict=False)
        except (ValueError, RecursionError):
            raise UnreadableError("it is not JSON") from None

    @contextlib.contextmanager
    def database(self, *parts: str) -> Iterator[sqlite3.Connection]:
        """Open a copy of a database, with what its journal holds. UnreadableError says why it cannot be."""
        copy = self._copy(*parts)
        try:
            connection = sqlite3.connect(copy)
        except sqlite3.Error as error:
            raise UnreadableError(f"it cannot be opened ({error})") from None
        try:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
            ends = time.monotonic() + QUERY_SECONDS
            connection.set_progress_handler(lambda: time.monotonic() > ends, OPCODES)
            # Not trusted_schema = OFF: some SQLite refuse real tables with it, whose checks call json_valid(). Views,
            # virtual tables and triggers are never run: see table_columns.
            connection.execute("PRAGMA query_only = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            yield connection
        except sqlite3.Error as error:
            raise UnreadableError(f"it is damaged, or not a database ({one_line(str(error), 120)})") from None
        finally:
            connection.close()
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{copy}{suffix}")

    def _copy(self, *parts: str) -> str:
        """Copy the file and its journal. A gateway that writes meanwhile would make the copy a torn one."""
        self._copies += 1
        copy = self._scratch / f"copy-{self._copies}.db"
        origin = self.path.joinpath(*parts)
        for _ in range(COPY_TRIES):
            before = self._stamps(*parts)
            if before[0] is None:
                raise UnreadableError("it is not there")
            try:
                self._copy_one(origin, copy)
                if before[1] is not None:
                    self._copy_one(Path(f"{origin}-wal"), Path(f"{copy}-wal"))
            except OSError as error:
                raise UnreadableError(error.strerror or "it cannot be copied") from None
            if self._stamps(*parts) == before:
                return str(copy)
            time.sleep(COPY_PAUSE_SECONDS)
        raise UnreadableError("it changes all the time: stop the other gateway first")

    def _copy_one(self, origin: Path, copy: Path) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(origin, flags), "rb") as source, copy.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)

    def _stamps(self, *parts: str) -> tuple[object, object]:
        *above, name = parts
        return self._stamp(*above, name), self._stamp(*above, f"{name}-wal")

    def _stamp(self, *parts: str) -> tuple[int, int, int] | None:
        try:
            found = self._status(*parts)
        except UnreadableError:
            return None
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableError("it is not a regular file")
        return found.st_ino, found.st_size, found.st_mtime_ns

    def _status(self, *parts: str) -> os.stat_result:
        """The status of a file below the home. No part of the way may be a link, or lead out of it."""
        path = self.path
        found = os.stat_result([0] * 10)
        for part in parts:
            if part in ("", ".", "..") or "/" in part or "\x00" in part:
                raise UnreadableError("its name points to another folder")
            path = path / part
            try:
                found = os.lstat(path)
            except OSError as error:
                raise UnreadableError(error.strerror or "it is not there") from None
            if stat.S_ISLNK(found.st_mode):
                raise UnreadableError("it is a link, and links are not followed")
        return found


def table_columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """The columns of a real table; none for a view, a virtual table or one that is not there."""
    row = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if row is None or not str(row[0]).lstrip().upper().startswith(("CREATE TABLE", "CREATE TEMP")):
        return frozenset()
    return frozenset(str(column[1]) for column in connection.execute(f'PRAGMA table_info("{table}")'))


def rows(
    connection: sqlite3.Connection, table: str, wanted: tuple[str, ...], rest: str = "", *given: object
) -> Iterator[dict[str, Any]]:
    """The rows of a table with those of the ``wanted`` columns that it has. ``rest`` is what follows FROM."""
    there = table_columns(connection, table)
    if not there:
        return
    chosen = [name for name in wanted if name in there]
    names = ", ".join(f'"{name}"' for name in chosen)
    sql = f'SELECT {names} FROM "{table}" {rest}'  # noqa: S608 - names of ours
    for row in connection.execute(sql, given):
        yield dict(zip(chosen, row, strict=True))
