"""Parse an item of the bridge into an inbound event."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import (
    Attachment,
    AttachmentKind,
    Ignored,
    InboundEvent,
    InboundMessage,
    Json,
    Quote,
    Unreadable,
    read,
    unreadable,
)
from hermes.core.text import storable
from hermes.platforms.whatsapp import wire
from hermes.platforms.whatsapp.wire import Me

MAX_ID_CHARS = 200
LONG_TEXT = 4000  # whoever pastes this much often goes on

_KINDS = {
    "image": AttachmentKind.IMAGE,
    "sticker": AttachmentKind.IMAGE,
    "video": AttachmentKind.VIDEO,
    "audio": AttachmentKind.AUDIO,
    "document": AttachmentKind.DOCUMENT,
}
_NAMES = {
    AttachmentKind.IMAGE: "picture",
    AttachmentKind.VIDEO: "film",
    AttachmentKind.AUDIO: "sound",
    AttachmentKind.VOICE: "voice",
    AttachmentKind.DOCUMENT: "file",
}
_ENDINGS = {
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "video/mp4": ".mp4",
    "audio/ogg": ".ogg",
    "audio/mpeg": ".mp3",
    "audio/mp4": ".m4a",
    "application/pdf": ".pdf",
}


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, and what of all that goes on is for us."""

    account: str
    me: Me
    is_self_chat_only: bool
    prefix: str = ""
    free_chats: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()


def understand(item: Any, reader: Reader, now: float) -> InboundEvent:
    """Say what an item holds; whatever is wrong with it, it becomes an event that can be kept."""
    if not isinstance(item, dict):
        return unreadable(repr(item), "it is no item")
    is_private = reader.is_self_chat_only and not _is_to_oneself(item)
    if is_private and item.get("kind") != "unreadable":
        return Ignored("another chat")  # the owner's own talk with others: not looked at
    event = read(parse, item, reader, now)
    if is_private and isinstance(event, Unreadable):
        return replace(event, raw="left out: it may belong to another chat")
    return event


def parse(item: Json, reader: Reader, now: float) -> InboundEvent:
    kind = item.get("kind", "message")
    if kind == "unreadable":
        raise ValueError(str(item.get("error") or "the bridge could not read it"))
    if kind not in ("message", "edit"):
        return Ignored(f"a {kind}" if isinstance(kind, str) else "of no kind")
    is_self = _is_to_oneself(item)
    chat = _chat(item, is_self, reader)
    number = _id(item.get("messageId"))
    if reason := _not_for_us(item, number, chat, is_self, reader):
        return Ignored(reason)
    body = item.get("body")
    if body is not None and not isinstance(body, str):
        raise ValueError("the text is none")
    text, files = _place(item) or body or "", _files(item)
    if not text.strip() and not files:
        return Ignored(f"nothing to read: {str(item.get('nativeType') or 'empty')[:60]}")
    is_group = chat.endswith("@g.us")
    quote = _quote(item, reader)
    is_edit = kind == "edit"
    # A repeated message may have come before under the hidden id alone, when the number was not known yet.
    chats = (chat, wire.normal_jid(item.get("chatId")))
    is_part = item.get("isForwarded") is True or bool(item.get("albumId"))
    # A picture is often followed at once by the question about it; what is spoken is the question.
    is_mute = bool(files) and not text.strip() and files[0].kind is not AttachmentKind.VOICE
    seconds: Any = item.get("timestamp")
    is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < 4_102_444_800
    return InboundMessage(
        keys=tuple(dict.fromkeys(f"msg:{each}:{number}" for each in chats)),
        session_key=SessionKey("whatsapp", ChatKind.GROUP if is_group else ChatKind.DM, chat, account=reader.account),
        sender_id=_sender(item, is_self, reader),
        text=_without_us(text, reader.me) if is_group else text,
        sent_at=datetime.fromtimestamp(seconds if is_time else now, UTC),
        sender_name=_name(item.get("senderName")),
        message_id=_id(item.get("targetId")) if is_edit else number,
        attachments=files,
        quote=quote,
        is_addressed=not is_group or _is_addressed(item, chat, text, quote, reader),
        may_continue=not is_edit and (is_part or len(text) >= LONG_TEXT or is_mute),
        is_edit=is_edit,
    )


def _not_for_us(item: Json, number: str, chat: str, is_self: bool, reader: Reader) -> str:
    """Why it is passed over; '' when it is not."""
    if item.get("fromMe") is True and (not is_self or _is_ours(item, number, reader)):
        return "our own"
    if wire.is_of_hermes(number):
        return "message of a bot"  # another Hermes: two that are let in with each other would never stop
    return "a broadcast" if chat.endswith(("@newsletter", "@broadcast")) else ""


# Who and where


def _is_to_oneself(item: Json) -> bool:
    """In the chat with oneself, and by oneself: nobody else is taken for the owner."""
    return item.get("isSelfChat") is True and item.get("fromMe") is True


def _chat(item: Json, is_self: bool, reader: Reader) -> str:
    """One name for a chat, whichever of a person's two ids WhatsApp uses for it today: the number where it is known."""
    chat = wire.normal_jid(item.get("chatId"))
    if chat.endswith("@g.us"):
        return chat
    phone = _digits(item.get("chatPhone")) or wire.phone_of(chat) or (reader.me.phone if is_self else "")
    return f"{phone}@s.whatsapp.net" if phone else chat


def _sender(item: Json, is_self: bool, reader: Reader) -> str:
    if is_self:
        return reader.me.id
    sender = wire.normal_jid(item.get("senderId"))
    return _digits(item.get("senderPhone")) or wire.phone_of(sender) or sender


def _digits(value: Any) -> str:
    return value if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 20 else ""


def _id(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_ID_CHARS or storable(value) != value:
        raise ValueError("the message has no id")
    return value


def _name(value: Any) -> str:
    return value[:MAX_ID_CHARS] if isinstance(value, str) else ""


def _is_ours(item: Json, number: str, reader: Reader) -> bool:
    """In the chat with oneself both sides are one account: ours are known by their id and by what they begin with.

    An edit of what we said is no word of the owner's either, whoever made it. Heard as one, it would be answered, and
    the answer again.
    """
    body = item.get("body")
    is_marked = bool(reader.prefix.strip()) and isinstance(body, str) and body.startswith(reader.prefix)
    return is_marked or wire.is_of_hermes(number) or wire.is_of_hermes(str(item.get("targetId") or ""))


def _is_addressed(item: Json, chat: str, text: str, quote: Quote | None, reader: Reader) -> bool:
    if chat in reader.free_chats or (quote is not None and quote.from_us):
        return True
    named = item.get("mentions")
    users = {wire.user_of(each) for each in named} if isinstance(named, list) else set()
    return bool(users & _our_names(reader.me)) or any(pattern.search(text) for pattern in reader.patterns)


def _our_names(me: Me) -> set[str]:
    return {name for name in (me.phone, me.lid) if name}


def _without_us(text: str, me: Me) -> str:
    """Our own name is no part of what is said to us."""
    for name in _our_names(me):
        text = re.sub(rf"(?<!\w)@{re.escape(name)}(?!\w)[,:]?[ \t]*", "", text)
    return text.strip()


# What


def _place(item: Json) -> str:
    """A place and a contact card as words, since nothing else of them could be shown."""
    more, native = item.get("nativeMetadata"), item.get("nativeType")
    if not isinstance(more, dict) or not isinstance(native, str):
        return ""
    if native in ("locationMessage", "liveLocationMessage"):
        where = [str(more[key]) for key in ("name", "address") if isinstance(more.get(key), str) and more[key]]
        return ", ".join([*where, f"{more.get('latitude')}, {more.get('longitude')}"])
    contacts = more.get("contacts")
    if native in ("contactMessage", "contactsArrayMessage") and isinstance(contacts, list):
        return "\n".join(
            str(each.get("vcard") or each.get("name") or "") for each in contacts if isinstance(each, dict)
        )
    options = more.get("options")
    if native.startswith("pollCreationMessage") and isinstance(options, list):
        return "\n".join([str(item.get("body") or ""), *(f"- {option}" for option in options)])
    return ""


def _files(item: Json) -> tuple[Attachment, ...]:
    if item.get("hasMedia") is not True:
        return ()
    kind = _KINDS.get(str(item.get("mediaType")), AttachmentKind.DOCUMENT)
    if kind is AttachmentKind.AUDIO and item.get("voice") is True:
        kind = AttachmentKind.VOICE
    mime = item.get("mime") if isinstance(item.get("mime"), str) else ""
    size = item.get("size")
    handle = {"chatId": item.get("chatId"), "messageId": _id(item.get("messageId"))}  # as the bridge names it
    return (
        Attachment(
            kind,
            file_id=orjson.dumps(handle).decode(),
            name=_name(item.get("fileName")) or _NAMES[kind] + _ENDINGS.get(str(mime).partition(";")[0].strip(), ""),
            mime=str(mime)[:MAX_ID_CHARS],
            size=size if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**53 else 0,
        ),
    )


def handle_of(file_id: str) -> Json:
    """Return the file's handle at the bridge. Raises ValueError without one."""
    handle = orjson.loads(file_id)
    if not isinstance(handle, dict) or not {"chatId", "messageId"} <= handle.keys():
        raise ValueError("no handle of a file")
    return handle


def _quote(item: Json, reader: Reader) -> Quote | None:
    number = item.get("quotedMessageId")
    if item.get("hasQuotedMessage") is not True or not isinstance(number, str):
        return None
    text = item.get("quotedText")
    text = text if isinstance(text, str) else ""
    is_marked = bool(reader.prefix.strip()) and text.startswith(reader.prefix)
    is_self = item.get("isSelfChat") is True  # where everything is from this account
    from_us = is_marked or wire.is_of_hermes(number) or (item.get("quotedFromMe") is True and not is_self)
    return Quote(
        text.removeprefix(reader.prefix) if is_marked else text, message_id=number[:MAX_ID_CHARS], from_us=from_us
    )
