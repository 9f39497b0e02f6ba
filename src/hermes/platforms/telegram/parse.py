"""Parse an update: who said what, where, and whether it addresses us."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import Ignored, InboundEvent, InboundMessage, Json, Press, Quote, TextUnit
from hermes.core.text import length, storable
from hermes.platforms.telegram.media import attachments

# A client cuts what it sends at 4096 units; from here on the next message is likely the rest.
LIKELY_CUT = 4000
_GENERAL_TOPIC = "1"
_KINDS = {
    "private": ChatKind.DM,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.CHANNEL,
}


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are on Telegram, so that a mention can be told from other words."""

    id: str
    username: str = ""
    account: str = "main"


def parse(update: Json, me: Me, now: datetime) -> InboundEvent:
    """Say what an update holds. ``now`` stands in where Telegram gives no time (a press), or none that can be read."""
    for kind in ("message", "channel_post"):
        if kind in update:
            return _message(update[kind], me, now, is_edit=False)
    for kind in ("edited_message", "edited_channel_post"):
        if kind in update:
            return _message(update[kind], me, now, is_edit=True)
    if "callback_query" in update:
        return _press(update["callback_query"], me, now)
    return Ignored(kind=next(iter(sorted(update.keys() - {"update_id"})), "empty"))


def _message(message: Json, me: Me, now: datetime, *, is_edit: bool) -> InboundEvent:
    if is_edit and "location" in message:
        return Ignored(kind="a live location that moved")  # told every few seconds, and no word of anybody's
    if is_edit and "edit_date" not in message:
        return Ignored(kind="an edit that nobody sees")  # somebody reacted to it, or the like
    files = tuple(attachments(message))
    text = _text(message)
    if not text and not files:
        usual = {"message_id", "date", "chat", "from", "sender_chat", "message_thread_id", "is_topic_message"}
        return Ignored(kind=next(iter(sorted(message.keys() - usual)), "empty message"))
    sender = message.get("sender_chat") or message["from"]
    if _id(sender) == me.id or ("sender_chat" not in message and sender.get("is_bot")):
        return Ignored(kind="a bot's message")  # two bots that answer each other never end
    chat, number = _id(message["chat"]), _id(message, "message_id")
    date = message["edit_date"] if is_edit else message.get("date")
    quote = _quote(message, me)
    return InboundMessage(
        keys=(f"edit:{chat}:{number}:{int(str(date))}" if is_edit else f"msg:{chat}:{number}",),
        session_key=_place(message, me),
        sender_id=_id(sender),
        sender_name=_name(sender),
        text=_without_our_name(text, message, me),
        sent_at=_time(date, now),
        message_id=number,
        attachments=files,
        quote=quote,
        is_addressed=_is_addressed(message, text, quote, me),
        may_continue="media_group_id" in message
        or "forward_origin" in message
        or "forward_date" in message
        or (len(text) * 2 >= LIKELY_CUT and length(text, TextUnit.UTF16) >= LIKELY_CUT),
        is_edit=is_edit,
        language=_language(sender),
    )


def _press(press: Json, me: Me, now: datetime) -> InboundEvent:
    if "message" not in press or "data" not in press:
        return Ignored(kind="callback_query without a message of ours")
    press_id = storable(str(press["id"]))
    return Press(
        keys=(f"press:{press_id}",),
        session_key=_place(press["message"], me),
        sender_id=_id(press["from"]),
        sender_name=_name(press["from"]),
        data=str(press["data"]),
        sent_at=now,
        press_id=press_id,
        message_id=_id(press["message"], "message_id"),
        language=_language(press["from"]),
    )


def _place(message: Json, me: Me) -> SessionKey:
    chat = message["chat"]
    thread = ""
    # Answers in an ordinary group carry a thread id too; only in a forum it is a place.
    if message.get("is_topic_message") and "message_thread_id" in message:
        thread = _id(message, "message_thread_id")
    elif chat.get("is_forum"):
        thread = _GENERAL_TOPIC
    return SessionKey("telegram", _KINDS[chat["type"]], _id(chat), thread, account=me.account)


def _id(holder: Json, name: str = "id") -> str:
    """An id as text. Telegram's are whole numbers; anything else would make keys that nobody can look up."""
    value = holder[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is not a whole number")
    return str(value)


def _time(value: object, now: datetime) -> datetime:
    try:
        return datetime.fromtimestamp(int(str(value)), UTC)
    except (ValueError, OverflowError, OSError):
        return now


def _name(user: Json) -> str:
    full = f"{user.get('first_name') or ''} {user.get('last_name') or ''}".strip()
    return str(full or user.get("title") or user.get("username") or "")


def _language(user: Json) -> str:
    """The language of their Telegram, where it says so."""
    return storable(str(user.get("language_code") or "")[:20])


def _text(message: Json) -> str:
    for name in ("text", "caption"):
        if message.get(name):
            text = message[name]
            if not isinstance(text, str):
                raise TypeError(f"{name} is not text")
            return text
    return _spoken(message)


def _spoken(message: Json) -> str:
    """In words what came as something else than words."""
    if sticker := message.get("sticker"):
        return str(sticker.get("emoji") or "")
    if venue := message.get("venue"):
        return f"Place: {venue['title']}, {venue['address']}"
    if spot := message.get("location"):
        return f"Location: {spot['latitude']}, {spot['longitude']}"
    if contact := message.get("contact"):
        return f"Contact: {_name(contact)}, {contact['phone_number']}"
    if poll := message.get("poll"):
        return "\n".join([f"Poll: {poll['question']}", *(f"- {option['text']}" for option in poll["options"])])
    if dice := message.get("dice"):
        return f"{dice['emoji']} {dice['value']}"
    return ""


def _quote(message: Json, me: Me) -> Quote | None:
    chosen = (message.get("quote") or {}).get("text") or ""
    replied = message.get("reply_to_message") or {}
    # In a topic every message "answers" the note that opened the topic.
    if "forum_topic_created" in replied or not (chosen or replied):
        return None
    author = replied.get("sender_chat") or replied.get("from") or {}
    return Quote(
        text=str(chosen or replied.get("text") or replied.get("caption") or _spoken(replied)),
        sender_name=_name(author),
        message_id=str(replied.get("message_id") or ""),
        from_us=str(author.get("id") or "") == me.id,
    )


def _is_addressed(message: Json, text: str, quote: Quote | None, me: Me) -> bool:
    if message["chat"]["type"] == "private" or (quote and quote.from_us):
        return True
    return any(_names_us(entity, words, me) for entity, words in _entities(message, text))


def _names_us(entity: Json, words: str, me: Me) -> bool:
    match entity.get("type"):
        case "mention":
            return _is_our_name(words.removeprefix("@"), me)
        case "text_mention":
            return str(entity["user"]["id"]) == me.id
        case "bot_command":
            # A bare command in a group is for every bot that is shown it.
            _, at, name = words.partition("@")
            return _is_our_name(name, me) if at else entity.get("offset") == 0
        case _:
            return False


def _is_our_name(name: str, me: Me) -> bool:
    return bool(me.username) and name.casefold() == me.username.casefold()


def _without_our_name(text: str, message: Json, me: Me) -> str:
    """``/stop@our_bot now`` is ``/stop now``, and ``@our_bot /stop`` is ``/stop``."""
    if not text.startswith(("/", "@")):
        return text
    for entity, words in _entities(message, text):
        if entity.get("offset") != 0 or not _names_us(entity, words, me):
            continue
        kept = words.partition("@")[0]
        rest = text[len(words) :]
        return (kept + rest if kept else rest.lstrip(" ,:")) or text
    return text


def _entities(message: Json, text: str) -> Iterator[tuple[Json, str]]:
    """Each marked stretch that may name someone. Telegram counts in UTF-16 units."""
    marked = message.get("entities") or message.get("caption_entities") or ()
    naming = [each for each in marked if each.get("type") in {"mention", "text_mention", "bot_command"}]
    if not naming:
        return
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in naming:
        start = entity["offset"] * 2
        words = units[start : start + entity["length"] * 2].decode("utf-16-le", "surrogatepass")
        yield entity, words
