"""Parse pressed buttons and slash commands. Pure: raises on malformed input."""

from __future__ import annotations

from hermes.core.messages import Ignored, InboundEvent, InboundMessage, Json, Press
from hermes.platforms.discord.parse import (
    Me,
    Room,
    RoomKind,
    key_of,
    listed,
    name_of,
    room_of,
    snowflake,
    text_of,
    when,
)

_BUTTON = 2


def interaction(raw: Json, me: Me) -> InboundEvent:
    match raw["type"]:
        case 2:
            return _slash(raw, me)
        case 3:
            return _press(raw, me)
        case kind:
            return Ignored(f"interaction {str(kind)[:20]}")


def _press(raw: Json, me: Me) -> InboundEvent:
    data = raw["data"]
    if data.get("component_type") != _BUTTON:
        return Ignored("interaction with something else than a button")
    user = _who(raw)
    return Press(
        keys=(f"press:{snowflake(raw['id'])}",),
        session_key=key_of(_room_of_interaction(raw), me),
        sender_id=snowflake(user["id"]),
        data=text_of(data["custom_id"]),
        sent_at=when(raw["id"]),
        press_id=f"{snowflake(raw['application_id'])}/{text_of(raw['token'])}",
        message_id=snowflake(raw["message"]["id"]),
        sender_name=name_of(user, raw.get("member")),
        language=str(raw.get("locale") or ""),
    )


def _slash(raw: Json, me: Me) -> InboundEvent:
    """``/model`` with what was written after it; a command says who it is for, so nobody has to be named."""
    data, user = raw["data"], _who(raw)
    if data.get("type", 1) != 1:
        return Ignored("command of a menu")
    room = _room_of_interaction(raw)
    if not me.rules.hears(room):
        return Ignored("command in a channel that is not heard")
    return InboundMessage(
        keys=(f"slash:{snowflake(raw['id'])}",),
        session_key=key_of(room, me),
        sender_id=snowflake(user["id"]),
        text=typed(data),
        sent_at=when(raw["id"]),
        sender_name=name_of(user, raw.get("member")),
        language=str(raw.get("locale") or ""),
    )


def typed(data: Json) -> str:
    """A slash command as it would be written by hand."""
    words = [str(each["value"]) for each in listed(data.get("options")) if isinstance(each, dict) and "value" in each]
    return f"/{' '.join([text_of(data['name']), *words])}".strip()


def _who(raw: Json) -> Json:
    """In a server it is told inside of the member, elsewhere alone."""
    user = raw["user"] if raw.get("user") else raw["member"]["user"]
    if not isinstance(user, dict):
        raise TypeError("nobody did it")
    return user


def _room_of_interaction(raw: Json) -> Room:
    channel = raw.get("channel")
    if isinstance(channel, dict) and "type" in channel:
        return room_of(channel)
    kind = RoomKind.CHANNEL if raw.get("guild_id") else RoomKind.DIRECT
    return Room(snowflake(raw["channel_id"]), kind)
