"""Store an account's cursors, contexts and breaker between starts.

Its place in the stream, the newest context token of each chat and when a person wrote there, the last few messages
(phones quote by number alone), and the last texts of each chat, since Weixin hands some texts out twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from hermes.core.bounded import BoundedDict
from hermes.core.dataclasses import dataclass
from hermes.core.messages import Cursor, InboundMessage
from hermes.core.text import storable
from hermes.platforms.weixin.parse import Remembered
from hermes.platforms.weixin.wire import number

CURSOR = "get_updates_buf"
BREAKER = "breaker"
_CHAT, _SAID, _LAST = "chat:", "said:", "last:"

MAX_MESSAGES = 500
STORED_MESSAGES = 60  # of these survive a restart
STORED_TEXT_CHARS = 300
NEXT_SLOT = "said_next"

# Handed out anew, a text comes 2 to 11 seconds later under another number. What a person repeats quicker or later than
# this is theirs.
TWIN_AFTER_MS = 1500
TWIN_BEFORE_MS = 15_000
TWINS_KEPT = 8  # texts of one person, of which any may come again


@dataclass(frozen=True, slots=True)
class Chat:
    context: str = ""
    wrote_at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Last:
    """One of the last texts of a person: its hash, its number, when it was written."""

    digest: str
    number: str
    at_ms: int


class Memory:
    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor.get(CURSOR, "")
        self._chats: dict[str, Chat] = {}
        self._last: dict[str, tuple[_Last, ...]] = {}
        self._messages = BoundedDict[str, Remembered](MAX_MESSAGES)
        slot = cursor.get(NEXT_SLOT, "")
        self._slot = int(slot) % STORED_MESSAGES if slot.isascii() and slot.isdigit() and len(slot) < 6 else 0
        self._news: dict[str, str] = {}
        for name, value in cursor.items():
            self._restore(name, value)

    def _restore(self, name: str, value: str) -> None:
        """A damaged mark is as good as none: everything here can be learned again."""
        try:
            parts = orjson.loads(value) if name.startswith((_CHAT, _SAID, _LAST)) else []
            if name.startswith(_CHAT):
                self._chats[name.removeprefix(_CHAT)] = Chat(str(parts[0]), float(parts[1]))
            elif name.startswith(_SAID):
                self._messages[str(parts[0])] = Remembered(str(parts[1]), bool(parts[2]))
            elif name.startswith(_LAST):
                kept = [parts] if isinstance(parts[0], str) else parts  # older ones hold a single text
                texts = tuple(_Last(str(digest), str(number), int(at)) for digest, number, at in kept)
                self._last[name.removeprefix(_LAST)] = texts[-TWINS_KEPT:]
        except (ValueError, TypeError, IndexError, KeyError):
            return

    def take_marks(self, cursor: str = "") -> dict[str, str]:
        """Everything new since the last call, to be stored with what came."""
        news, self._news = self._news, {}
        if cursor and cursor != self.cursor and storable(cursor) == cursor:
            news[CURSOR] = self.cursor = cursor
        return news

    def note(self, name: str, value: str) -> None:
        self._news[name] = value

    # The chats

    def chat(self, peer: str) -> Chat:
        return self._chats.get(peer, Chat())

    def wrote(self, peer: str, context: str, now: float) -> None:
        """Somebody wrote there; the newest context token is the one to use."""
        self._keep(peer, Chat(context or self.chat(peer).context, now))

    def drop_context(self, peer: str) -> None:
        self._keep(peer, replace(self.chat(peer), context=""))

    def _keep(self, peer: str, chat: Chat) -> None:
        self._chats[peer] = chat
        self._news[_CHAT + peer] = _packed(chat.context, chat.wrote_at)

    # What was said

    def recall(self, number: str) -> Remembered | None:
        return self._messages.get(number)

    def remember(self, number: str, text: str, *, from_us: bool) -> None:
        if not number:
            return
        self._messages[number] = Remembered(text, from_us)
        self._news[f"{_SAID}{self._slot}"] = _packed(number, text[:STORED_TEXT_CHARS], from_us)
        self._slot = (self._slot + 1) % STORED_MESSAGES
        self._news[NEXT_SLOT] = str(self._slot)

    def add_repeat_key(self, message: InboundMessage, raw: Mapping[str, Any]) -> InboundMessage:
        """A text that was handed out before under another number gets that number as a further key."""
        at_ms = number(raw.get("create_time_ms"))
        if not 0 < at_ms < 2**53 or not message.text or message.attachments:
            return message
        digest = hashlib.sha256(message.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        peer = f"{message.session_key.chat}/{message.sender_id}"
        known = self._last.get(peer, ())
        for last in known:
            if last.number == message.message_id:
                return message
            gap = abs(at_ms - last.at_ms)
            if last.digest == digest and (gap == 0 or TWIN_AFTER_MS <= gap <= TWIN_BEFORE_MS):
                return replace(message, keys=(*message.keys, f"msg:{last.number}"))
        recent = [last for last in known if abs(at_ms - last.at_ms) <= TWIN_BEFORE_MS]
        kept = (*recent, _Last(digest, message.message_id, at_ms))[-TWINS_KEPT:]
        self._last[peer] = kept
        self._news[_LAST + peer] = orjson.dumps([[each.digest, each.number, each.at_ms] for each in kept]).decode()
        return message


def _packed(*values: str | float | bool) -> str:
    return orjson.dumps([storable(value) if isinstance(value, str) else value for value in values]).decode()
