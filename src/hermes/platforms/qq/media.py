"""Upload files whole or in parts; download without leaking the token."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Attachment, AttachmentKind
from hermes.platforms.shared import files

MB = 1_000_000
UPLOAD_LIMIT = 100 * MB
DOWNLOAD_LIMIT = 100 * MB
IN_ONE_PIECE = 8 * MB  # more is sent in parts
MD5_HEAD = 10_002_432
UPLOAD_SECONDS = 300.0
DOWNLOAD_SECONDS = 300.0
MAX_PART_WAIT_SECONDS = 600.0
IMAGE, VIDEO, VOICE, FILE = 1, 2, 3, 4
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
        while chunk := self.file.read(files.CHUNK_BYTES):
            md5.update(chunk)
            sha1.update(chunk)
            head.update(chunk[:left])
            left = max(0, left - len(chunk))
        return {"md5": md5.hexdigest(), "sha1": sha1.hexdigest(), "md5_10m": head.hexdigest()}


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@asynccontextmanager
async def opened(attachment: Attachment) -> AsyncIterator[Upload]:
    async with files.opened(attachment.path, attachment.name, limit=UPLOAD_LIMIT, platform="QQ") as opened:
        yield Upload(opened.file, opened.name, opened.size, type_of(attachment, opened.size))


def type_of(attachment: Attachment, size: int) -> int:
    """The kind as which QQ shows a file; whatever it cannot show as such is a file like any other."""
    kind, mimes = _TAKEN.get(attachment.kind, (FILE, ()))
    return kind if attachment.mime in mimes and size <= _LIMITS[kind] else FILE


def is_own(host: str, api_host: str) -> bool:
    """Tell whether a host is QQ's own and may see the token."""
    return host == api_host or f".{host}".endswith(_OWN_HOSTS)
