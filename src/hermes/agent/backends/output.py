"""Store a command's output in a file, and show its beginning and end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

IN_MEMORY_BYTES = 64 * 1024
KEPT_BYTES = 8 * 1024 * 1024
TAIL_BYTES = 32 * 1024


class Output:
    """Takes bytes as they come. A short output never touches the disk, unless ``keep`` is asked for.

    Of more than KEPT_BYTES the beginning and the last TAIL_BYTES are kept, with a line between them that says so.
    ``mask`` hides secrets in as many bytes as they have: the file holds none once it is whole.
    """

    def __init__(self, path: Path, mask: Callable[[bytes], bytes] = bytes) -> None:
        self.path = path
        self._mask = mask
        self.size = 0  # of what is kept
        self._memory = bytearray()
        self._tail = bytearray()
        self._lost = 0
        self._file = -1
        self._is_closed = False

    async def write(self, chunk: bytes) -> None:
        room = max(0, KEPT_BYTES - self.size)
        head, rest = chunk[:room], chunk[room:]
        if rest:
            self._tail += rest
            excess = max(0, len(self._tail) - TAIL_BYTES)
            self._lost += excess
            del self._tail[:excess]
        if not head:
            return
        self.size += len(head)
        if self._file < 0 and len(self._memory) + len(head) <= IN_MEMORY_BYTES:
            self._memory += head
        else:
            await asyncio.to_thread(self._append, head)

    def _append(self, data: bytes) -> None:
        if self._file < 0:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o600)
            data = bytes(self._memory) + data
            self._memory.clear()
        data = self._mask(data)
        while data:
            data = data[os.write(self._file, data) :]

    async def close(self, *, keep: bool) -> None:
        """No more comes. ``keep`` leaves the whole in the file; otherwise the file goes."""
        if self._is_closed:
            return
        self._is_closed = True
        last = bytes(self._tail)
        if self._lost:
            last = f"\n[… {self._lost:,} bytes were not kept …]\n".encode() + last
        self.size += len(last)
        await asyncio.to_thread(self._finish, last, keep)

    def _finish(self, last: bytes, keep: bool) -> None:
        if last or keep:
            self._append(last)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if not keep:
                self.path.unlink(missing_ok=True)
            elif (whole := self.path.read_bytes()) != (masked := self._mask(whole)):  # one came in two pieces
                self.path.write_bytes(masked)

    async def read(self, offset: int, count: int) -> bytes:
        """Bytes of what is kept so far."""
        if self._memory or not self.size:
            return bytes(self._memory[offset : offset + count])
        return await asyncio.to_thread(read_file, self.path, offset, count)


def read_file(path: Path, offset: int, count: int) -> bytes:
    """Return a piece of a kept output; b'' where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(count)
    except FileNotFoundError:
        return b""


def as_text(raw: bytes) -> str:
    """Whatever bytes a program wrote, as text: what is no UTF-8 is marked, and each line ends alike."""
    return raw.decode("utf-8", "replace").replace("\r\n", "\n")
