"""Encrypt and decrypt files for the CDN (AES-128-ECB)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import RejectedError
from hermes.core.messages import Attachment, AttachmentKind, Json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

UPLOAD_LIMIT = 25_000_000  # it is locked in memory
DOWNLOAD_LIMIT = 100 * 1024 * 1024
BLOCK = 16

# Hosts that a full address may lead to, besides the configured ones: nobody may make us look around at home.
KNOWN_HOSTS = frozenset(
    {
        "novac2c.cdn.weixin.qq.com",
        "ilinkai.weixin.qq.com",
        "wx.qlogo.cn",
        "thirdwx.qlogo.cn",
        "res.wx.qq.com",
        "mmbiz.qpic.cn",
        "mmbiz.qlogo.cn",
    }
)

_FIELDS = {
    2: ("image_item", AttachmentKind.IMAGE, "image/jpeg"),
    3: ("voice_item", AttachmentKind.VOICE, "audio/silk"),
    4: ("file_item", AttachmentKind.DOCUMENT, ""),
    5: ("video_item", AttachmentKind.VIDEO, "video/mp4"),
}
_NAMES = {
    AttachmentKind.IMAGE: "picture.jpg",
    AttachmentKind.VOICE: "voice.silk",
    AttachmentKind.VIDEO: "video.mp4",
    AttachmentKind.DOCUMENT: "file",
}
_VOICE_MIMES = {5: ("audio/amr", "voice.amr"), 7: ("audio/mpeg", "voice.mp3"), 8: ("audio/ogg", "voice.ogg")}

# What kinds go out as, by the upload's number and the item's; anything else is a file.
_UPLOADED = {AttachmentKind.IMAGE: 1, AttachmentKind.VIDEO: 2}
AS_FILE = 3


@dataclass(frozen=True, slots=True)
class Handle:
    """Where an inbound file lies and what opens it; ``key`` '' means that it is not locked."""

    param: str
    key: str = ""
    url: str = ""

    def __str__(self) -> str:
        return orjson.dumps([self.param, self.key, self.url]).decode()

    @classmethod
    def of(cls, text: str) -> Handle:
        try:
            param, key, url = orjson.loads(text)
        except (orjson.JSONDecodeError, ValueError, TypeError):
            raise RejectedError("This is not a file that Weixin handed out.") from None
        return cls(str(param), str(key), str(url))


def attachment(item: Json) -> Attachment | None:
    """The file of an item. Speech that was written down needs none."""
    known = _FIELDS.get(item.get("type") or 0)
    if known is None:
        return None
    field, kind, mime = known
    content = item.get(field) or {}
    if kind is AttachmentKind.VOICE and content.get("text"):
        return None
    place = content.get("media") or {}
    handle = Handle(
        str(place.get("encrypt_query_param") or ""),
        _key_text(content.get("aeskey"), place.get("aes_key")),
        str(place.get("full_url") or content.get("url") or ""),
    )
    if not handle.param and not handle.url:
        raise ValueError(f"{field} does not say where the file is")
    mime, name = _VOICE_MIMES.get(content.get("encode_type") or 0, (mime, "")) if field == "voice_item" else (mime, "")
    name = name or str(content.get("file_name") or _NAMES[kind])
    length = str(content.get("len") or "")
    size = int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0
    return Attachment(kind, file_id=str(handle), name=name, mime=mime, size=size)


def _key_text(hex_key: Any, coded: Any) -> str:
    if isinstance(hex_key, str) and hex_key:
        return hex_key
    return f"b64:{coded}" if isinstance(coded, str) and coded else ""


def key_of(text: str) -> bytes:
    """The 16 bytes of a key in any of its spellings. Raises RejectedError for what is none."""
    try:
        if not text.startswith("b64:"):
            key = bytes.fromhex(text)
        else:
            key = base64.b64decode(text.removeprefix("b64:"), validate=True)
            if len(key) == 2 * BLOCK:
                key = bytes.fromhex(key.decode("ascii"))
    except (ValueError, binascii.Error):
        key = b""
    if len(key) != BLOCK:
        raise RejectedError("The key of this file is none that we know how to use.")
    return key


def sent_key(key: bytes) -> str:
    """As the phone wants it: base64 of the 32 hex letters. Of the bytes themselves it shows a grey box."""
    return base64.b64encode(key.hex().encode()).decode()


# The lock


def _cipher(key: bytes) -> Any:
    """Imported when used: a gateway without files never needs it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - the CDN's choice, not ours


def lock(data: bytes, key: bytes) -> bytes:
    fill = BLOCK - len(data) % BLOCK
    encryptor = _cipher(key).encryptor()
    return bytes(encryptor.update(data + bytes([fill]) * fill) + encryptor.finalize())


class Unlocked:
    """Takes a locked file piece by piece and gives it back open; the last block is kept until the end."""

    def __init__(self, key: bytes) -> None:
        self._decryptor: CipherContext = _cipher(key).decryptor()
        self._held = b""

    def update(self, piece: bytes) -> bytes:
        opened = self._held + self._decryptor.update(piece)
        cut = max(0, len(opened) - BLOCK)
        self._held = opened[cut:]
        return opened[:cut]

    def finish(self) -> bytes:
        """The rest. Raises RejectedError when key and file do not belong together."""
        try:
            last = self._held + self._decryptor.finalize()
        except ValueError:
            last = b""
        fill = last[-1] if last else 0
        if len(last) != BLOCK or not 1 <= fill <= BLOCK or last[-fill:] != bytes([fill]) * fill:
            raise RejectedError("The file cannot be opened with the key that came with it.")
        return last[:-fill]


class Plain:
    """For a picture that came without a key."""

    def update(self, piece: bytes) -> bytes:
        return piece

    def finish(self) -> bytes:
        return b""


def opener(key: str) -> Unlocked | Plain:
    return Unlocked(key_of(key)) if key else Plain()


# Going out


@dataclass(frozen=True, slots=True)
class Package:
    """A file that is locked and ready to be uploaded."""

    name: str
    kind: int
    size: int
    md5: str
    file_key: str
    key: bytes
    locked: bytes

    def wanted(self, peer: str) -> Json:
        """The request for a place to upload it to."""
        return {
            "filekey": self.file_key,
            "media_type": self.kind,
            "to_user_id": peer,
            "rawsize": self.size,
            "rawfilemd5": self.md5,
            "filesize": len(self.locked),
            "no_need_thumb": True,
            "aeskey": self.key.hex(),
        }

    def item(self, param: str) -> Json:
        """The item of the message that shows it, once it lies at ``param``."""
        place = {"encrypt_query_param": param, "aes_key": sent_key(self.key), "encrypt_type": 1}
        match self.kind:
            case 1:
                return {"type": 2, "image_item": {"media": place, "mid_size": len(self.locked)}}
            case 2:
                video = {"media": place, "video_size": len(self.locked), "play_length": 0, "video_md5": self.md5}
                return {"type": 5, "video_item": video}
            case _:
                file = {"media": place, "file_name": self.name, "len": str(self.size)}
                return {"type": 4, "file_item": file}


async def packed(file: Attachment) -> Package:
    """Read and lock it. Raises RejectedError, which names the file."""
    return await asyncio.to_thread(_packed, file)


def _packed(file: Attachment) -> Package:
    name = file.name or os.path.basename(file.path)
    try:
        size = os.stat(file.path).st_size
        if size > UPLOAD_LIMIT:
            raise RejectedError(f"{name} has {size} bytes; at most {UPLOAD_LIMIT} can be sent on Weixin.")
        data = Path(file.path).read_bytes()
    except OSError as error:
        raise RejectedError(f"{name} cannot be read ({error.strerror}), so it was not sent.") from None
    key = secrets.token_bytes(BLOCK)
    digest = hashlib.md5(data).hexdigest()  # noqa: S324 - the upload asks for it
    kind = _UPLOADED.get(file.kind, AS_FILE)
    return Package(name, kind, len(data), digest, secrets.token_hex(BLOCK), key, lock(data, key))


# Coming in


def download_url(handle: Handle, cdn: str, also: str) -> str:
    """Where to fetch it: the full address if it is one of Weixin's, else the one made from its parameter."""
    if handle.url and _is_known(handle.url, (cdn, also)):
        return handle.url
    if not handle.param:
        raise RejectedError("The file lies at an address that is not Weixin's, so it was not fetched.")
    return f"{cdn}/download?encrypted_query_param={quote(handle.param, safe='')}"


def upload_url(answer: Json, package: Package, cdn: str, also: str) -> str:
    """Where to put it, from the answer to ``wanted``. Raises RejectedError when it names no place."""
    full, param = answer.get("upload_full_url"), answer.get("upload_param")
    if isinstance(full, str) and full and _is_known(full, (cdn, also)):
        return full
    if not isinstance(param, str) or not param:
        raise RejectedError(f"Weixin gave no place to upload {package.name} to.")
    return f"{cdn}/upload?encrypted_query_param={quote(param, safe='')}&filekey={quote(package.file_key, safe='')}"


def _is_known(url: str, ours: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if any((parts.scheme, host, port) == (own.scheme, own.hostname, own.port) for own in map(urlsplit, ours)):
        return True
    return parts.scheme == "https" and host in KNOWN_HOSTS and port in (None, 443)


async def unlocked(pieces: AsyncIterable[bytes], key: str) -> AsyncGenerator[bytes, None]:
    """A download as it was before it was locked. Raises RejectedError when key and file do not belong together."""
    lock_of = opener(key)
    async for piece in pieces:
        yield await asyncio.to_thread(lock_of.update, piece)
    yield lock_of.finish()
