"""Files both ways: uploads in one piece or in parts, downloads to disk."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import aiohttp

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind

MB = 1_000_000
UPLOAD_LIMIT = 100 * MB
DOWNLOAD_LIMIT = 100 * MB
IN_ONE_PIECE = 8 * MB  # more is sent in parts
MD5_HEAD = 10_002_432
UPLOAD_SECONDS = 300.0
DOWNLOAD_SECONDS = 300.0
LONGEST_PART_WAIT = 600.0
IMAGE, VIDEO, VOICE, FILE = 1, 2, 3, 4
_CHUNK = 256 * 1024
_LIMITS = {IMAGE: 30 * MB, VIDEO: 100 * MB, VOICE: 20 * MB, FILE: UPLOAD_LIMIT}
_TAKEN = {
    AttachmentKind.IMAGE: (IMAGE, ("image/png", "image/jpeg")),
    AttachmentKind.VIDEO: (VIDEO, ("video/mp4",)),
    AttachmentKind.VOICE: (VOICE, ("audio/wav", "audio/x-wav", "audio/mpeg", "audio/silk")),
}
_OWN_HOSTS = (".qq.com", ".qq.com.cn", ".qpic.cn")


@dataclass(frozen=True, slots=True)
class Upload:
    """An open file on its way to QQ."""

    file: IO[bytes]
    name: str
    size: int
    type: int

    def whole(self) -> str:
        self.file.seek(0)
        return base64.b64encode(self.file.read()).decode()

    def part(self, start: int, length: int) -> bytes:
        self.file.seek(start)
        return self.file.read(length)

    def digests(self) -> dict[str, str]:
        """MD5 and SHA-1 as QQ wants them: it names files by them, nothing here is kept secret by them."""
        md5, sha1, head = (hashlib.new(name, usedforsecurity=False) for name in ("md5", "sha1", "md5"))
        self.file.seek(0)
        left = MD5_HEAD
        while chunk := self.file.read(_CHUNK):
            md5.update(chunk)
            sha1.update(chunk)
            head.update(chunk[:left])
            left = max(0, left - len(chunk))
        return {"md5": md5.hexdigest(), "sha1": sha1.hexdigest(), "md5_10m": head.hexdigest()}


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


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
            raise RejectedError(f"{name} has {size} bytes; QQ takes files up to {UPLOAD_LIMIT}.")
        if not size:
            raise RejectedError(f"{name} is empty, so it was not sent.")
        yield Upload(file, name, size, type_of(attachment, size))
    finally:
        file.close()


def type_of(attachment: Attachment, size: int) -> int:
    """The kind as which QQ shows a file; whatever it cannot show as such is a file like any other."""
    kind, mimes = _TAKEN.get(attachment.kind, (FILE, ()))
    return kind if attachment.mime in mimes and size <= _LIMITS[kind] else FILE


def is_own(host: str, api_host: str) -> bool:
    """Whether the token may be shown to this host: only QQ itself may see it."""
    return host == api_host or f".{host}".endswith(_OWN_HOSTS)


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
