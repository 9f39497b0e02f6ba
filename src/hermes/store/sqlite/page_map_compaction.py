"""Write a page map anew without what later batches replaced, beside the writer.

The map of a large store takes seconds to read and write. A thread does that in slices, and rests after each so that
the store's threads get the interpreter at once. Batches that were appended meanwhile are added in the end.
"""

from __future__ import annotations

import os
import struct
import threading
import time
from itertools import islice
from pathlib import Path

from hermes.store.sqlite.page_map_format import CHANGES, WHOLE, BatchHead, is_copied, read_head, schema_pages, sealed

ENTRIES_AT_ONCE = 1000
REST_SECONDS = 0.002
_RAW_ENTRY = struct.Struct(">I7s")  # page; its checksum, kind and cells as they stand in the file


class _StoppedError(Exception):
    pass


class PageMapCompaction:
    """Compacts the first ``end`` bytes of a map into a file beside it, from its start on."""

    def __init__(self, path: Path, end: int) -> None:
        self._path = path
        self._end = end
        self._target = path.with_name(path.name + ".tmp")
        self._error: OSError | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name="store-page-map", daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def adopt(self) -> tuple[int, int]:
        """Put the compacted map in place; returns its size, and how much of it is the first batch.

        Only once done, by whoever appends to the map.
        """
        self._thread.join()
        if self._error is not None:
            self.stop()
            raise self._error
        whole_size = self._target.stat().st_size
        with self._path.open("rb") as source, self._target.open("ab") as target:
            source.seek(self._end)
            target.write(source.read())
            target.flush()
            os.fsync(target.fileno())
            size = target.tell()
        os.replace(self._target, self._path)
        return size, whole_size

    def stop(self) -> None:
        """Give up, and remove what was written."""
        self._is_stopped = True
        self._thread.join()
        self._target.unlink(missing_ok=True)

    def _run(self) -> None:
        try:
            self._compact()
        except _StoppedError:
            return
        except OSError as error:
            self._error = error

    def _rest(self) -> None:
        if self._is_stopped:
            raise _StoppedError
        time.sleep(REST_SECONDS)

    def _compact(self) -> None:
        sums: dict[int, bytes] = {}
        copies: dict[int, bytes] = {}
        last: BatchHead | None = None
        with self._path.open("rb") as file:
            data = file.read(self._end)
        at = 0
        while at < len(data):
            head = read_head(data, at)
            if head is None:
                raise OSError("the map of the pages was damaged")
            self._rest()
            if head.kind == WHOLE:
                sums.clear()
                copies.clear()
            entries = _RAW_ENTRY.iter_unpack(memoryview(data)[head.entries_at : head.copies_at])
            while some := dict(islice(entries, ENTRIES_AT_ONCE)):
                sums |= some
                self._rest()
            for start in range(head.copies_at, head.end, 4 + head.page_size):
                copies[int.from_bytes(data[start : start + 4], "big")] = data[start + 4 : start + 4 + head.page_size]
            if head.kind in {WHOLE, CHANGES}:
                last = head
            at = head.end
        if last is None:
            raise OSError("the map of the pages was damaged")
        self._write(last, sums, copies)

    def _write(self, last: BatchHead, sums: dict[int, bytes], copies: dict[int, bytes]) -> None:
        numbers = iter(sorted(number for number in sums if number <= last.pages))
        entries = bytearray()
        while some := list(islice(numbers, ENTRIES_AT_ONCE)):
            entries += b"".join([number.to_bytes(4, "big") + sums[number] for number in some])
            self._rest()
        schema = schema_pages(copies.get(1, b""))
        kept = {
            number: page
            for number, page in copies.items()
            if number <= last.pages and number in sums and is_copied(number, sums[number][4], schema)
        }
        copied = b"".join(number.to_bytes(4, "big") + page for number, page in kept.items())
        descriptor = os.open(self._target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(sealed(last._replace(kind=WHOLE), bytes(entries), copied))
            file.flush()
            os.fsync(descriptor)
