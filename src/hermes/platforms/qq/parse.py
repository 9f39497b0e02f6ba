"""Parse a dispatch: who said or pressed what, and where."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import TypeGuard

from hermes.core.dataclasses import dataclass
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import (
    Attachment,
    AttachmentKind,
    Ignored,
    InboundEvent,
    InboundMessage,
    Json,
    Press,
    Quote,
)
from hermes.core.text import storable

MAX_ID_CHARS = 512
_CHINA = timezone(timedelta(hours=8))
_FACE = re.compile(r'<faceType=\d+,faceId="[^"]*",ext="([^"]*)">')
_MENTION = re.compile(r"\s*<@!?\w+>\s*")
_QUOTES = 103


class Scene(StrEnum):
    """The four kinds of chat, each with its own address. A bare chat id is a person's (C2C)."""

    C2C = ""
    GROUP = "group/"
    CHANNEL = "channel/"
    GUILD_DM = "direct/"


@dataclass(frozen=True, slots=True)
class Place:
    """A chat as QQ addresses it. Its text form is the chat of a session key: an openid, or ``group/<openid>``."""

    scene: Scene
    id: str

    @property
    def chat(self) -> str:
        return f"{self.scene.value}{self.id}"

    @property
    def kind(self) -> ChatKind:
        """Whatever is between one person and the bot is a dm, whatever QQ calls it."""
        return ChatKind.DM if self.scene in (Scene.C2C, Scene.GUILD_DM) else ChatKind.GROUP

    @classmethod
    def of(cls, chat: str) -> Place:
        for scene in (Scene.GROUP, Scene.CHANNEL, Scene.GUILD_DM):
            if chat.startswith(scene.value):
                return cls(scene, chat.removeprefix(scene.value))
        return cls(Scene.C2C, chat)


@dataclass(frozen=True, slots=True)
class Me:
    """Whose events these are. ``said`` gives the text of a message of ours by its index, or None."""

    account: str = "main"
    sent_text: Callable[[str], str | None] = lambda _: None


# By event: the scene, the field with the chat's id ("": the sender's own), the author's field with the sender's id,
# and whether it is addressed to us. Talk of a group among itself is left to the rules of the account.
_MESSAGES: dict[str, tuple[Scene, str, str, bool]] = {
    "C2C_MESSAGE_CREATE": (Scene.C2C, "", "user_openid", True),
    "GROUP_AT_MESSAGE_CREATE": (Scene.GROUP, "group_openid", "member_openid", True),
    "GROUP_MESSAGE_CREATE": (Scene.GROUP, "group_openid", "member_openid", False),
    "AT_MESSAGE_CREATE": (Scene.CHANNEL, "channel_id", "id", True),
    "MESSAGE_CREATE": (Scene.CHANNEL, "channel_id", "id", False),
    "DIRECT_MESSAGE_CREATE": (Scene.GUILD_DM, "guild_id", "id", True),
}
_PRESS = "INTERACTION_CREATE"


def parse(frame: Json, me: Me, now: datetime) -> InboundEvent:
    """Say what a dispatch holds. ``now`` stands in where QQ gives no time that can be read."""
    kind, data = frame.get("t"), frame.get("d")
    if kind not in _MESSAGES and kind != _PRESS:
        return Ignored(kind=storable(str(kind))[:100])
    if not isinstance(data, dict):
        raise TypeError(f"{kind} holds no object")
    return _press(data, me, now) if kind == _PRESS else _message(str(kind), data, me, now)


def place_of(frame: Json) -> Place | None:
    """Where an event gives the right to answer (besides messages and presses), None where it does not."""
    data = frame.get("d")
    if not isinstance(data, dict):
        return None
    match frame.get("t"):
        case "FRIEND_ADD" | "C2C_MSG_RECEIVE":
            return Place(Scene.C2C, data["openid"]) if is_id(data.get("openid")) else None
        case "GROUP_ADD_ROBOT" | "GROUP_MSG_RECEIVE":
            return Place(Scene.GROUP, data["group_openid"]) if is_id(data.get("group_openid")) else None
        case _:
            return None


def _message(kind: str, data: Json, me: Me, now: datetime) -> InboundEvent:
    scene, chat_field, sender_field, is_addressed = _MESSAGES[kind]
    author = data["author"]
    sender = _id(author, sender_field)
    place = Place(scene, _id(data, chat_field) if chat_field else sender)
    if author.get("bot") is True:
        return Ignored(kind="a bot's message")  # two bots that answer each other never end
    typed = _typed(data, place)
    text = typed or _spoken(data)
    files = tuple(_attachments(data, is_spoken=not typed))
    if not text and not files:
        return Ignored(kind="empty message")
    message_id = _id(data, "id")
    member = data.get("member")
    nick = _text(member, "nick") if isinstance(member, dict) else ""
    return InboundMessage(
        keys=(f"msg:{message_id}",),
        session_key=_key(place, me),
        sender_id=sender,
        sender_name=nick or _text(author, "username"),
        text=text,
        sent_at=_time(data.get("timestamp"), now),
        message_id=message_id,
        attachments=files,
        quote=_quote(data, me),
        is_addressed=is_addressed,
    )


def _press(data: Json, me: Me, now: datetime) -> InboundEvent:
    inner = data["data"]
    if inner.get("type") in (2001, 2002):
        return Ignored(kind="a query of settings")
    resolved = inner["resolved"]
    press_id = _id(data, "id")
    place, sender = _pressed_by(data, resolved)
    pressed = resolved["button_data"]
    if not isinstance(pressed, str):
        raise TypeError("button_data is not text")
    return Press(
        keys=(f"press:{press_id}",),
        session_key=_key(place, me),
        sender_id=sender,
        data=pressed,
        sent_at=_time(data.get("timestamp"), now),
        press_id=press_id,
        message_id=_text(resolved, "message_id"),  # told in guilds alone
    )


def _pressed_by(data: Json, resolved: Json) -> tuple[Place, str]:
    """Where and by whom. QQ names the scene twice, once in words and once as a number."""
    match data.get("scene"), data.get("chat_type"):
        case ("c2c", _) | (None, 2):
            sender = _id(data, "user_openid")
            return Place(Scene.C2C, sender), sender
        case ("group", _) | (None, 1):
            return Place(Scene.GROUP, _id(data, "group_openid")), _id(data, "group_member_openid")
        case ("guild", _) | (None, 0):
            return Place(Scene.CHANNEL, _id(data, "channel_id")), _id(resolved, "user_id")
        case other:
            raise ValueError(f"a press in no scene that we know: {other}")


def _key(place: Place, me: Me) -> SessionKey:
    return SessionKey("qq", place.kind, place.chat, account=me.account)


def _typed(data: Json, place: Place) -> str:
    text = _FACE.sub(lambda found: f"[{_face(found[1])}]", _text(data, "content"))
    if place.scene is Scene.CHANNEL:
        text = _MENTION.sub("", text, count=1) if _MENTION.match(text) else text
    return text.strip()  # where the mention was, a space is left


def _spoken(data: Json) -> str:
    """What QQ wrote down of voice messages."""
    spoken = [_text(each, "asr_refer_text") for each in _files(data)]
    return "\n".join(words for words in spoken if words).strip()


def _face(ext: str) -> str:
    """The name of a face, which QQ hides in JSON in base64."""
    try:
        name = json.loads(base64.b64decode(ext)).get("text")
    except (binascii.Error, ValueError, AttributeError, RecursionError):
        return "face"
    return name if isinstance(name, str) and name else "face"


def _quote(data: Json, me: Me) -> Quote | None:
    index, text = "", ""
    elements = data.get("msg_elements")
    if data.get("message_type") == _QUOTES and isinstance(elements, list) and elements:
        index, text = _text(elements[0], "msg_idx"), _text(elements[0], "content").strip()
    index = index or _named(data, "ref_msg_idx")
    ours = me.sent_text(index) if index else None
    if not text and ours is None:
        return None
    return Quote(text=text or ours or "", message_id=index, from_us=ours is not None)


def _named(data: Json, name: str) -> str:
    """A value in ``message_scene.ext``, which is a list of ``name=value``."""
    scene = data.get("message_scene")
    ext = scene.get("ext") if isinstance(scene, dict) else None
    for each in ext if isinstance(ext, list) else ():
        if isinstance(each, str) and each.startswith(f"{name}="):
            return each.removeprefix(f"{name}=")
    return ""


def _files(data: Json) -> list[Json]:
    files = data.get("attachments")
    if files is None:
        return []
    if not isinstance(files, list) or not all(isinstance(each, dict) for each in files):
        raise TypeError("attachments is not a list of objects")
    return files


def _attachments(data: Json, *, is_spoken: bool) -> Iterator[Attachment]:
    """``is_spoken``: what QQ wrote down of them is the text of the message."""
    for file in _files(data):
        kind, mime = _kind(_text(file, "content_type"))
        url = _text(file, "voice_wav_url") or _text(file, "url")
        if not url:
            continue
        size = file.get("size")
        yield Attachment(
            kind=kind,
            file_id=f"https:{url}" if url.startswith("//") else url,
            name=_text(file, "filename"),
            mime="audio/wav" if file.get("voice_wav_url") else mime,
            size=size if isinstance(size, int) and size > 0 else 0,
            is_written_down=is_spoken and bool(_text(file, "asr_refer_text").strip()),
        )


def _kind(content_type: str) -> tuple[AttachmentKind, str]:
    if content_type.startswith("image/"):
        return AttachmentKind.IMAGE, content_type
    if content_type.startswith("video/"):
        return AttachmentKind.VIDEO, content_type
    if content_type == "voice" or content_type.startswith("audio/"):
        return AttachmentKind.VOICE, content_type if "/" in content_type else ""
    return AttachmentKind.DOCUMENT, content_type if "/" in content_type else ""


def _text(holder: Json, name: str) -> str:
    value = holder.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} is not text")
    return value


def is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_ID_CHARS and value == storable(value)


def _id(holder: Json, name: str) -> str:
    """An id as text. Anything else would make keys that nobody can look up."""
    value = holder[name]
    if not is_id(value):
        raise TypeError(f"{name} is not an id")
    return str(value)


def _time(value: object, now: datetime) -> datetime:
    try:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) > len("20261231"):
            value = int(value)
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=_CHINA)).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return now
    return now
