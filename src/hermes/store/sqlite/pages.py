"""Read rows straight from the pages of a SQLite file.

Follows the published file format: table leaf pages hold cells (size, rowid, record), long records go on in
overflow pages. Nothing here trusts what it reads: a cell that does not add up is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hermes.core.dataclasses import dataclass
from hermes.store.sqlite.page_map_format import TABLE_INNER, TABLE_LEAF, children

Value = None | int | float | str | bytes

_INT_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_MAX_RECORD_BYTES = 64 * 1024 * 1024


class BadCellError(ValueError):
    """These bytes are no record."""


@dataclass(frozen=True, slots=True)
class RawRow:
    page: int
    rowid: int
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class LostRows:
    """The rows of a page that cannot be read, or the one row there whose own bytes are gone."""

    page: int
    is_one: bool = False


def rows(path: Path) -> Iterator[RawRow]:
    """Yield every record of every table leaf page that is not on the list of free pages."""
    with path.open("rb") as file:
        pages = Pages(file)
        free = pages.free()
        for number in range(2, pages.count + 1):
            if number not in free and pages.get(number)[0] == TABLE_LEAF:
                yield from (row for row in _leaf(pages, number) if isinstance(row, RawRow))


def table(pages: Pages, root: int) -> Iterator[RawRow | LostRows]:
    """Yield the rows of the table with this root in their order, and where rows are lost, that they are."""
    waiting, seen = [root], set()
    while waiting:
        number = waiting.pop()
        try:
            page = pages.get(number)
            if number in seen or page[0] not in {TABLE_LEAF, TABLE_INNER}:
                raise BadCellError("no page of a table")
            below = children(page, number) if page[0] == TABLE_INNER else []
        except (BadCellError, struct.error):
            yield LostRows(number)
            continue
        seen.add(number)
        if page[0] == TABLE_LEAF:
            yield from _leaf(pages, number)
        waiting += reversed(below)


def leaves(pages: Pages, root: int) -> Iterator[int]:
    """The pages that hold the rows of the table with this root; one that is broken may be anything."""
    waiting, seen = [root], set()
    while waiting:
        number = waiting.pop()
        try:
            page = pages.get(number) if number not in seen else b"\0"
            below = children(page, number) if page[0] == TABLE_INNER else []
        except (BadCellError, struct.error):
            below = []
        seen.add(number)
        waiting += below
        if not below:
            yield number


class Pages:
    """The pages of a file. Those in ``broken`` are as good as gone."""

    def __init__(self, file: BinaryIO, broken: frozenset[int] = frozenset()) -> None:
        self._file = file
        self._broken = broken
        header = file.read(100)
        size = int.from_bytes(header[16:18], "big")
        self.size = 65536 if size == 1 else size
        if self.size < 512 or self.size & (self.size - 1):
            self.size = 4096
        self.usable = self.size - header[20]
        self._first_free = int.from_bytes(header[32:36], "big")
        file.seek(0, 2)
        self.count = file.tell() // self.size

    def get(self, number: int) -> bytes:
        if not 1 <= number <= self.count or number in self._broken:
            raise BadCellError(f"there is no page {number}")
        self._file.seek((number - 1) * self.size)
        return self._file.read(self.size)

    def free(self) -> set[int]:
        """The pages on the freelist, as far as it can be followed: old content must not come back."""
        found: set[int] = set()
        trunk = self._first_free
        while trunk and trunk not in found and trunk <= self.count:
            found.add(trunk)
            page = self.get(trunk)
            trunk, count = struct.unpack_from(">II", page)
            count = min(count, self.usable // 4 - 2)
            found.update(struct.unpack_from(f">{count}I", page, 8))
        return found


def _leaf(pages: Pages, number: int) -> Iterator[RawRow | LostRows]:
    page = pages.get(number)
    count = int.from_bytes(page[3:5], "big")
    if 8 + 2 * count > pages.usable:
        yield LostRows(number)
        return
    for offset in struct.unpack_from(f">{count}H", page, 8):
        try:
            rowid, record = _cell(pages, page, offset)
            yield RawRow(number, rowid, tuple(_values(record)))
        except (BadCellError, IndexError, struct.error, UnicodeDecodeError):
            yield LostRows(number, is_one=True)


def _cell(pages: Pages, page: bytes, offset: int) -> tuple[int, bytes]:
    size, offset = _varint(page, offset)
    rowid, offset = _varint(page, offset)
    if size > _MAX_RECORD_BYTES:
        raise BadCellError("too long")
    most = pages.usable - 35
    if size <= most:
        local = size
    else:
        least = (pages.usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (pages.usable - 4)
        local = local if local <= most else least
    record = bytearray(page[offset : offset + local])
    following = int.from_bytes(page[offset + local : offset + local + 4], "big") if local < size else 0
    while len(record) < size:
        overflow = pages.get(following)
        following = int.from_bytes(overflow[:4], "big")
        record += overflow[4 : 4 + min(pages.usable - 4, size - len(record))]
    if len(record) != size:
        raise BadCellError("cut short")
    rowid -= 1 << 64 if rowid >= 1 << 63 else 0  # the varint is a signed number
    return rowid, bytes(record)


def _values(record: bytes) -> Iterator[Value]:
    header_end, at = _varint(record, 0)
    if header_end > len(record):
        raise BadCellError("header beyond the record")
    body = header_end
    while at < header_end:
        kind, at = _varint(record, at)
        value, body = _value(record, kind, body)
        yield value
    if body != len(record):
        raise BadCellError("lengths do not add up")


def _value(record: bytes, kind: int, at: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in _INT_SIZES:
        end = at + _INT_SIZES[kind]
        return int.from_bytes(record[at:end], "big", signed=True), end
    if kind == 7:
        return struct.unpack_from(">d", record, at)[0], at + 8
    if kind in {8, 9}:
        return kind - 8, at
    if kind < 12:
        raise BadCellError("a reserved type")
    end = at + (kind - 12) // 2
    if end > len(record):
        raise BadCellError("value beyond the record")
    raw = record[at:end]
    return (raw.decode("utf-8") if kind % 2 else raw), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for step in range(9):
        byte = data[at + step]
        if step == 8:
            return (value << 8) | byte, at + 9
        value = (value << 7) | (byte & 0x7F)
        if byte < 0x80:
            return value, at + step + 1
    raise BadCellError("unending number")
