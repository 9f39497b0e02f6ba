"""Files both ways: what a message carries, uploads by form, downloads to disk."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
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
ALBUM_LIMIT = 10
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
# What these methods take; anything else they would refuse, or show as something it is not.
_TAKES = {
    "sendAudio": ("audio/mpeg", "audio/mp4", "audio/x-m4a"),
    "sendVideo": ("video/mp4",),
    "sendPhoto": ("image/jpeg", "image/png", "image/webp"),
    "sendVoice": ("audio/ogg", "audio/mpeg", "audio/mp4", "audio/x-m4a"),
}
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
    """A file to send along, under the name of its field."""

    path: str
    name: str
    mime: str
    field: str


def sending(attachment: Attachment) -> tuple[str, Upload | None]:
    """The method that sends a file, and what to upload; nothing for one that Telegram already has."""
    method = _METHODS[attachment.kind]
    if not attachment.path:
        return method, None
    if not _is_taken(method, attachment):
        method = "sendDocument"
    return method, _upload(attachment, FIELDS[method])


def album(files: Sequence[Attachment]) -> tuple[list[Json], tuple[Upload, ...]]:
    """The entries of ``sendMediaGroup`` and what to upload. Where one must be a document, all are: it takes no mix."""
    kinds = [FIELDS[_METHODS[file.kind]] for file in files]
    if not all(_is_taken(_METHODS[file.kind], file) for file in files):
        kinds = ["document"] * len(files)
    entries: list[Json] = [{"type": kind, "media": f"attach://file{n}"} for n, kind in enumerate(kinds)]
    return entries, tuple(_upload(file, f"file{number}") for number, file in enumerate(files))


def _is_taken(method: str, file: Attachment) -> bool:
    if method == "sendPhoto" and file.size > PHOTO_LIMIT:
        return False
    return not file.mime or method not in _TAKES or file.mime in _TAKES[method]


def _upload(file: Attachment, field: str) -> Upload:
    name = file.name or os.path.basename(file.path)
    return Upload(file.path, name, file.mime or "application/octet-stream", field)


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


def form(params: Json, files: Sequence[tuple[Upload, IO[bytes]]]) -> aiohttp.FormData:
    """A form as the Bot API reads it: plain values as text, nested ones as JSON."""
    data = aiohttp.FormData(quote_fields=False)  # Telegram shows a percent-encoded name as it is
    for name, value in params.items():
        data.add_field(name, value if isinstance(value, str) else orjson.dumps(value).decode())
    for upload, file in files:
        data.add_field(upload.field, file, filename=upload.name, content_type=upload.mime)
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
