"""Read what a damaged database still holds into a new one.

Where the map of its pages is at hand (``page_map``), every page that is as it was written is read, no other, and what
is missing is known to the row. Without the map tables are read in order, from the end, and in ever smaller ranges
around what is broken; then page by page, where a record is taken only if it has the shape of its table and what it
refers to is there. Rows stream; nothing is held whole.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.store import home, migrate
from hermes.store.sqlite import page_map, pages, row_shapes, schema_repair, wal
from hermes.store.sqlite.file import (
    MAGIC,
    SUFFIXES,
    apply_migrations,
    beside,
    transaction,
)
from hermes.store.sqlite.page_recovery import Gap, KnownFile, UnknownFileError

log = logging.getLogger(__name__)

BATCH = 500
ROWS_TO_GUESS_BY = 5000
MIN_PAGE_BYTES = 512
MAX_FAILED_READS = 4000
"""How often a damaged table is asked again around its broken pages before the page scan takes over."""


@dataclass(slots=True)
class ExpectedRows:
    """What a table held before the damage, as far as that is known."""

    rows: int = 0
    is_exact: bool = True
    gaps: list[Gap] = field(default_factory=list)


@dataclass(slots=True)
class Salvaged:
    """What was found so far. ``is_known``: by the checksums of its pages, so that nothing has to be guessed."""

    tables: dict[str, ExpectedRows] = field(default_factory=dict)
    lost_changes: bool = False
    is_known: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def broken(self) -> list[str]:
        """Tables of which more may be found page by page."""
        return [table for table, expected in self.tables.items() if not expected.is_exact]

    def is_short(self, table: str, target: sqlite3.Connection) -> bool:
        """Whether rows of a table may be missing that another source has."""
        expected = self.tables.get(table)
        if expected is None or not expected.is_exact or self.lost_changes:
            return True
        return rows_in(target, table) < expected.rows


@contextlib.contextmanager
def damaged_copy(path: Path) -> Iterator[Path]:
    folder = beside(path, ".recovery")
    shutil.rmtree(folder, ignore_errors=True)
    home.make_private_folder(folder)
    try:
        copy = folder / "damaged.db"
        copy.touch()
        for suffix in SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(beside(path, suffix), beside(copy, suffix))
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def salvage(copy: Path, path: Path, target: sqlite3.Connection, steps: Sequence[migrate.Migration]) -> Salvaged:
    known = page_map.load(beside(path, page_map.SUFFIX))
    if known is not None and known.is_whole:
        try:
            file = KnownFile(copy, known)
        except (sqlite3.DatabaseError, UnicodeDecodeError, UnknownFileError) as error:
            log.warning("Page map not used", extra={"path": str(path), "reason": str(error)})
        else:
            with contextlib.closing(file):
                return _salvage_known(file, target, steps, path.name)
    index = wal.index_of(copy)
    lost_changes = wal.lost_frames(copy, salts=index.salts, frames=index.copied)
    beside(copy, "-shm").unlink(missing_ok=True)  # SQLite makes a new one from the -wal
    wal.merge(copy, salts=index.salts, frames=index.copied)
    _mend_header(copy, beside(path, ".head"))
    return _salvage_unknown(copy, target, steps, path.name, lost_changes=lost_changes)


def _salvage_known(
    file: KnownFile, target: sqlite3.Connection, steps: Sequence[migrate.Migration], name: str
) -> Salvaged:
    found = Salvaged(lost_changes=file.lost_changes, is_known=True)
    columns = {table.name: tuple(column.name for column in table.columns) for table in file.tables}
    noted = {row[0]: row[1] for table in file.tables if table.name == "meta" for row in file.rows(table)}
    apply_migrations(target, _steps_of(noted.get("version"), columns, steps), name)
    for table in file.tables:
        wanted = {column.name for column in schema_repair.columns(target, table.name)}
        if not wanted or table.name == "meta":
            continue
        # Rows of an older schema have fewer values: the columns that were added since have their defaults.
        for count, some in groupby(file.rows(table), key=len):
            places = [place for place, column in enumerate(table.columns[:count]) if column.name in wanted]
            names = [table.columns[place].name for place in places]
            insert_rows(target, table.name, names, ([row[place] for place in places] for row in some))
        found.tables[table.name] = ExpectedRows(
            table.read + table.lost, table.is_exact and not file.lost_changes, table.gaps
        )
    return found


def _noted_version(source: sqlite3.Connection) -> object:
    with contextlib.suppress(sqlite3.DatabaseError):  # damaged: the tables themselves tell
        found = source.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        return found[0] if found else None
    return None


def _steps_of(
    version: object, columns: dict[str, tuple[str, ...]], steps: Sequence[migrate.Migration]
) -> Sequence[migrate.Migration]:
    """The migrations that a file has gone through; the others run when the new file is opened.

    Where the file does not tell its version, it is the newest whose tables and columns are all there, and never one
    that lacks a column of the file: the column's values would be lost, and come back as its default.
    """
    if isinstance(version, str) and version.isdecimal() and 0 < int(version) <= steps[-1].number:
        return [step for step in steps if step.number <= int(version)]
    if not columns:
        return steps
    for number in range(len(steps), 0, -1):
        wanted = _columns_after(steps[:number])
        if all(names <= set(columns.get(table, ())) for table, names in wanted.items()):
            return steps[:number]
        older = _columns_after(steps[: number - 1])
        added = [(table, names - older.get(table, set())) for table, names in wanted.items()]
        if any(names & set(columns.get(table, ())) for table, names in added):
            return steps[:number]
    return steps[:1]


def _columns_after(steps: Sequence[migrate.Migration]) -> dict[str, set[str]]:
    """The names of all columns that these migrations make, by table."""
    return {
        name: {column.name for column in columns}
        for kind, name, _, columns in (schema_repair.expected(tuple(steps)) if steps else ())
        if kind == "table"
    }


def _steps_by_rows(copy: Path, steps: Sequence[migrate.Migration]) -> Sequence[migrate.Migration]:
    """The migrations of a file whose schema is gone: those whose tables most of its rows fit, the newest of equals."""
    shapes = {
        number: [
            (name, columns)
            for kind, name, _, columns in schema_repair.expected(tuple(steps[:number]))
            if kind == "table"
        ]
        for number in range(len(steps), 0, -1)
    }
    fitting = dict.fromkeys(shapes, 0)
    for row in islice(pages.rows(copy), ROWS_TO_GUESS_BY):
        for number, tables in shapes.items():
            fitting[number] += any(row_shapes.is_whole(name, columns, row.values) for name, columns in tables)
    return steps[: max(fitting, key=lambda number: fitting[number])]


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
    return page if page.startswith(MAGIC) and len(page) >= MIN_PAGE_BYTES else b""


def _blank_header() -> bytes:
    """The header of an empty database: enough when only the first hundred bytes are gone."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.execute("CREATE TABLE t (a)")
        return memory.serialize()[:100]


def _is_readable(copy: Path) -> bool:
    try:
        with contextlib.closing(home.read_only(copy)) as connection:
            return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def _salvage_unknown(
    copy: Path,
    target: sqlite3.Connection,
    steps: Sequence[migrate.Migration],
    name: str,
    *,
    lost_changes: bool,
) -> Salvaged:
    """Read what can be read of a file whose pages are not known by their checksums."""
    found = Salvaged(lost_changes=lost_changes)
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as source:
            columns = {
                table: tuple(column.name for column in schema_repair.columns(source, table))
                for table in schema_repair.tables(source)
            }
            apply_migrations(target, _steps_of(_noted_version(source), columns, steps), name)
            for table in [table for table in schema_repair.tables(target) if table != "meta"]:
                found.tables[table] = _salvage_table(source, target, table)
            _carve(copy, source, target, found.broken)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        log.warning("Damaged copy not opened", extra={"reason": str(error)})
        apply_migrations(target, _steps_by_rows(copy, steps), name)
        found.tables = {
            table: ExpectedRows(is_exact=False) for table in schema_repair.tables(target) if table != "meta"
        }
        _carve(copy, None, target, found.broken)
    return found


def _salvage_table(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> ExpectedRows:
    shape = schema_repair.columns(target, table)
    try:
        present = [column.name for column in schema_repair.columns(source, table)]
        is_sound = source.execute(f"PRAGMA integrity_check('{table}')").fetchone() == ("ok",)
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        present, is_sound = [], False
    columns = [column for column in shape if column.name in present]
    if not columns or (table in row_shapes.NEVER_CARVED and not is_sound):
        return ExpectedRows(is_exact=False)
    reader = TableReader(source, table, [column.name for column in columns])
    rows = reader.rows()
    if not is_sound:
        is_indexed = _index_of(source, table, columns)
        rows = (row for row in rows if row_shapes.fits(table, columns, row) and is_indexed(row))
    elif table in row_shapes.NEVER_CARVED:
        rows = (row for row in rows if row_shapes.is_possible(table, columns, row))
    kept = insert_rows(target, table, [column.name for column in columns], rows)
    # How many rows a damaged table held, neither it nor its index can be trusted to say.
    counted = _count(source, table) if is_sound and not reader.is_broken else kept
    return ExpectedRows(counted, is_exact=is_sound and not reader.is_broken and kept == counted)


def _index_of(
    source: sqlite3.Connection, table: str, columns: Sequence[schema_repair.Column]
) -> Callable[[Sequence[object]], bool]:
    """Ask the index of a table's keys whether it has a row: a key in which a byte was changed is not there."""
    places = [place for place, column in enumerate(columns) if column.primary]
    where = " AND ".join(f"{columns[place].name} = ?" for place in places)
    sql = f"SELECT 1 FROM {table} INDEXED BY sqlite_autoindex_{table}_1 WHERE {where}"

    def is_indexed(row: Sequence[object]) -> bool:
        try:
            return source.execute(sql, [row[place] for place in places]).fetchone() is not None
        except sqlite3.DatabaseError:  # the index is damaged too, or there is none
            return True

    return is_indexed


def _count(source: sqlite3.Connection, table: str) -> int:
    return int(source.execute(f"SELECT count(*) FROM {table} NOT INDEXED").fetchone()[0])


def rows_in(target: sqlite3.Connection, table: str) -> int:
    return int(target.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


class TableReader:
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
        while ranges and self._failures < MAX_FAILED_READS:
            low, high = ranges.pop()
            if low > high:
                continue
            middle = (low + high) // 2
            for start, end in ((low, middle), (middle + 1, high)):
                last = yield from self._read(start, end, "ASC")
                if last is not None and start < end:
                    ranges.append((last + 1, end))


def insert_rows(
    target: sqlite3.Connection,
    table: str,
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    conflict: str = "IGNORE",
) -> int:
    """Insert what is not there yet, a batch at a time. A row that breaks a rule of the schema is left out."""
    sql = f"INSERT OR {conflict} INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    before = target.total_changes
    stream = iter(rows)
    while batch := list(islice(stream, BATCH)):
        with transaction(target):
            target.executemany(sql, batch)
    return target.total_changes - before


def _carve(copy: Path, source: sqlite3.Connection | None, target: sqlite3.Connection, broken: Sequence[str]) -> None:
    """Take records found page by page, each into the one table whose shape it has, if what it refers to is there.

    They wait in tables of their own until all have been found: a row may stand before the one that it refers to.
    """
    shapes = {table: schema_repair.columns(target, table) for table in schema_repair.tables(target)}
    wanted = [table for table in broken if table not in row_shapes.NEVER_CARVED]
    if not wanted:
        return
    is_indexed = {table: _index_of(source, table, shapes[table]) for table in wanted} if source is not None else {}

    def fitting() -> Iterator[tuple[str, Sequence[object]]]:
        for row in pages.rows(copy):
            fits = [table for table, shape in shapes.items() if row_shapes.is_whole(table, shape, row.values)]
            if len(fits) == 1 and fits[0] in wanted and (not is_indexed or is_indexed[fits[0]](row.values)):
                yield fits[0], row.values

    for table in wanted:
        target.execute(f"CREATE TEMP TABLE carved_{table} AS SELECT * FROM main.{table} WHERE 0")
    stream = fitting()
    while batch := list(islice(stream, BATCH)):
        with transaction(target):
            for table, values in batch:
                target.execute(f"INSERT INTO temp.carved_{table} VALUES ({', '.join('?' * len(values))})", values)
    order = list(dict.fromkeys([*(table for _, _, table in row_shapes.REFERENCES), *wanted]))
    for table in [table for table in order if table in wanted]:
        holds = [
            f"({column} = '' OR {column} IN (SELECT id FROM main.{other}))"
            for name, column, other in row_shapes.REFERENCES
            if name == table and other in shapes
        ]
        where = f"WHERE {' AND '.join(holds)}" if holds else ""
        target.execute(f"INSERT OR IGNORE INTO main.{table} SELECT * FROM temp.carved_{table} {where}")
        target.execute(f"DROP TABLE temp.carved_{table}")
