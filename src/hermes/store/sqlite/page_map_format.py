"""The format of a page map: its batches, and which pages of a database are kept whole in it."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple

TABLE_LEAF, TABLE_INNER = 0x0D, 0x05

MAGIC = b"HermesPG"
_HEAD = struct.Struct(">8sBII8sIIII")
"""Magic, kind, page size, pages of the database, salts of the log, frames of it, entries, copies, checksum."""
ENTRY = struct.Struct(">IIBH")  # page, checksum, kind of page, cells
WHOLE, CHANGES, OPENED, CLOSED = range(1, 5)


class BatchHead(NamedTuple):
    """The head of a batch of the file, and where its parts stand there."""

    kind: int
    page_size: int
    pages: int
    salts: bytes
    frames: int
    entries_at: int = 0
    copies_at: int = 0
    end: int = 0


def sealed(head: BatchHead, entries: bytes, copies: bytes) -> bytes:
    """A batch with its head and checksum, from entries and copies as they stand in the file."""
    counts = (len(entries) // ENTRY.size, len(copies) // (4 + head.page_size))
    values = (MAGIC, head.kind, head.page_size, head.pages, head.salts, head.frames, *counts)
    checksum = zlib.crc32(copies, zlib.crc32(entries, zlib.crc32(_HEAD.pack(*values, 0))))
    return _HEAD.pack(*values, checksum) + entries + copies


def read_head(data: bytes, at: int) -> BatchHead | None:
    """The batch that begins here; None where it is cut off or damaged."""
    if len(data) - at < _HEAD.size:
        return None
    magic, kind, size, count, salts, frames, entries, copies, checksum = _HEAD.unpack_from(data, at)
    first = at + _HEAD.size
    middle = first + entries * ENTRY.size
    end = middle + copies * (4 + size)
    if magic != MAGIC or end > len(data):
        return None
    head = _HEAD.pack(magic, kind, size, count, salts, frames, entries, copies, 0)
    if zlib.crc32(memoryview(data)[first:end], zlib.crc32(head)) != checksum:
        return None
    return BatchHead(kind, size, count, salts, frames, first, middle, end)


def children(page: bytes, number: int) -> list[int]:
    """The pages an inner page of a table leads to, in the order of their rows."""
    start = 100 if number == 1 else 0
    (cells,) = struct.unpack_from(">H", page, start + 3)
    offsets = struct.unpack_from(f">{cells}H", page, start + 12)
    found = [struct.unpack_from(">I", page, offset)[0] for offset in offsets]
    return [*found, struct.unpack_from(">I", page, start + 8)[0]]


def is_copied(number: int, kind: int, schema: frozenset[int]) -> bool:
    """Whether a page leads to others, so that it is kept whole."""
    return number == 1 or number in schema or kind == TABLE_INNER


def schema_pages(first: bytes) -> frozenset[int]:
    """The pages that name the tables: all that page 1 leads to."""
    return frozenset(children(first, 1)) if first and first[100] == TABLE_INNER else frozenset()
