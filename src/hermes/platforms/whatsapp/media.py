"""Hand files to the bridge and back by path, on one machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from hermes.core.errors import RejectedError
from hermes.core.i18n.failures import sentence
from hermes.core.messages import Attachment
from hermes.platforms.shared.files import CHUNK_BYTES, opened, save

UPLOAD_LIMIT = 100_000_000
DOWNLOAD_LIMIT = 100_000_000


async def checked(file: Attachment) -> Attachment:
    """The file with its real size and an absolute path. Raises RejectedError, which names it."""
    async with opened(file.path, file.name, limit=UPLOAD_LIMIT, platform="WhatsApp") as found:
        return replace(file, name=found.name, size=found.size)


def refuse_large(file: Attachment) -> None:
    if file.size > DOWNLOAD_LIMIT:
        name = file.name or "The file"
        raise RejectedError(f"{name} has {file.size} bytes; at most {DOWNLOAD_LIMIT} are fetched.")


async def taken(found: Path, into: Path, name: str, within: Path) -> Path:
    """Put what the bridge fetched where it is wanted, under the name that its sender gave it."""
    file = await asyncio.to_thread(_opened, found, name, within)
    try:
        return await save(_pieces(file), into, name, DOWNLOAD_LIMIT)
    finally:
        file.close()
        await asyncio.to_thread(found.unlink, missing_ok=True)


def _opened(found: Path, name: str, within: Path) -> IO[bytes]:
    try:
        place = found.resolve(strict=True)  # strict: a loop of links is refused by every Python
        if place.is_relative_to(within.resolve()):
            return place.open("rb")
    except FileNotFoundError:
        raise RejectedError(f"{name} was fetched, and is gone again.") from None
    except (OSError, RuntimeError) as error:  # before Python 3.13 a loop of links is a RuntimeError
        raise RejectedError(f"{name} was fetched, and cannot be read: {sentence(str(error))}") from None
    raise RejectedError(f"{name} lies where the bridge has no business, so it was not taken.")


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, CHUNK_BYTES):
        yield piece
