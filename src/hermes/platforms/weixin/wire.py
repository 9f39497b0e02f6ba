"""Map iLink's answers to errors and our messages to requests. Pure."""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from hermes import __version__
from hermes.core.dataclasses import dataclass
from hermes.core.errors import CredentialsError, PlatformError, RejectedError, UnreachableError
from hermes.core.i18n.failures import sentence
from hermes.core.messages import REPEAT_MARK, Json, OutboundMessage
from hermes.core.text import storable
from hermes.platforms.weixin.config import LOGIN

TEXT_LIMIT = 2000  # code points in a bubble
NOTE_ROOM = 98  # of these kept free for a word of the gateway about what waits
CHANNEL_VERSION = "2.4.9"
REFUSED = -2
BUSY = -1
STALE_CONTEXT_SAYS = "unknown error"

TEXT, IMAGE, VOICE, FILE, VIDEO = 1, 2, 3, 4, 5
FROM_USER, FROM_BOT = 1, 2
GENERATING, FINISHED = 1, 2


def client_version(version: str) -> str:
    """``2.4.9`` as the server counts versions: 132105."""
    major, minor, patch = (int(part) for part in version.split("."))
    return str(major << 16 | minor << 8 | patch)


APP_HEADERS: Mapping[str, str] = {"iLink-App-Id": "bot", "iLink-App-ClientVersion": client_version(CHANNEL_VERSION)}


def headers(token: str, uin: int) -> dict[str, str]:
    """Of every POST. ``uin`` is a fresh random number below 2**32; ``token`` is empty before the login."""
    made = {
        "Content-Type": "application/json",
        "AuthorizationType": "ilink_bot_token",
        "X-WECHAT-UIN": base64.b64encode(str(uin).encode()).decode(),
        **APP_HEADERS,
    }
    return {**made, "Authorization": f"Bearer {token}"} if token else made


def signed(body: Json) -> Json:
    """The body of a request of a bot that is logged in."""
    return {**body, "base_info": {"channel_version": CHANNEL_VERSION, "bot_agent": f"Hermes/{__version__}"}}


def decode(body: bytes) -> Any:
    """JSON as it was meant: half a surrogate pair or a bad byte spoils one letter, not the batch."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body.decode("utf-8", "replace"), strict=False)


# Refusals


class StaleTokenError(CredentialsError):
    """-14: the token is dead, or the context token of this chat is."""


class QuotaError(PlatformError):
    """-2: too much was sent, or the context of this chat is stale; ``message`` is all that tells one from the other."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason)
        self.message = message

    @property
    def may_be_stale_context(self) -> bool:
        return self.message.strip().lower() == STALE_CONTEXT_SAYS


def code_of(answer: Mapping[str, Any]) -> int:
    """0 for a success: fields that are not there mean one, ``{}`` is one."""
    for name in ("ret", "errcode"):
        if value := number(answer.get(name)):
            return value
    return 0


def number(value: object) -> int:
    """A whole number, also one that was written as text; 0 for everything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    return int(str(value)) if digits.isascii() and digits.isdigit() and len(digits) < 20 else 0


def refusal(call: str, answer: Mapping[str, Any]) -> PlatformError:
    """Map a refusal of iLink to our error."""
    code = code_of(answer)
    message = str(answer.get("errmsg") or "")
    reason = f"Weixin refused {call}: {code}" + (f" ({message})" if message else "")
    match code:
        case -14:
            return StaleTokenError(
                f"{sentence(reason)} The sign-in is over, or another program took it. Run `{LOGIN}`."
            )
        case -2:
            return QuotaError(reason, message)
        case -1:
            return UnreachableError(f"{sentence(reason)} It is busy.")
        case _:
            return RejectedError(reason)


# The poll


@dataclass(frozen=True, slots=True)
class Batch:
    """One answer to a poll. ``cursor`` '' keeps the old one; ``hold_seconds`` 0 says nothing about the next poll."""

    messages: Sequence[Any]
    cursor: str
    hold_seconds: float


def read_batch(answer: Mapping[str, Any]) -> Batch:
    """Raises ValueError for what is no answer to a poll."""
    messages, cursor, hold = answer.get("msgs"), answer.get("get_updates_buf"), answer.get("longpolling_timeout_ms")
    if messages is None:
        messages = []
    if not isinstance(messages, list):
        raise ValueError("msgs is no list")  # noqa: TRY004 - the same as any other answer that cannot be read
    seconds = number(hold) / 1000 if 0 < number(hold) <= 600_000 else 0.0
    return Batch(messages, cursor if isinstance(cursor, str) else "", seconds)


# Sending


def client_id(message: OutboundMessage, part: str = "") -> str:
    """The same for every attempt at the same message."""
    return f"hermes-weixin-{message.idempotency_key or uuid.uuid4().hex}{part}"


def text_item(text: str) -> Json:
    return {"type": TEXT, "text_item": {"text": text}}


def sending(peer: str, item: Json, client: str, context: str) -> Json:
    message: Json = {
        "from_user_id": "",
        "to_user_id": peer,
        "client_id": client,
        "message_type": FROM_BOT,
        "message_state": FINISHED,
        "item_list": [item],  # exactly one for each request
    }
    return {"msg": {**message, "context_token": context} if context else message}


def rendered(message: OutboundMessage) -> str:
    """The text as the phone shows it best, with the mark of a repeat."""
    mark = REPEAT_MARK if message.is_repeat else ""
    return mark + plainer(storable(message.text)) if message.text else ""


_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_IMAGE = re.compile(r"!\[([^\[\]\n]*)\]\(([^()\s]+)(?:[ \t]+[^()\n]*)?\)")
_DEEP_HEADING = re.compile(r"(?m)^ {0,3}#{5,6}\s+(?=\S)")
_ITALICS = re.compile(rf"(?<![\w*_])([*_])(?=\S)([^*_\n]*[{_CJK}][^*_\n]*)(?<=\S)\1(?![\w*_])")
_FENCED = re.compile(r"(?ms)(^ {0,3}(?:```|~~~).*?(?:^ {0,3}(?:```|~~~)[ \t]*$|\Z)|`[^`\n]+`)")


def plainer(text: str) -> str:
    """Markdown without what the phone cannot show: pictures, the two smallest headings, italics of Chinese."""
    if not any(mark in text for mark in "*_#!"):
        return text
    parts = _FENCED.split(text)
    return "".join(part if index % 2 else _plain_text(part) for index, part in enumerate(parts))


def _plain_text(text: str) -> str:
    text = _IMAGE.sub(lambda found: f"{found[1]} ({found[2]})" if found[1] else found[2], text)
    return _ITALICS.sub(r"\2", _DEEP_HEADING.sub("", text))


def message_id_of(answer: Mapping[str, Any]) -> str:
    """A number above 2**53 on the wire; from here on text."""
    value = answer.get("message_id")
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) and value else ""
