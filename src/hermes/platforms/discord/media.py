"""Files both ways: opened to be uploaded, saved when they were downloaded."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import aiohttp

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment

MB = 1_000_000
UPLOAD_LIMIT = 10 * 1024 * 1024  # what every server takes; one with boosts takes more
DOWNLOAD_LIMIT = 100 * MB
ALBUM_LIMIT = 10
UPLOAD_SECONDS = 600.0
DOWNLOAD_SECONDS = 300.0
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """An open file on its way to Discord."""

    file: IO[bytes]
    name: str
    size: int


@asynccontextmanager
async def opened(attachment: Attachment) -> AsyncIterator[Upload]:
    name = attachment.name or os.path.basename(attachment.path)
    try:
        file = await asyncio.to_thread(open, attachment.path, "rb")
    except OSError as error:
        raise RejectedError(f"{name} cannot be read ({error.strerror}), so it was not sent.") from None
    try:
        size = (await asyncio.to_thread(os.stat, file.fileno())).st_size
        if size > UPLOAD_LIMIT:
            raise RejectedError(f"{name} has {size} bytes; Discord takes files up to {UPLOAD_LIMIT}.")
        if not size:
            raise RejectedError(f"{name} is empty, so it was not sent.")
        yield Upload(file, name, size)
    finally:
        file.close()


async def save(response: aiohttp.ClientResponse, into: Path, name: str, limit: int) -> Path:
    """Write a download to a new file in the folder; a broken or too big one leaves nothing behind."""
    path, file = await asyncio.to_thread(_create, into, safe_name(name))
    is_whole = False
    try:
        size = 0
        async for chunk in response.content.iter_chunked(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise RejectedError(f"{name} is larger than {limit} bytes, so it was not fetched.")
            await asyncio.to_thread(file.write, chunk)
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


def _create(into: Path, name: str) -> tuple[Path, IO[Any]]:
    into.mkdir(parents=True, exist_ok=True, mode=0o700)
    stem, ending = os.path.splitext(name)
    for number in range(10_000):
        path = into / (name if number == 0 else f"{stem}-{number}{ending}")
        with suppress(FileExistsError):
            return path, os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    raise RejectedError(f"There are too many files called {name} in {into.name}.")
