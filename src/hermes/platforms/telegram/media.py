"""Parse attachments of messages, and upload files by form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager

import aiohttp
import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.messages import Attachment, AttachmentKind, Json
from hermes.platforms.shared import files
from hermes.platforms.shared.files import OpenFile

UPLOAD_LIMIT = 50_000_000
PHOTO_LIMIT = 10_000_000
DOWNLOAD_LIMIT = 20_000_000
ALBUM_LIMIT = 10
UPLOAD_SECONDS = 300.0
DOWNLOAD_SECONDS = 300.0

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
    """Parse the files of a message; of a picture the largest size."""
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


def opened(upload: Upload) -> AbstractAsyncContextManager[OpenFile]:
    return files.opened(upload.path, upload.name, limit=UPLOAD_LIMIT, platform="Telegram")


def form(params: Json, uploads: Sequence[tuple[Upload, OpenFile]]) -> aiohttp.FormData:
    """A form as the Bot API reads it: plain values as text, nested ones as JSON."""
    data = aiohttp.FormData(quote_fields=False)  # Telegram shows a percent-encoded name as it is
    for name, value in params.items():
        data.add_field(name, value if isinstance(value, str) else orjson.dumps(value).decode())
    for upload, opened in uploads:
        data.add_field(upload.field, opened.file, filename=upload.name, content_type=upload.mime)
    return data
