"""Parse Discord events into inbound events. Pure: raises on malformed input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeGuard

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.media import kind_of_type
from hermes.core.messages import (
    Attachment,
    AttachmentKind,
    Ignored,
    InboundEvent,
    InboundMessage,
    Json,
    Quote,
    TextUnit,
)
from hermes.core.text import length, without_name

EPOCH_MS = 1_420_070_400_000  # Discord's ids count from the first second of 2015
LONG_TEXT = 1990  # of the 2,000 that most people can write: the rest is likely to follow
_ID = re.compile(r"[0-9]{1,20}")
_LARGEST = 2**63
_REPLY = 19
_SPOKEN = frozenset({0, _REPLY})  # said, and said in reply; all others are notices
_THREADS = frozenset({10, 11, 12})
_DIRECT = 1
WITH_MESSAGES = frozenset({0, 2, 5, 13}) | _THREADS  # categories and forums hold no messages themselves
_NAMED = re.compile(r"<(@&|@!?|#|a?:)([^<>\s]{1,100})>")


class RoomKind(StrEnum):
    DIRECT = "direct"
    CHANNEL = "channel"
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class Room:
    """A place in which messages stand; ``parent`` is the channel that a thread belongs to."""

    id: str
    kind: RoomKind
    parent: str = ""

    @property
    def channel(self) -> str:
        return self.parent or self.id


@dataclass(frozen=True, slots=True)
class Rules:
    """In which channels it listens, where all is said to it, and whether a mention opens a thread."""

    allowed: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    free: frozenset[str] = frozenset()
    auto_thread: bool = True

    def hears(self, room: Room) -> bool:
        if room.kind is RoomKind.DIRECT:
            return True
        names = {room.id, room.channel}
        return not names & self.ignored and (not self.allowed or bool(names & self.allowed))

    def is_free(self, room: Room) -> bool:
        return room.kind is not RoomKind.DIRECT and bool({room.id, room.channel} & self.free)


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are at Discord, and in which threads we take part. ``roles`` are those that Discord made for us."""

    account: str
    user: str
    name: str = ""
    rules: Rules = field(default_factory=Rules)
    takes_part: Callable[[str], bool] = lambda _thread: False
    is_our_role: Callable[[str], bool] = lambda _role: False


def order(snowflake: str) -> int:
    """Discord's ids sort by their numbers, not as text."""
    return int(snowflake or 0)


def snowflake(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value) or int(value) >= _LARGEST:
        raise ValueError("an id of Discord's is not one")
    return value


def is_snowflake(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(_ID.fullmatch(value)) and int(value) < _LARGEST


def snowflake_at(seconds: float) -> str:
    """The id that something made at this time would have."""
    return str(max(0, int(seconds * 1000) - EPOCH_MS) << 22)


def when(id_: str) -> datetime:
    return datetime.fromtimestamp(((int(id_) >> 22) + EPOCH_MS) / 1000, UTC)


def room_of(channel: Json) -> Room:
    """A channel as Discord describes it."""
    id_, kind = snowflake(channel["id"]), channel["type"]
    if kind == _DIRECT:
        return Room(id_, RoomKind.DIRECT)
    if kind in _THREADS:
        return Room(id_, RoomKind.THREAD, snowflake(channel["parent_id"]))
    return Room(id_, RoomKind.CHANNEL)


def message_key(id_: str) -> str:
    return f"msg:{id_}"


def message(raw: Json, room: Room, me: Me) -> InboundEvent:
    """A message, live or from the history."""
    if reason := _not_for_us(raw, room, me):
        return Ignored(reason)
    return _spoken(raw, room, me, (message_key(snowflake(raw["id"])),))


def edit(raw: Json, room: Room, me: Me) -> InboundEvent:
    """A person changed their words. Discord tells the same of links that got a preview."""
    if "author" not in raw or "content" not in raw or not raw.get("edited_timestamp"):
        return Ignored("message update")
    if reason := _not_for_us(raw, room, me):
        return Ignored(reason)
    keys = (f"edit:{snowflake(raw['id'])}:{datetime.fromisoformat(raw['edited_timestamp']).isoformat()}",)
    return _spoken(raw, room, me, keys, is_edit=True)


def _not_for_us(raw: Json, room: Room, me: Me) -> str:
    author = raw["author"]
    if author.get("bot") or author.get("system") or raw.get("webhook_id") or author.get("id") == me.user:
        return "message of a bot"
    if raw.get("type", 0) not in _SPOKEN:
        return f"message of type {str(raw.get('type'))[:20]}"
    if not me.rules.hears(room):
        return "message in a channel that is not heard"
    whole = _forwarded(raw)
    return "" if whole.get("content") or whole.get("attachments") or _without_words(whole) else "message with nothing"


def _spoken(raw: Json, room: Room, me: Me, keys: tuple[str, ...], *, is_edit: bool = False) -> InboundMessage:
    id_, author = snowflake(raw["id"]), raw["author"]
    whole = _forwarded(raw)
    words = text_of(whole.get("content") or "")
    quote = _quote(raw, me)
    is_addressed = _is_addressed(raw, words, room, me, quote)
    # A thread has the id of the message that it was opened under.
    opens = room.kind is RoomKind.CHANNEL and me.rules.auto_thread and not me.rules.is_free(room)
    return InboundMessage(
        keys=keys,
        session_key=key_of(room, me, id_ if is_addressed and opens else ""),
        sender_id=snowflake(author["id"]),
        text=readable(words, _names(raw), me) or _without_words(whole),
        sent_at=when(id_),
        sender_name=name_of(author, raw.get("member")),
        message_id=id_,
        attachments=tuple(_attachment(file) for file in whole.get("attachments") or ()),
        quote=quote,
        is_addressed=is_addressed,
        may_continue=length(words, TextUnit.UTF16) >= LONG_TEXT,
        is_edit=is_edit,
    )


def key_of(room: Room, me: Me, opens: str = "") -> SessionKey:
    """``opens``: the thread that begins with this message."""
    kind = ChatKind.DM if room.kind is RoomKind.DIRECT else ChatKind.GROUP
    thread = room.id if room.kind is RoomKind.THREAD else opens
    return SessionKey("discord", kind, room.channel, thread, account=me.account)


def _is_addressed(raw: Json, words: str, room: Room, me: Me, quote: Quote | None) -> bool:
    if room.kind is RoomKind.DIRECT or me.rules.is_free(room):
        return True
    if room.kind is RoomKind.THREAD and me.takes_part(room.id):
        return True
    named = any(isinstance(each, dict) and each.get("id") == me.user for each in listed(raw.get("mentions")))
    by_role = any(isinstance(role, str) and me.is_our_role(role) for role in listed(raw.get("mention_roles")))
    return named or by_role or f"<@{me.user}>" in words or (quote is not None and quote.from_us)


def listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("text is not text")
    return value


def name_of(user: Json, member: object = None) -> str:
    nick = member.get("nick") if isinstance(member, dict) else ""
    return str(nick or user.get("global_name") or user.get("username") or "")


def _forwarded(raw: Json) -> Json:
    """What is handed on stands inside a message that has no words of its own."""
    shots = raw.get("message_snapshots")
    if raw.get("content") or raw.get("attachments") or not isinstance(shots, list) or not shots:
        return raw
    inner = shots[0]["message"]
    if not isinstance(inner, dict):
        raise TypeError("a forwarded message is not one")
    return inner


def _quote(raw: Json, me: Me) -> Quote | None:
    referenced = raw.get("referenced_message")
    if raw.get("type") != _REPLY or not isinstance(referenced, dict):
        return None
    author = referenced["author"]
    return Quote(
        readable(text_of(referenced.get("content") or ""), _names(referenced), me),
        name_of(author),
        snowflake(referenced["id"]),
        author.get("id") == me.user,
    )


def _names(raw: Json) -> Mapping[str, str]:
    mentions = [each for each in listed(raw.get("mentions")) if isinstance(each, dict)]
    return {str(each.get("id")): name_of(each, each.get("member")) for each in mentions}


def readable(words: str, names: Mapping[str, str], me: Me) -> str:
    """Discord's notation as people read it; our own name at an end is no part of what is said to us."""
    words = without_name(words, re.compile(rf"<@!?{re.escape(me.user)}>"))
    words = re.sub(r"^(?:\s*<@&([0-9]{1,20})>[\s,:]*)", lambda role: "" if me.is_our_role(role[1]) else role[0], words)
    return _NAMED.sub(lambda found: _named(found[1], found[2], names, me), words)


def _named(mark: str, what: str, names: Mapping[str, str], me: Me) -> str:
    match mark:
        case "@" | "@!":
            return f"@{names.get(what) or (me.name if what == me.user else '') or what}"
        case "@&":
            return f"@{me.name if me.is_our_role(what) and me.name else what}"
        case "#":
            return f"#{what}"
        case _:
            return f":{what.partition(':')[0]}:"


def _without_words(raw: Json) -> str:
    """What stands in a message that says nothing: stickers, a poll, or cards such as bots make them."""
    stickers = [f":{name}:" for each in listed(raw.get("sticker_items")) if (name := _text_field(each, "name"))]
    poll = raw.get("poll")
    asked = _text_field(_inside(poll, "question"), "text")
    choices = [_text_field(_inside(each, "poll_media"), "text") for each in listed(_inside(poll, "answers"))]
    cards = [_text_field(card, part) for card in listed(raw.get("embeds")) for part in ("title", "description", "url")]
    lines = [" ".join(stickers), asked, *(f"- {choice}" for choice in choices if choice), *cards]
    return "\n".join(line for line in lines if line)


def _inside(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _text_field(value: object, key: str) -> str:
    text = _inside(value, key)
    return text if isinstance(text, str) else ""


def _attachment(file: Json) -> Attachment:
    mime = str(file.get("content_type") or "").partition(";")[0]
    return Attachment(
        kind=AttachmentKind.VOICE if file.get("waveform") and mime.startswith("audio/") else kind_of_type(mime),
        file_id=text_of(file["url"]),
        name=str(file.get("filename") or "file"),
        mime=mime,
        size=int(file.get("size") or 0),
    )
