"""Render Discord's JSON and map its refusals to our errors. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from http import HTTPStatus

import orjson

from hermes.core.errors import (
    CredentialsError,
    OutcomeUnknownError,
    PlatformError,
    RateLimitedError,
    RejectedError,
    UnreachableError,
)
from hermes.core.i18n.failures import sentence
from hermes.core.messages import (
    REPEAT_MARK,
    Button,
    Capabilities,
    Ignored,
    InboundEvent,
    Json,
    OutboundMessage,
    Rate,
    Rates,
    TextUnit,
    Unreadable,
    dump_event,
    read,
    unreadable,
)
from hermes.core.ports import CommandHint
from hermes.core.text import length, trim
from hermes.platforms.discord import interactions, media
from hermes.platforms.discord import parse as reading
from hermes.platforms.discord.markdown import render
from hermes.platforms.discord.parse import Me, Room

TEXT_LIMIT = 2000
NONCE_LIMIT = 25
LABEL_LIMIT = 80
CUSTOM_ID_LIMIT = 100
ROW_LIMIT = 5
MAX_ROWS = 5
THREAD_NAME_LIMIT = 100
THREAD_MINUTES = 1440
MAX_COMMANDS = 100
COMMAND_NAME_LIMIT = 32
SUMMARY_LIMIT = 100
OPTION = "text"
DEFAULT_RETRY_SECONDS = 30.0
MAX_RETRY_SECONDS = 3600.0
EPHEMERAL = 64
VOICE_MESSAGE = 8192

CAPABILITIES = Capabilities(
    # What is left when a repeated message has to carry its mark. Discord does not say how it counts; this is the
    # stricter way.
    text_limit=TEXT_LIMIT - len(REPEAT_MARK),
    text_unit=TextUnit.UTF16,
    caption_limit=TEXT_LIMIT - len(REPEAT_MARK),
    edits=True,
    typing=True,
    buttons=True,
    media=True,
    voice=True,
    album_limit=media.ALBUM_LIMIT,
    threads=True,
    catch_up=True,
    command_menu=True,
    idempotent_sends=True,
    edit_pause_seconds=1.2,
    # Five messages in five seconds in a channel, edits among them.
    rates=Rates(in_all=Rate(45, 1.0), in_chat=Rate(5, 5.0)),
    # It wants us to connect anew every few hours.
    ends_connections=True,
    # A heartbeat is answered every 41 seconds, and one may be missed.
    silence_seconds=100.0,
    upload_limit_bytes=media.UPLOAD_LIMIT,
    download_limit_bytes=media.DOWNLOAD_LIMIT,
)

_ADVICE = {
    10003: "There is no such channel, or the bot is not in it. The id of a person is none: they have to write first.",
    10008: "There is no such message any more.",
    50001: "The bot may not see the channel: give it the permission View Channels there.",
    50007: "This person takes no direct messages from the bot: it shares no server with them, or they forbid it.",
    50013: "The bot lacks a permission there: Send Messages, Attach Files or Create Public Threads.",
    50083: "The thread is archived and closed.",
    40005: "The file is too large for that server.",
    20028: "Too much was written in that channel.",
}
THREAD_EXISTS = 160004
UNKNOWN_CHANNEL = 10003
_OLD_INTERACTION = 50027  # its own token is too old; that of the bot is not in question

_PORTAL = "discord.com/developers/applications, your application, Bot"
_DISALLOWED_INTENTS = 4014
_SWITCH = f"Message Content Intent ({_PORTAL}, Privileged Gateway Intents)"
_FATAL = {
    4004: f"Discord does not know the token any more. Check DISCORD_BOT_TOKEN: {_PORTAL}, Reset Token.",
    4010: "Discord refused the shard that was asked for; Hermes uses none.",
    4011: "The bot is in so many servers that Discord wants it in shards, which Hermes does not do.",
    4012: "Discord does not speak this version of its gateway any more.",
    4013: "Discord refused the intents that were asked for as invalid.",
    _DISALLOWED_INTENTS: "The bot may not read messages: its Message Content Intent is off.",
}
# What is typed or switched where the token is the right one.
_CURES = {
    4010: "update hermes-gateway",
    4011: "take the bot out of some servers",
    4012: "update hermes-gateway",
    4013: "update hermes-gateway",
    _DISALLOWED_INTENTS: f"switch on {_SWITCH}",
}
FATAL_CODES = frozenset(_FATAL)
_MAY_READ = (1 << 18) | (1 << 19)  # flags of an application: all servers, and fewer than a hundred


class RefusedError(RejectedError):
    """Discord read the request and said no; ``code`` is its own number for why."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


# In


def understand(event: str, data: object, room: Room | None, me: Me) -> InboundEvent:
    """Parse a dispatch; what cannot be read is stored raw under a stable key."""
    match event:
        case "MESSAGE_CREATE" if room is not None:
            return _read(reading.message, data, room, me)
        case "MESSAGE_UPDATE" if room is not None:
            return _read(reading.edit, data, room, me)
        case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
            return keep_unreadable(data, "no channel")
        case "INTERACTION_CREATE":
            return _read(interactions.interaction, data, me)
        case _:
            return Ignored(event[:50])


def past(message: object, room: Room, me: Me) -> InboundEvent:
    """Parse a message of the history."""
    return _read(reading.message, message, room, me)


def _read(parse: Callable[..., InboundEvent], data: object, *context: object) -> InboundEvent:
    if not isinstance(data, dict):
        return keep_unreadable(data, "no object")
    return read(parse, data, *context, dump=_dump)


def keep_unreadable(raw: object, reason: str) -> Unreadable:
    return unreadable(dump_event(raw, _dump), reason)


def _dump(raw: object) -> str:
    return orjson.dumps(raw).decode()


# Out


def text_of(message: OutboundMessage) -> str:
    """As Discord is to show it. What grew too long by being rendered is shown as it was written."""
    room = TEXT_LIMIT - len(REPEAT_MARK)
    dump_event = render(message.text)
    dump_event = dump_event if length(dump_event, TextUnit.UTF16) <= room else message.text
    return f"{REPEAT_MARK}{dump_event}" if message.is_repeat and not message.replaces else dump_event


def post(message: OutboundMessage) -> Json:
    """The body of a new message."""
    body = _content(message)
    if message.idempotency_key:  # with a nonce, Discord shows a repeated message once and answers with the first
        name = hashlib.sha256(message.idempotency_key.encode("utf-8", "surrogatepass")).hexdigest()[:NONCE_LIMIT]
        body |= {"nonce": name, "enforce_nonce": True}
    # The message that a thread was opened under stands outside of it.
    if message.reply_to and message.reply_to != message.target.thread:
        body["message_reference"] = {"message_id": message.reply_to, "fail_if_not_exists": False}
    return body


def change(message: OutboundMessage) -> Json:
    """The body that puts a text in place of an earlier one. Buttons that are not named again would stay."""
    return {"components": [], **_content(message)}


def _content(message: OutboundMessage) -> Json:
    body: Json = {"allowed_mentions": {"parse": ["users"], "replied_user": True}}
    if text := text_of(message):
        body["content"] = text
    if message.buttons:
        body["components"] = buttons(message.buttons)
    return body


def buttons(rows: tuple[tuple[Button, ...], ...]) -> list[Json]:
    short = [row[at : at + ROW_LIMIT] for row in rows for at in range(0, len(row), ROW_LIMIT)]
    return [{"type": 1, "components": [_button(button) for button in row]} for row in short[:MAX_ROWS] if row]


def _button(button: Button) -> Json:
    label = trim(button.label, LABEL_LIMIT, TextUnit.UTF16) or "…"
    return {"type": 2, "style": 2, "label": label, "custom_id": button.data[:CUSTOM_ID_LIMIT]}


def thread(name: str) -> Json:
    words = " ".join(name.split())
    return {
        "name": trim(words, THREAD_NAME_LIMIT, TextUnit.UTF16) or "…",
        "auto_archive_duration": THREAD_MINUTES,
    }


def commands(hints: Sequence[CommandHint]) -> list[Json]:
    """A menu as Discord takes it: names in small letters, a summary with each, at most a hundred."""
    named = {hint.name: hint for hint in hints if _is_command_name(hint.name)}
    return [
        {
            "name": hint.name,
            "type": 1,
            "description": trim(" ".join(hint.summary.split()) or hint.name, SUMMARY_LIMIT, TextUnit.UTF16),
            "options": [{"type": 3, "name": OPTION, "description": "What is written after it", "required": False}],
        }
        for hint in list(named.values())[:MAX_COMMANDS]
    ]


def _is_command_name(name: str) -> bool:
    letters = name.replace("-", "").replace("_", "")
    return 1 <= len(name) <= COMMAND_NAME_LIMIT and letters.isalnum() and name == name.lower()


def same_commands(dump_event: object, wanted: Sequence[Json]) -> bool:
    """Tell whether Discord shows exactly these commands already."""
    if not isinstance(dump_event, list) or not all(isinstance(each, dict) for each in dump_event):
        return False
    return sorted(map(_essence, dump_event)) == sorted(map(_essence, wanted))


def _essence(command: Json) -> str:
    options = [
        {key: option.get(key) for key in ("type", "name", "description")} | {"required": bool(option.get("required"))}
        for option in command.get("options") or ()
        if isinstance(option, dict)
    ]
    essence = {"name": command.get("name"), "type": command.get("type", 1), "description": command.get("description")}
    return orjson.dumps(essence | {"options": options}, option=orjson.OPT_SORT_KEYS).decode()


# Refusals


def refusal(what: str, status: int, code: int, text: str, retry_after: float | None = None) -> PlatformError:
    reason = f"Discord refused to {what}: {text or status}"[:500].rstrip(".")
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        seconds = DEFAULT_RETRY_SECONDS if retry_after is None else min(max(0.0, retry_after), MAX_RETRY_SECONDS)
        return RateLimitedError(reason, retry_after=seconds)
    if status == HTTPStatus.UNAUTHORIZED and code != _OLD_INTERACTION:
        return CredentialsError(f"{sentence(reason)} Check DISCORD_BOT_TOKEN: {_PORTAL}, Reset Token.")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return OutcomeUnknownError(f"{reason} ({status}).")
    if not code and not text:
        return UnreachableError(f"What answered is not Discord ({status}). Check DISCORD_BASE_URL and the proxy.")
    advice = _ADVICE.get(code, "")
    return RefusedError(f"{reason} ({code}).{' ' if advice else ''}{advice}", code)


def farewell(code: int, reason: str = "") -> PlatformError:
    """Why Discord closed the socket, and who acts."""
    if code in _FATAL:
        return CredentialsError(_FATAL[code], cure=_CURES.get(code, ""))
    words = f" reason={reason[:100]}" if reason else ""
    if code == 4008:  # too many frames of ours
        return RateLimitedError(f"WebSocket closed: code={code}{words}", retry_after=60.0)
    return UnreachableError(f"WebSocket closed: code={code}{words}")


def check_intents(application: Json) -> None:
    """Raise what the gateway would close with, where the application may not read messages."""
    flags = application.get("flags")
    if isinstance(flags, int) and not flags & _MAY_READ:
        raise farewell(_DISALLOWED_INTENTS)
