"""Open and measure outgoing files, save incoming ones.

With ``http_errors``, all that platforms share besides ``hermes.core``, which does no I/O. Other packages may use both.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

from hermes.core.dataclasses import dataclass
from hermes.core.errors import RejectedError

CHUNK_BYTES = 256 * 1024
"""Large enough that a thread is worth its while, small enough that many downloads fit into memory."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    file: BufferedReader
    name: str
    size: int


@asynccontextmanager
async def opened(path: str, name: str, *, limit: int, platform: str) -> AsyncIterator[OpenFile]:
    """A file that is to be sent. One that is gone, empty or larger than ``limit`` raises a RejectedError naming it."""
    name = name or os.path.basename(path)
    try:
        file = await asyncio.to_thread(open, path, "rb")
    except OSError as error:
        raise RejectedError(f"{name} cannot be read ({error.strerror}), so it was not sent.") from None
    try:
        size = (await asyncio.to_thread(os.stat, file.fileno())).st_size
        if size > limit:
            raise RejectedError(f"{name} has {size} bytes; {platform} takes files up to {limit}.")
        if not size:
            raise RejectedError(f"{name} is empty, so it was not sent.")
        yield OpenFile(file, name, size)
    finally:
        file.close()


async def save(pieces: AsyncIterable[bytes], into: Path, name: str, limit: int) -> Path:
    """Write a download to a new file in the folder; a broken or too big one leaves nothing behind."""
    path, file = await asyncio.to_thread(_create, into, safe_name(name))
    is_whole = False
    try:
        size = 0
        async for piece in pieces:
            size += len(piece)
            if size > limit:
                raise RejectedError(f"{name} is larger than {limit} bytes, so it was not fetched.")
            await asyncio.to_thread(file.write, piece)
        is_whole = True
    finally:
        file.close()
        if not is_whole:
            with suppress(FileNotFoundError):  # somebody else tidied the folder
                path.unlink()
    return path


def safe_name(name: str) -> str:
    """A name that stays in its folder: no separators, no leading dot, nothing unprintable, not too long."""
    base = re.split(r"[\\/]", name)[-1]
    kept = "".join(letter if letter.isprintable() and letter not in '<>:"|?*' else "_" for letter in base).strip()
    stem, ending = os.path.splitext(kept.lstrip("."))
    return f"{stem[:80] or 'file'}{ending[:20]}"


def _create(into: Path, name: str) -> tuple[Path, IO[bytes]]:
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    stem, ending = os.path.splitext(name)
    for number in range(10_000):
        path = into / (f"{stem}-{number}{ending}" if number else name)
        with suppress(FileExistsError):
            return path, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    raise RejectedError(f"There are too many files called {name} in {into.name}.")
