"""Map the bridge's refusals to errors and our messages to requests. Pure; ``parse`` reads what came in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.errors import (
    ConflictError,
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.messages import Attachment, AttachmentKind, Json, OutboundMessage
from hermes.core.text import storable
from hermes.platforms.whatsapp.config import LINK, person_id
from hermes.platforms.whatsapp.markdown import render

TEXT_LIMIT = 4096  # WhatsApp takes about 65,000; longer ones are hard to read on a phone
MAX_TEXT_CHARS = 60_000
CAPTION_LIMIT = 1024
INLINE_MEDIA_BYTES = 16_000_000  # a picture, film or sound that is larger goes as a file
DEFAULT_WAIT_SECONDS = 60.0
RESTART = 515

_JID = re.compile(r"([0-9A-Za-z._-]{1,64})(?::[0-9]{1,5})?@([a-z][a-z.]{1,20})")
_MENTION = re.compile(r"(?<![\w@])@\+?([0-9]{6,15})(?![\w@])")
_PHONES = frozenset({"s.whatsapp.net", "c.us"})


def decode(body: bytes) -> Any:
    """JSON as it was meant: half a surrogate pair, which people can write, spoils one letter and not the batch."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body.decode("utf-8", "replace"), strict=False)


# Ids


def jid_of(chat: str) -> str:
    """Return the address of a chat; a bare number is the chat with its owner."""
    bare = person_id(chat)
    return f"{bare}@s.whatsapp.net" if bare.isascii() and bare.isdigit() else chat


def normal_jid(value: Any) -> str:
    """An id without the device it came from. Raises ValueError for what is none."""
    found = _JID.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("an id is none")
    server = "s.whatsapp.net" if found[2] in _PHONES else found[2]
    return f"{found[1]}@{server}"


def phone_of(value: Any) -> str:
    """The number in an id; '' where it is hidden, or no id."""
    found = _JID.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found is not None and found[2] in _PHONES and found[1].isdigit() else ""


def user_of(value: Any) -> str:
    """The part before the @: how a mention in a text names somebody."""
    found = _JID.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found is not None else ""


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are: by number, and by the id that hides it."""

    phone: str
    lid: str = ""
    name: str = ""

    @classmethod
    def of(cls, data: Any) -> Me | None:
        if not isinstance(data, dict):
            return None
        phone = phone_of(data.get("id"))
        lid = user_of(data.get("lid"))
        return cls(phone, lid, str(data.get("name") or "")) if phone or lid else None

    @property
    def id(self) -> str:
        """Return the person's number, or the hidden id where it is unknown."""
        return self.phone or self.jid

    @property
    def jid(self) -> str:
        return f"{self.phone}@s.whatsapp.net" if self.phone else f"{self.lid}@lid"

    @property
    def display_name(self) -> str:
        number = f"+{self.phone}" if self.phone else self.id
        return f"{' '.join(self.name.split())} ({number})" if self.name.strip() else number


# Health


@dataclass(frozen=True, slots=True)
class Health:
    """How the bridge says that its connection is. ``code`` is the last reason for which it ended, 0 for none."""

    status: str
    code: int = 0
    me: Me | None = None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Health:
        status, code = answer.get("status"), answer.get("code")
        if not isinstance(status, str):
            raise ValueError("no status")  # noqa: TRY004 - the same as any other answer that cannot be read
        return cls(status, code if isinstance(code, int) else 0, Me.of(answer.get("me")))

    @property
    def is_connected(self) -> bool:
        return self.status == "connected"

    @property
    def trouble(self) -> PlatformError | None:
        """Return the error that ends the adapter; None while connected or connecting."""
        match self.status:
            case "connected" | "connecting" | "starting":
                return None
            case "disconnected" if self.code == RESTART:  # part of linking; it is back at once
                return None
            case "waiting_for_scan":
                return CredentialsError(f"WhatsApp is not linked. Run `{LINK}` and scan the code with the phone.")
            case "logged_out":
                return CredentialsError(
                    _LOGGED_OUT.get(self.code, _LOGGED_OUT[401]) + f" Run `{LINK}` to link it again."
                )
            case "replaced":
                return ConflictError(
                    "Another program took over this link to WhatsApp (440). Stop it, then: hermes gateway restart.",
                    cure="stop the other program that has this session, then: hermes gateway restart",
                )
            case _:
                return UnreachableError(f"WhatsApp cannot be reached{_why(self.code)}.")


_LOGGED_OUT = {
    401: "The phone ended the link to WhatsApp (401).",
    403: "WhatsApp does not let this number in (403): it may be banned.",
    411: "WhatsApp no longer takes this link (411).",
}
_REASONS = {
    405: "its own client is newer than the bridge's",
    408: "the connection was lost",
    428: "the connection was closed",
    500: "the session was refused",
    503: "the service is unavailable",
}


def _why(code: int) -> str:
    return f" ({code}: {_REASONS[code]})" if code in _REASONS else f" ({code})" if code else ""


# Refusals


class NotConnectedError(UnreachableError):
    """The bridge is there, WhatsApp is not."""


def refusal(path: str, status: int, answer: Mapping[str, Any]) -> PlatformError:
    """Map a refusal of the bridge to our error."""
    code, reason = str(answer.get("code") or ""), " ".join(str(answer.get("error") or f"HTTP {status}").split())
    match code:
        case "not_connected":
            return NotConnectedError(reason)
        case "slow_down":
            value: Any = answer.get("retryAfter")
            is_time = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 86_400
            return RateLimitedError(reason, retry_after=float(value) if is_time else DEFAULT_WAIT_SECONDS)
        case "outcome_unknown" | "failed":
            return OutcomeUnknownError(reason)
        case "not_sent" | "media_failed":
            return UnreachableError(reason)
    if status == 401:
        return UnreachableError(f"The bridge refused {path}: it belongs to another process.")
    if status >= 500:
        return OutcomeUnknownError(f"The bridge could not do {path}: {reason}")
    return RejectedError(f"WhatsApp refused {path}: {reason}")


# Batches


@dataclass(frozen=True, slots=True)
class Batch:
    items: Sequence[Any]
    cursor: int


def read_batch(answer: Mapping[str, Any]) -> Batch:
    """Raises ValueError for what is no batch."""
    items, cursor = answer.get("items"), answer.get("cursor")
    if not isinstance(items, list) or not isinstance(cursor, int) or isinstance(cursor, bool):
        raise ValueError("no batch")  # noqa: TRY004 - the same as any other answer that cannot be read
    return Batch(items, cursor)


# Sending


def message_id(key: str) -> str:
    """Ours for a message, the same for every attempt at it; '' leaves it to the bridge."""
    return _summed("3EB0" + hashlib.sha256(key.encode()).hexdigest()[:12].upper()) if key else ""


def is_of_hermes(number: str) -> bool:
    """Tell whether a message id was made by a Hermes, here or elsewhere."""
    return len(number) == 22 and number.startswith("3EB0") and _summed(number[:16]) == number


def _summed(start: str) -> str:
    return start + hashlib.sha256(f"hermes {start}".encode()).hexdigest()[:6].upper()


def written(text: str, prefix: str) -> str:
    """Render a text behind our prefix; a table that becomes too long by aligning is sent as it was written."""
    source = storable(text)
    shown = render(source)
    return prefix + (shown if len(shown) <= MAX_TEXT_CHARS else source)


def mentions(text: str) -> list[str]:
    """Whom an ``@number`` in a text names, so that the phone shows their name and tells them."""
    return list(dict.fromkeys(f"{number}@s.whatsapp.net" for number in _MENTION.findall(text)))


def text_call(message: OutboundMessage, prefix: str) -> tuple[str, Json]:
    """The path and the body that deliver a text, or put it in the place of an earlier one."""
    chat, text = jid_of(message.target.chat), written(message.text, prefix)
    body: Json = {"chatId": chat, "message": text}
    if named := mentions(message.text) if chat.endswith("@g.us") else []:
        body["mentions"] = named
    if message.replaces:
        return "edit", {**body, "messageId": message.replaces}
    return "send", _named(body, message)


def file_call(message: OutboundMessage, file: Attachment, prefix: str) -> tuple[str, Json]:
    caption = written(message.text, prefix) if message.text.strip() else ""
    kind = _SENT_AS.get(file.kind, "document")
    body: Json = {
        "chatId": jid_of(message.target.chat),
        "filePath": file.path,
        "fileName": file.name,
        "mediaType": kind if file.size <= INLINE_MEDIA_BYTES else "document",
    }
    if file.kind is AttachmentKind.VOICE and body["mediaType"] == "audio":
        body["voice"] = True
    if file.mime:
        body["mime"] = file.mime
    if caption:
        body["caption"] = caption
    return "send-media", _named(body, message)


_SENT_AS = {
    AttachmentKind.IMAGE: "image",
    AttachmentKind.VIDEO: "video",
    AttachmentKind.VOICE: "audio",
    AttachmentKind.AUDIO: "audio",
}


def _named(body: Json, message: OutboundMessage) -> Json:
    if ours := message_id(message.idempotency_key):
        body["messageId"] = ours
    if message.reply_to:
        body["replyTo"] = message.reply_to
    return body
