"""Files both ways: what a message carries, uploads by form, downloads to disk."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import aiohttp
import orjson

from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind, Json

UPLOAD_LIMIT = 50_000_000
PHOTO_LIMIT = 10_000_000
DOWNLOAD_LIMIT = 20_000_000
UPLOAD_SECONDS = 300.0
DOWNLOAD_SECONDS = 300.0
_CHUNK = 256 * 1024

# The field of each method that holds the file.
FIELDS = {
    "sendPhoto": "photo",
    "sendVoice": "voice",
    "sendAudio": "audio",
    "sendVideo": "video",
    "sendDocument": "document",
}
_METHODS = {
    AttachmentKind.IMAGE: "sendPhoto",
    AttachmentKind.VOICE: "sendVoice",
    AttachmentKind.AUDIO: "sendAudio",
    AttachmentKind.VIDEO: "sendVideo",
    AttachmentKind.DOCUMENT: "sendDocument",
}
RETRY_AS_DOCUMENT = frozenset(FIELDS) - {"sendDocument"}
NOT_AS_THIS_KIND = ("photo_", "image_process_failed", "voice_messages_forbidden", "wrong file type", "wrong type of")

_IN_MESSAGE = {
    "document": AttachmentKind.DOCUMENT,
    "voice": AttachmentKind.VOICE,
    "audio": AttachmentKind.AUDIO,
    "video": AttachmentKind.VIDEO,
    "video_note": AttachmentKind.VIDEO,
    "animation": AttachmentKind.VIDEO,
}


def attachments(message: Json) -> Iterator[Attachment]:
    """What a message carries; of a picture the largest size."""
    if message.get("photo"):
        yield _attachment(AttachmentKind.IMAGE, message["photo"][-1], mime="image/jpeg")
    sticker = message.get("sticker")
    if sticker and not sticker.get("is_animated") and not sticker.get("is_video"):
        yield _attachment(AttachmentKind.IMAGE, sticker, mime="image/webp")
    for name, kind in _IN_MESSAGE.items():
        # An animation comes with a copy of itself as a document.
        if message.get(name) and not (name == "document" and "animation" in message):
            yield _attachment(kind, message[name])


def _attachment(kind: AttachmentKind, file: Json, mime: str = "") -> Attachment:
    return Attachment(
        kind=kind,
        file_id=str(file["file_id"]),
        name=str(file.get("file_name") or ""),
        mime=str(file.get("mime_type") or mime),
        size=int(file.get("file_size") or 0),
    )


@dataclass(frozen=True, slots=True)
class Upload:
    path: str
    name: str
    mime: str


def sending(attachment: Attachment) -> tuple[str, Upload | None]:
    """The method that sends a file, and what to upload; nothing for one that Telegram already has."""
    method = _METHODS[attachment.kind]
    if not attachment.path:
        return method, None
    name = attachment.name or os.path.basename(attachment.path)
    if method == "sendPhoto" and attachment.size > PHOTO_LIMIT:
        method = "sendDocument"
    return method, Upload(attachment.path, name, attachment.mime or "application/octet-stream")


@asynccontextmanager
async def opened(upload: Upload) -> AsyncIterator[IO[bytes]]:
    try:
        file = await asyncio.to_thread(open, upload.path, "rb")
    except OSError as error:
        raise RejectedError(f"{upload.name} cannot be read ({error.strerror}), so it was not sent.") from None
    try:
        size = (await asyncio.to_thread(os.stat, file.fileno())).st_size
        if size > UPLOAD_LIMIT:
            raise RejectedError(f"{upload.name} has {size} bytes; Telegram takes files up to {UPLOAD_LIMIT}.")
        yield file
    finally:
        file.close()


def form(method: str, params: Json, upload: Upload, file: IO[bytes]) -> aiohttp.FormData:
    """A form as the Bot API reads it: plain values as text, nested ones as JSON."""
    data = aiohttp.FormData(quote_fields=False)  # Telegram shows a percent-encoded name as it is
    for name, value in params.items():
        data.add_field(name, value if isinstance(value, str) else orjson.dumps(value).decode())
    data.add_field(FIELDS[method], file, filename=upload.name, content_type=upload.mime)
    return data


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
