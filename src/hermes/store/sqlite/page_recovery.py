"""Read a damaged database by its page checksums: exactly what was written.

Pages that lead to others are put back from their copies, so every table can be followed to its last page. A page that
is not as it was written is not read; how many rows it held is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import BinaryIO

from hermes.core.dataclasses import dataclass
from hermes.store import home
from hermes.store.sqlite import page_map, pages, schema_repair, wal
from hermes.store.sqlite.page_map import PageMap
from hermes.store.sqlite.page_map_format import TABLE_LEAF
from hermes.store.sqlite.row_shapes import Value, is_typed, time_column


@dataclass(slots=True)
class Gap:
    """Rows that are missing between two that are there. ``rows`` is None where nobody knows how many."""

    rows: int | None
    since: float | None
    until: float | None = None


@dataclass(slots=True)
class TableRows:
    """What was read of a table so far; complete when its rows have been read to the end."""

    name: str
    columns: Sequence[schema_repair.Column]
    root: int
    read: int = 0
    gaps: list[Gap] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return all(gap.rows is not None for gap in self.gaps)

    @property
    def lost(self) -> int:
        return sum(gap.rows or 0 for gap in self.gaps)


class UnknownFileError(Exception):
    """The map is not that of this file: an older copy, itself damaged, was put in its place."""


class KnownFile:
    """A copy of a damaged database, put right as far as its map allows. Close it after use."""

    def __init__(self, copy: Path, known: PageMap) -> None:
        self._known = known
        differences = page_map.compare(copy, known)
        if page_map.is_of_another_file(known, differences):
            raise UnknownFileError
        broken = {each.page for each in differences}
        good = {number: known.copies[number] for number in broken & known.copies.keys()}
        for number, page in wal.pages(copy, broken):
            if page_map.sum_of(page, number) == known.sums[number]:
                good[number] = page
        with copy.open("r+b") as file:
            file.truncate(max(copy.stat().st_size, known.count * known.page_size))
            for number, page in good.items():
                os.pwrite(file.fileno(), page, (number - 1) * known.page_size)
        self.lost_changes = wal.lost_frames(copy, salts=known.salts, frames=known.frames)
        self._newer = wal.merge(copy, salts=known.salts, frames=known.frames)
        self._broken = frozenset(broken - good.keys() - self._newer)
        self._file: BinaryIO = copy.open("rb")
        self._pages = pages.Pages(self._file, self._broken)
        self._source = home.read_only(copy)
        try:
            roots = self._source.execute(
                "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
            ).fetchall()
            self.tables = [
                TableRows(name, schema_repair.columns(self._source, name), root)
                for name, root in roots
                if not str(name).startswith("sqlite_")
            ]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._source.close()
        self._file.close()

    def rows(self, table: TableRows) -> Iterator[Sequence[Value]]:
        """The rows of a table, each with as many values as were stored. Notes what is missing in ``table``."""
        if self._is_whole(table.root):
            names = ", ".join(column.name for column in table.columns)
            for values in self._source.execute(f"SELECT {names} FROM {table.name} NOT INDEXED ORDER BY rowid"):
                table.read += 1
                yield values
        else:
            yield from self._rows_around_gaps(table)

    def _is_whole(self, root: int) -> bool:
        """Whether SQLite can read this table: no page of it is broken. Long rows may go on in any overflow page."""
        if self.lost_changes or any(self._known.sums[number].kind == 0 for number in self._broken):
            return False
        return not any(number in self._broken for number in pages.leaves(self._pages, root))

    def _rows_around_gaps(self, table: TableRows) -> Iterator[list[Value]]:
        place = time_column(table.columns)
        gap: Gap | None = None
        last: float | None = None
        for found in pages.table(self._pages, table.root):
            row = found if isinstance(found, pages.RawRow) else None
            values = _values(row, table.columns) if row is not None else []
            # Where changes are lost, a page may be an old one of another table.
            if row is None or (self.lost_changes and not is_typed(table.columns, values)):
                if gap is None:
                    gap = Gap(0, last)
                    table.gaps.append(gap)
                count = self._count(found) if isinstance(found, pages.LostRows) else 1
                gap.rows = None if gap.rows is None or count is None else gap.rows + count
                continue
            at = values[place] if place is not None and place < len(values) else None
            if isinstance(at, int | float):
                last = float(at)
                if gap is not None:
                    gap.until = last
            gap = None
            table.read += 1
            yield values

    def _count(self, lost: pages.LostRows) -> int | None:
        if lost.is_one:
            return 1
        was = self._known.sums.get(lost.page)
        is_known = was is not None and was.kind == TABLE_LEAF and lost.page not in self._newer
        return was.cells if was is not None and is_known else None


def _values(row: pages.RawRow, columns: Sequence[schema_repair.Column]) -> list[Value]:
    """A column that is the rowid itself is stored as NULL."""
    values: list[Value] = list(row.values)
    for place, column in enumerate(columns[: len(values)]):
        if column.primary and column.type.upper() == "INTEGER" and values[place] is None:
            values[place] = row.rowid
    return values
