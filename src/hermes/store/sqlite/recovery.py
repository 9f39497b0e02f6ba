# ruff: noqa: S608 - table and column names come from our own schema; values are bound
"""Brings back what a damaged database still holds.

The damaged set is copied, never opened itself. If the copy's first page is gone, the one kept in ``<name>.head``
takes its place. Tables are read in order, from the end, and in ever smaller ranges around what is broken; then,
if anything was broken, page by page. What is still missing comes from the newest backup, from the mirror of
people and cursors, and from the transcripts written as JSONL. Rows stream; nothing is held whole.

The new file is built beside the old one and takes its name only when it is complete, so that a kill at any moment
leaves either the damaged set or a finished recovery.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.store import home, migrate
from hermes.store.sqlite import backup, mirror, pages, schema_repair, transcript_files, wal
from hermes.store.sqlite.file import MAGIC, SUFFIXES, apply_migrations, beside, set_aside, transaction

log = logging.getLogger(__name__)

WORK = frozenset({"inbox", "lanes", "turns", "tool_calls", "outbox", "targets", "approvals"})
"""Never taken from an old backup: what was open then has long been settled, and would be answered again."""

BATCH = 500
LEAST_PAGE = 512
MOST_FAILED_READS = 4000
"""How often a damaged table is asked again around its broken pages before the page scan takes over."""


@dataclass(slots=True)
class Recovered:
    """How much came back. ``about`` is an estimate: the damaged file cannot always say what it held."""

    rows: int = 0
    about: int = 0
    kept_as: Path = field(default_factory=Path)
    is_broken: bool = False


def rebuild(path: Path, steps: Sequence[migrate.Migration], now: float, *, rescued: Path | None = None) -> Recovered:
    """Put a new database in the place of a damaged or missing one, with every row that can be read.

    ``rescued`` is a copy of the content as it was just now, if there is one. No connection to ``path`` may be
    open in this process.
    """
    new = beside(path, ".rebuilding")
    _remove(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as target:
        apply_migrations(target, steps, path.name)
        found = Recovered()
        if rescued is not None:  # first: where the two disagree, it is the newer
            found.rows += _import(rescued, target, schema_repair.tables(target))
        if path.exists():
            with _copied(path) as copy:
                _salvage(copy, target, found)
                found.about = max(found.about, round(found.rows * _share_cut_off(copy)))
        _fill_gaps(path, target, found)
    new.replace(finished(path))
    found.kept_as = adopt(path, now)
    found.about = max(found.about, found.rows)
    return found


def finished(path: Path) -> Path:
    """The name of a recovery that is complete but not yet in place."""
    return beside(path, ".rebuilt")


def adopt(path: Path, now: float) -> Path:
    """Set the damaged set aside and put the finished recovery in its place. Also ends one that was interrupted."""
    kept = set_aside(path, "corrupt", now)
    os.rename(finished(path), path)
    return kept


def carry_over(rescued: Path, target: sqlite3.Connection) -> None:
    """Let what was going on go on in a sound file that was put in the place of ours, mostly an older copy.

    Messages, their names, turns, answers and who is who are as they were just now: else what arrived since the copy
    would be lost, and what was answered since would be answered again. So are the sessions that lanes are in. All
    else is the new file's.
    """
    have = set(schema_repair.tables(target))
    with contextlib.closing(home.read_only(rescued)) as source, transaction(target):
        for table in [name for name in (*WORK, *mirror.MIRRORED, "dedupe") if name in have]:
            _replace(source, target, table, "")
        if {"lanes", "sessions", "transcript", "revisions"} <= have:
            for table, key in (("sessions", "id"), ("transcript", "session_id"), ("revisions", "session_id")):
                _replace(source, target, table, f"WHERE {key} IN (SELECT session_id FROM lanes)")


def _replace(source: sqlite3.Connection, target: sqlite3.Connection, table: str, where: str) -> None:
    names = ", ".join(column.name for column in schema_repair.columns(target, table))
    rows = source.execute(f"SELECT {names} FROM {table} {where}")
    cursor = ", ".join("?" * (names.count(",") + 1))
    target.executemany(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({cursor})", rows)


# The damaged file


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[Path]:
    folder = beside(path, ".recovery")
    shutil.rmtree(folder, ignore_errors=True)
    home.make_private_folder(folder)
    try:
        copy = folder / "damaged.db"
        for suffix in SUFFIXES[:2]:  # without -shm: SQLite makes a new one from the -wal
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(beside(path, suffix), beside(copy, suffix))
        wal.merge(copy)
        _mend_header(copy, beside(path, ".head"))
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _mend_header(copy: Path, head: Path) -> None:
    """Give a file whose first page is gone the one that was kept, with the file's true size in it."""
    with copy.open("r+b") as file:
        header = file.read(100)
        if header[:16] == MAGIC and _is_readable(copy):
            return
        page = bytearray(_stored_first_page(head) or _blank_header())
        size = int.from_bytes(page[16:18], "big")
        size = 65536 if size == 1 else size
        file.seek(0, 2)
        page[28:32] = (file.tell() // size).to_bytes(4, "big")
        page[32:40] = bytes(8)  # no freelist: we only read
        file.seek(0)
        file.write(page)


def _stored_first_page(head: Path) -> bytes:
    """The first page as it was kept; nothing where what damaged the file has damaged that too."""
    page = head.read_bytes() if head.exists() else b""
    return page if page.startswith(MAGIC) and len(page) >= LEAST_PAGE else b""


def _blank_header() -> bytes:
    """The header of an empty database: enough when only the first hundred bytes are gone."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE TABLE t (a)")
        return memory.serialize()[:100]


def _is_readable(copy: Path) -> bool:
    try:
        with contextlib.closing(home.read_only(copy)) as connection:
            return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    except sqlite3.Error:
        return False


def _share_cut_off(copy: Path) -> float:
    """How many times more pages the header tells of than the file still has."""
    with copy.open("rb") as file:
        header = file.read(100)
    size = int.from_bytes(header[16:18], "big") or 4096
    told = int.from_bytes(header[28:32], "big")
    return min(max(1.0, told * size / max(1, copy.stat().st_size)), 1000.0)


def _salvage(copy: Path, target: sqlite3.Connection, found: Recovered) -> None:
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as source:
            source.text_factory = lambda raw: raw.decode("utf-8", "replace")
            for table in set(schema_repair.tables(target)) - {"meta"}:
                _salvage_table(source, target, table, found)
            with contextlib.suppress(sqlite3.Error):  # the page scan then sees the file without its -wal
                source.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        log.warning("Could not open the damaged copy", extra={"reason": str(error)})
        found.is_broken = True
    if found.is_broken:
        found.rows += _insert_raw(pages.rows(copy), target)


def _salvage_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str, found: Recovered) -> None:
    try:
        present = [column.name for column in schema_repair.columns(source, table)]
    except sqlite3.DatabaseError:
        found.is_broken = True
        return
    names = [column.name for column in schema_repair.columns(target, table) if column.name in present]
    if not names:
        found.is_broken = True
        return
    reader = _TableReader(source, table, names)
    kept = _insert(target, table, names, reader.rows())
    counted = _count(source, table)
    found.rows += kept
    found.about += max(kept, counted)
    found.is_broken = found.is_broken or reader.is_broken or kept < counted


def _count(source: sqlite3.Connection, table: str) -> int:
    """How many rows there were: counted over an index, which may be whole where the table is not."""
    counts = [0]
    for how in ("", "NOT INDEXED", f"INDEXED BY sqlite_autoindex_{table}_1"):
        with contextlib.suppress(sqlite3.DatabaseError):
            counts.append(source.execute(f"SELECT count(*) FROM {table} {how}").fetchone()[0])
    return max(counts)


class _TableReader:
    """Reads one table around its broken pages."""

    def __init__(self, source: sqlite3.Connection, table: str, names: Sequence[str]) -> None:
        self._source = source
        self._sql = f"SELECT rowid, {', '.join(names)} FROM {table} NOT INDEXED WHERE rowid BETWEEN ? AND ?"
        self._failures = 0
        self.is_broken = False

    def rows(self) -> Iterator[tuple[Any, ...]]:
        low, high = -(1 << 63), (1 << 63) - 1
        last = yield from self._read(low, high, "ASC")
        if last is None:
            return
        first = yield from self._read(last + 1, high, "DESC")
        if first is not None:
            yield from self._between(last + 1, first - 1)

    def _read(self, low: int, high: int, order: str) -> Generator[tuple[Any, ...], None, int | None]:
        """Yield rows until something is broken. Returns the last rowid read then, or None when all is read."""
        last = low - 1 if order == "ASC" else high + 1
        try:
            for rowid, *values in self._source.execute(f"{self._sql} ORDER BY rowid {order}", [low, high]):
                last = rowid
                yield tuple(values)
        except sqlite3.DatabaseError:
            self.is_broken = True
            self._failures += 1
            return last
        return None

    def _between(self, low: int, high: int) -> Iterator[tuple[Any, ...]]:
        """Halve what is broken until only the broken pages are left."""
        ranges = [(low, high)]
        while ranges and self._failures < MOST_FAILED_READS:
            low, high = ranges.pop()
            if low > high:
                continue
            middle = (low + high) // 2
            for start, end in ((low, middle), (middle + 1, high)):
                last = yield from self._read(start, end, "ASC")
                if last is not None and start < end:
                    ranges.append((last + 1, end))


# Putting rows in


def _insert(target: sqlite3.Connection, table: str, names: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
    """Insert what is not there yet, a batch at a time. A row that breaks a rule of the schema is left out."""
    sql = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    before = target.total_changes
    stream = iter(rows)
    while batch := list(islice(stream, BATCH)):
        with transaction(target):
            target.executemany(sql, batch)
    return target.total_changes - before


def _insert_raw(rows: Iterable[pages.RawRow], target: sqlite3.Connection) -> int:
    """Insert records found page by page into the one table each of them fits."""
    shapes = {table: schema_repair.columns(target, table) for table in schema_repair.tables(target)}

    def fitting() -> Iterator[tuple[str, pages.RawRow]]:
        for row in rows:
            fits = [table for table, shape in shapes.items() if _fits(row.values, shape)]
            if len(fits) == 1:
                yield fits[0], row

    count = 0
    stream = fitting()
    while batch := list(islice(stream, BATCH)):
        by_table: dict[str, list[Sequence[object]]] = {}
        for table, row in batch:
            by_table.setdefault(table, []).append(row.values)
        for table, values in by_table.items():
            count += _insert(target, table, [column.name for column in shapes[table]], values)
    return count


def _fits(values: Sequence[pages.Value], shape: Sequence[schema_repair.Column]) -> bool:
    if len(values) != len(shape):
        return False
    return all(_is_a(value, column) for value, column in zip(values, shape, strict=True))


def _is_a(value: pages.Value, column: schema_repair.Column) -> bool:
    if value is None:
        return not column.not_null and not column.primary
    kind = column.type.upper()
    if "TEXT" in kind:
        return isinstance(value, str)
    if "INT" in kind:
        return isinstance(value, int)
    return isinstance(value, int | float)  # SQLite stores a whole number in a REAL column as an integer


# The other sources


def _fill_gaps(path: Path, target: sqlite3.Connection, found: Recovered) -> None:
    """Take from backup, mirror and transcripts what the file itself did not give."""
    kept = mirror.read(path.parent)
    empty = [
        name for name in schema_repair.tables(target) if not target.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()
    ]
    wanted = [name for name in empty if name not in WORK and name not in kept.tables and name != "meta"]
    for copy in backup.newest(path)[:1] if wanted else []:
        found.rows += _import(copy, target, wanted)
    for table in sorted(kept.tables):
        found.rows += _insert_mirrored(target, table, kept.of(table))
    if "transcript" in schema_repair.tables(target):
        found.rows += transcript_files.restore(path.parent / "sessions", target)


def _insert_mirrored(target: sqlite3.Connection, table: str, rows: Iterable[mirror.Row]) -> int:
    """Lines of different ages may tell of different columns."""
    names = [column.name for column in schema_repair.columns(target, table)]
    by_columns: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for row in rows:
        present = tuple(name for name in names if name in row)
        by_columns.setdefault(present, []).append([row[name] for name in present])
    return sum(_insert(target, table, present, values) for present, values in by_columns.items() if present)


def _import(copy: Path, target: sqlite3.Connection, tables: Sequence[str]) -> int:
    """Copy whole tables from a sound file; tables and columns it lacks are passed over."""
    count = 0
    try:
        with contextlib.closing(home.read_only(copy)) as source:
            for table in tables:
                present = {column.name for column in schema_repair.columns(source, table)}
                names = [column.name for column in schema_repair.columns(target, table) if column.name in present]
                if names:
                    rows = source.execute(f"SELECT {', '.join(names)} FROM {table}")
                    count += _insert(target, table, names, rows)
    except sqlite3.DatabaseError as error:
        log.warning("Could not use a backup", extra={"path": str(copy), "reason": str(error)})
    return count


def _remove(path: Path) -> None:
    for suffix in (*SUFFIXES, "-journal"):
        beside(path, suffix).unlink(missing_ok=True)
