"""Keep the checksum of every database page, and copies of inner pages.

SQLite notices a page whose structure is broken, and nothing else: a text in which a byte was changed looks like any
other. With this file a page is known to hold what was written or not, and a damaged page whose rows are lost is known
with its number of rows. Pages that only lead to other pages (page 1, the schema, the inner pages of tables) are kept
whole, about one in a hundred, so that what lies below them can always be found.

The file is a log: one batch for the whole database, then one for each checkpoint, which is when pages of the database
change. A batch is appended before SQLite may overwrite the frames of its write-ahead log, so a page that differs from
its checksum and has no frame there was not written by us.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hermes.core.dataclasses import dataclass
from hermes.store.private_files import write_private
from hermes.store.sqlite.page_map_format import (
    CHANGES,
    CLOSED,
    ENTRY,
    MAGIC,
    OPENED,
    TABLE_INNER,
    TABLE_LEAF,
    WHOLE,
    BatchHead,
    is_copied,
    read_head,
    schema_pages,
    sealed,
)

if TYPE_CHECKING:
    from hermes.store.sqlite.page_map_compaction import PageMapCompaction

SUFFIX = ".pages"
_HEADERS = {TABLE_INNER: 12, TABLE_LEAF: 8, 0x02: 12, 0x0A: 8}  # of pages of tables and indexes
_WAL_HEADER, _FRAME_HEADER = 32, 24
_FRAMES_AT_ONCE = 64
_COMPACTED_BYTES = 1 << 20
_ALL = 1 << 62


class PageSum(NamedTuple):
    checksum: int
    kind: int  # the first byte of a page of a table or an index; 0 for overflow and free pages
    cells: int


@dataclass(slots=True)
class PageMap:
    """What the pages of a database were when they were last written."""

    page_size: int
    count: int = 0
    salts: bytes = bytes(8)
    frames: int = 0
    """Of the write-ahead log with these salts so many frames stand in the database."""
    sums: dict[int, PageSum] = field(default_factory=dict)
    copies: dict[int, bytes] = field(default_factory=dict)
    end: int = 0
    """Where the last batch ends that can be read."""
    was_closed: bool = False
    closed_at: int = 0
    """The time of the database's file when it was closed, in nanoseconds."""
    is_whole: bool = True
    """False when a part of the file cannot be read: then it proves nothing about pages that differ from it."""

    @property
    def size(self) -> int:
        return len(self.sums) * ENTRY.size + len(self.copies) * (self.page_size + 4)


def sum_of(page: bytes | memoryview, number: int) -> PageSum:
    """The checksum of all that counts: the gap between a page's pointers and its cells holds nothing."""
    start = 100 if number == 1 else 0
    kind = page[start]
    header = _HEADERS.get(kind)
    if header is None:
        return PageSum(zlib.crc32(page), 0, 0)
    cells, content = struct.unpack_from(">HH", page, start + 3)
    top = start + header + 2 * cells
    if not top <= content <= len(page):
        return PageSum(zlib.crc32(page), kind, cells)
    view = memoryview(page)
    return PageSum(zlib.crc32(view[content:], zlib.crc32(view[:top])), kind, cells)


# Writing


class PageMapFile:
    """Keeps the file of one database. Used by one thread at a time."""

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + SUFFIX)
        self._database = database
        self._wal = database.with_name(database.name + "-wal")
        self._seen: tuple[bytes, int] = (b"", 0)  # the salts of the log, and how many of its frames are noted
        self._schema: frozenset[int] = frozenset()
        self._size = 0
        self._whole_size = 0
        self._compaction: PageMapCompaction | None = None
        self.is_kept = False

    def build(self) -> None:
        """Write the map of a database. Only while no connection of this process is open, and its log is empty."""
        with self._database.open("rb") as file:
            size = int.from_bytes(file.read(100)[16:18], "big")
            size = 65536 if size == 1 else size
            file.seek(0)
            found = PageMap(size)
            while len(page := file.read(size)) == size:
                found.count += 1
                self._take(found, found.count, page)
        self._write(found)

    def go_on(self, known: PageMap) -> None:
        """Append to what was loaded from this file. Only before the first connect."""
        self._schema = schema_pages(known.copies.get(1, b""))
        self._size = self.path.stat().st_size
        self._whole_size = known.size
        self._seen = (b"", 0)
        self.is_kept = True
        if known.end != self._size:  # a kill has cut off the last batch
            self._write(known)

    def _compact_beside(self) -> None:
        """Begin to compact a file that has grown, or take up what was compacted meanwhile."""
        if self._compaction is None:
            if self._size > max(_COMPACTED_BYTES, 4 * self._whole_size):
                from hermes.store.sqlite.page_map_compaction import PageMapCompaction

                self._compaction = PageMapCompaction(self.path, self._size)
        elif self._compaction.is_done:
            compaction, self._compaction = self._compaction, None
            self._size, self._whole_size = compaction.adopt()

    def _stop_compaction(self) -> None:
        if self._compaction is not None:
            compaction, self._compaction = self._compaction, None
            compaction.stop()

    def _write(self, found: PageMap) -> None:
        self._stop_compaction()
        data = _batch(WHOLE, found)
        write_private(self.path, data)
        self._size = self._whole_size = len(data)
        self._seen = (b"", 0)
        self.is_kept = True

    def open(self) -> None:
        """Note that the database is in use: from now on others may find its log, and copy it into the database."""
        self._append(_batch(OPENED, PageMap(0)))

    def note_log(self, up_to: int = _ALL) -> None:
        """Take up the frames of the write-ahead log. Raises OSError; then the map is given up, and built anew later."""
        if not self.is_kept:
            return
        try:
            found = self._changes(up_to)
            if found is None:
                return
            self._append(_batch(CHANGES, found), is_synced=True)
            self._compact_beside()
        except OSError:
            self.drop()
            raise

    def close(self) -> None:
        """Note that every page is in the database, and its log gone. Only after the last connection was closed."""
        self._stop_compaction()
        if self.is_kept and not (self._wal.exists() and self._wal.stat().st_size):
            closed_at = self._database.stat().st_mtime_ns.to_bytes(8, "big")
            self._append(_batch(CLOSED, PageMap(0, salts=closed_at)))
        self.is_kept = False

    def drop(self) -> None:
        self._stop_compaction()
        self.is_kept = False
        self.path.unlink(missing_ok=True)

    def _append(self, data: bytes, *, is_synced: bool = False) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            if os.write(descriptor, data) < len(data):
                raise OSError("the disk is full")
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._size += len(data)

    def _changes(self, up_to: int) -> PageMap | None:
        """The pages of all frames that are committed and not noted yet."""
        try:
            descriptor = os.open(self._wal, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            header = os.pread(descriptor, _WAL_HEADER, 0)
            salts, size = header[16:24], int.from_bytes(header[8:12], "big")
            if not 512 <= size <= 65536:
                if header:
                    raise OSError("the write-ahead log has no header")
                return None
            first = self._seen[1] if self._seen[0] == salts else 0
            frames, count, committed = _committed(descriptor, salts, size, first, up_to)
            if not frames:
                return None
            found = PageMap(size, count, salts, committed)
            for number in sorted(frames):
                self._take(found, number, os.pread(descriptor, size, frames[number] + _FRAME_HEADER))
            self._seen = (salts, committed)
            return found
        finally:
            os.close(descriptor)

    def _take(self, found: PageMap, number: int, page: bytes) -> None:
        found.sums[number] = known = sum_of(page, number)
        if number == 1:
            self._schema = schema_pages(page)
        if is_copied(number, known.kind, self._schema):
            found.copies[number] = page


def _committed(
    descriptor: int, salts: bytes, size: int, first: int, up_to: int = _ALL
) -> tuple[dict[int, int], int, int]:
    """Where the last committed frame of each page stands, the pages of the database then, and the frames in all."""
    found: dict[int, int] = {}
    waiting: dict[int, int] = {}
    count = committed = 0
    number = first
    step = size + _FRAME_HEADER
    header = struct.Struct(f">II8s{step - 16}x")  # page; after a commit the pages of the database, else 0; salts
    while True:
        start = _WAL_HEADER + number * step
        block = os.pread(descriptor, _FRAMES_AT_ONCE * step, start)  # a call for each frame would cost more
        whole = len(block) // step * step
        for place, (page, commit, of_frame) in enumerate(header.iter_unpack(memoryview(block)[:whole])):
            if number >= up_to or of_frame != salts:
                return found, count, committed
            number += 1
            waiting[page] = start + place * step
            if commit:
                found |= waiting
                waiting.clear()
                count, committed = commit, number
        if len(block) < _FRAMES_AT_ONCE * step:
            return found, count, committed


def _batch(kind: int, found: PageMap) -> bytes:
    entries = b"".join(ENTRY.pack(number, *known) for number, known in found.sums.items())
    copies = b"".join(number.to_bytes(4, "big") + page for number, page in found.copies.items())
    return sealed(BatchHead(kind, found.page_size, found.count, found.salts, found.frames), entries, copies)


# Reading


def load(path: Path) -> PageMap | None:
    """Read a map back; None where there is none that can be used. A batch cut off by a kill is passed over."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    known: PageMap | None = None
    at = 0
    while at < len(data):
        batch = _read_batch(data, at)
        if batch is None:
            if known is not None and data.find(MAGIC, at + 1) >= 0:
                known.is_whole = False
            break
        kind, found, at = batch
        if kind == WHOLE:
            known = found
        elif known is not None and kind == CHANGES:
            known.count, known.salts, known.frames = found.count, found.salts, found.frames
            known.sums |= found.sums
            known.copies |= found.copies
        if known is not None:
            known.was_closed, known.end = kind == CLOSED, at
            known.closed_at = int.from_bytes(found.salts, "big") if known.was_closed else 0
    if known is not None:
        # Pages that the database has given up, and copies of pages that have become something else.
        known.sums = {number: page for number, page in known.sums.items() if number <= known.count}
        schema = schema_pages(known.copies.get(1, b""))
        known.copies = {
            number: page
            for number, page in known.copies.items()
            if number in known.sums and is_copied(number, known.sums[number].kind, schema)
        }
    return known


def _read_batch(data: bytes, at: int) -> tuple[int, PageMap, int] | None:
    head = read_head(data, at)
    if head is None:
        return None
    found = PageMap(head.page_size, head.pages, head.salts, head.frames)
    for number, *values in ENTRY.iter_unpack(memoryview(data)[head.entries_at : head.copies_at]):
        found.sums[number] = PageSum(*values)
    for start in range(head.copies_at, head.end, 4 + head.page_size):
        found.copies[int.from_bytes(data[start : start + 4], "big")] = data[start + 4 : start + 4 + head.page_size]
    return head.kind, found, head.end


# Comparing


def is_current(database: Path, known: PageMap) -> bool:
    """Whether nobody has written into a database since it was closed with this map, as far as its file tells."""
    found = database.stat()
    is_as_closed = known.was_closed and found.st_mtime_ns == known.closed_at
    return known.is_whole and is_as_closed and found.st_size == known.count * known.page_size


@dataclass(frozen=True, slots=True)
class Difference:
    """A page that is not as it was written. ``now`` is None where the file ends before it."""

    page: int
    was: PageSum
    now: PageSum | None


def compare(database: Path, known: PageMap, newer: Iterable[int] = ()) -> list[Difference]:
    """Find pages that differ from what was written; ``newer`` and free ones do not count. Before the first connect."""
    passed = set(newer)
    found = []
    first = b""
    with database.open("rb") as file:
        for number in range(1, known.count + 1):
            page = file.read(known.page_size)
            if number == 1:
                first = page
            was = known.sums.get(number)
            if was is None or number in passed:
                continue
            now = sum_of(page, number) if len(page) == known.page_size else None
            if now != was:
                found.append(Difference(number, was, now))
        free = free_pages(file.fileno(), first, known, {each.page for each in found})
    return [each for each in found if each.page not in free]


def free_pages(descriptor: int, first: bytes, known: PageMap, broken: set[int]) -> set[int]:
    """The pages that the list of free pages names, as far as it can be trusted."""
    if 1 in broken or len(first) < 100:
        first = known.copies.get(1, bytes(100))
    found: set[int] = set()
    trunk = int.from_bytes(first[32:36], "big")
    while trunk and trunk not in found and trunk not in broken:
        found.add(trunk)
        page = os.pread(descriptor, known.page_size, (trunk - 1) * known.page_size)
        if len(page) < known.page_size:
            break
        trunk, count = struct.unpack_from(">II", page)
        found.update(struct.unpack_from(f">{min(count, known.page_size // 4 - 2)}I", page, 8))
    return found


def pages_in_log(database: Path, known: PageMap) -> set[int] | None:
    """The pages that have a committed frame in the write-ahead log.

    None when the log has lost frames that are in the database already: SQLite would copy the older ones over them.
    """
    try:
        descriptor = os.open(database.with_name(database.name + "-wal"), os.O_RDONLY)
    except FileNotFoundError:
        return set()
    try:
        header = os.pread(descriptor, _WAL_HEADER, 0)
        size = int.from_bytes(header[8:12], "big")
        if len(header) < _WAL_HEADER or not 512 <= size <= 65536:
            return set()
        found, _, frames = _committed(descriptor, header[16:24], size, 0)
        return None if known.salts == header[16:24] and frames < known.frames else set(found)
    finally:
        os.close(descriptor)


def was_written_by_sqlite(database: Path, known: PageMap, found: Iterable[Difference]) -> bool:
    """Whether a program that knows the format has made these differences in a database that is sound.

    A row that was added or deleted changes the number of cells in a table and in each of its indexes. Damage does not
    do that and leaves both in agreement. Nor does it set another journal mode or another size in the header.
    """
    changed = [each for each in found if each.now is not None]
    if any((each.was.kind, each.was.cells) != (each.now.kind, each.now.cells) for each in changed if each.now):
        return True
    with database.open("rb") as file:
        header = file.read(100)
    kept = known.copies.get(1, b"")
    return header[18:20] != kept[18:20] or header[24:48] != kept[24:48]


def is_of_another_file(known: PageMap, found: Sequence[Difference]) -> bool:
    """Whether most pages hold something else that is in order: then they were not damaged, but the file replaced."""
    in_order = [each for each in found if each.now is not None and each.now.kind and each.now.kind == each.was.kind]
    return len(in_order) > known.count // 2
