"""Parse a message of iLink into an inbound event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Ignored, InboundEvent, InboundMessage, Json, Quote, read, unreadable
from hermes.core.text import storable
from hermes.platforms.weixin import media, wire

MAX_NAME_CHARS = 200
LONG_TEXT = 1800  # a phone cuts a longer text into several messages


@dataclass(frozen=True, slots=True)
class Remembered:
    """A message that passed by, for whoever quotes it later by its number alone."""

    text: str
    from_us: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads, and what is remembered of the chat."""

    bot_id: str
    account: str
    recall: Callable[[str], Remembered | None] = lambda _: None


def understand(raw: Any, reader: Reader, now: float) -> InboundEvent:
    """Say what a message holds; whatever is wrong with it, it becomes an event that can be kept."""
    return read(parse, raw, reader, now) if isinstance(raw, dict) else unreadable(repr(raw), "it is no message")


def parse(message: Json, reader: Reader, now: float) -> InboundEvent:
    sender, group = _name(message.get("from_user_id")), _name(message.get("group_id"))
    if message.get("message_type", wire.FROM_USER) == wire.FROM_BOT or sender in ("", reader.bot_id):
        return Ignored("not from a person")
    if message.get("message_state") == wire.GENERATING:
        return Ignored("not finished yet")
    items = message.get("item_list") or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError("item_list is no list of items")
    if not any(item.get("type") in _KINDS for item in items):
        return Ignored("nothing that we could read")
    texts = [text for item in items for text in _texts(item)]
    files = tuple(file for item in items if (file := media.attachment(item)) is not None)
    text = "\n".join(texts)
    number = number_of(message.get("message_id")) or number_of(items[0].get("msg_id"))
    if not number:
        raise ValueError("it has no number")
    return InboundMessage(
        keys=(f"msg:{number}",),
        session_key=SessionKey(
            "weixin", ChatKind.GROUP if group else ChatKind.DM, group or sender, account=reader.account
        ),
        sender_id=sender,
        text=text,
        sent_at=_sent_at(message.get("create_time_ms"), now),
        message_id=number,
        attachments=files,
        quote=next((quote for item in items if (quote := _quote(item, reader)) is not None), None),
        # A picture is often followed at once by the question about it.
        may_continue=len(text) >= LONG_TEXT or (bool(files) and not text),
    )


_KINDS = frozenset({wire.TEXT, wire.IMAGE, wire.VOICE, wire.FILE, wire.VIDEO})


def number_of(value: Any) -> str:
    """Numbers of messages are unsigned, of 64 bits; text from here on. '' for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return ""
    text = str(value) if isinstance(value, str) or 0 < value < 2**64 else ""
    return text if len(text) <= 20 and text.isascii() and text.isdigit() else ""


def _name(value: Any) -> str:
    """The id of a person or a group. Raises ValueError for one under which nothing could be stored."""
    if value is None:
        return ""
    if not isinstance(value, str) or storable(value) != value or len(value) > MAX_NAME_CHARS:
        raise ValueError("an id is none")
    return value


def _sent_at(milliseconds: Any, now: float) -> datetime:
    moment = wire.number(milliseconds)
    if 0 < moment < 4_102_444_800_000:
        return datetime.fromtimestamp(moment / 1000, UTC)
    return datetime.fromtimestamp(now, UTC)


def _texts(item: Json) -> Iterator[str]:
    match item.get("type"):
        case wire.TEXT:
            text = (item.get("text_item") or {}).get("text")
        case wire.VOICE:  # Weixin writes down what was said
            text = (item.get("voice_item") or {}).get("text")
        case _:
            text = None
    if text is not None and not isinstance(text, str):
        raise ValueError("the text is none")
    if text:
        yield text


# Quotes


def _quote(item: Json, reader: Reader) -> Quote | None:
    quoted = item.get("ref_msg")
    if not isinstance(quoted, dict):
        return None
    number = number_of(quoted.get("svr_id"))
    known = reader.recall(number) if number else None
    inline = quoted.get("message_item")
    text = known.text if known else "\n".join(_texts(inline)) if isinstance(inline, dict) else ""
    text = text or str(quoted.get("title") or "")
    part = quoted.get("partial_text")
    if isinstance(part, dict):
        text = partial(text, part)
        if not text:  # nobody remembers the message: as much of the quote as came with it
            start, end = str(part.get("start") or ""), str(part.get("end") or "")
            text = start if start == end or not end else f"{start} … {end}"
    return Quote(text, message_id=number, from_us=known is not None and known.from_us)


def partial(text: str, part: Mapping[str, Any]) -> str:
    """The chosen words of a quoted text, '' when they are not in it.

    Phones count the end either from the beginning of the text or from behind the start; the hash tells which.
    """
    start, end = str(part.get("start") or ""), str(part.get("end") or "")
    wanted = str(part.get("quotemd5") or "").lower()
    begin = _nth(text, start, _index(part.get("startindex")), 0)
    if begin < 0:
        return ""
    found = []
    for origin in (0, begin + len(start)):
        at = _nth(text, end, _index(part.get("endindex")), origin)
        if at >= begin:
            found.append(text[begin : at + len(end)])
    by_hash = [words for words in found if hashlib.md5(words.encode("utf-8", "replace")).hexdigest() == wanted]  # noqa: S324 - their choice
    return (by_hash or found or [""])[0]


def _index(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 10_000 else 0


def _nth(text: str, words: str, number: int, origin: int) -> int:
    if not words:
        return -1
    at = text.find(words, origin)
    while number > 0 and at >= 0:
        at = text.find(words, at + 1)
        number -= 1
    return at
