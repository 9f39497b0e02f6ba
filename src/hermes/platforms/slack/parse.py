"""Parse Slack events into inbound events. Pure: raises on malformed input."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

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
    Press,
    Quote,
)
from hermes.core.text import without_name

COMMAND = "/hermes"
# A message of a person; every other subtype is a notice (joined, topic changed) or not for us.
_SPOKEN = frozenset({"", "file_share", "thread_broadcast", "me_message"})
_TS = re.compile(r"[0-9]{1,10}\.[0-9]{1,9}")
_ANGLED = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_GAPS = "\u200b"


@dataclass(frozen=True, slots=True)
class Me:
    """Who we are at Slack, and in which threads we take part (channel and thread)."""

    account: str
    team: str
    user: str
    name: str = ""
    takes_part: Callable[[str, str], bool] = lambda _channel, _thread: False


@dataclass(frozen=True, slots=True)
class Place:
    """Where in Slack's history an event stands; ``thread`` '' outside of threads."""

    channel: str
    ts: str
    thread: str = ""


def order(ts: str) -> tuple[int, int]:
    """Slack's times sort by their numbers, not as text."""
    seconds, _, rest = ts.partition(".")
    return int(seconds or 0), int(rest or 0)


def stamp(value: object) -> str:
    if not isinstance(value, str) or not _TS.fullmatch(value):
        raise ValueError("a time of Slack's is not one")
    return value


def text_of(raw: Json, key: str) -> str:
    value = raw[key]
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is not text")
    return value


def place_of(event: object) -> Place | None:
    """Where a message event stands, as far as it can be read: an edit or a deletion moves no mark."""
    if not isinstance(event, dict) or event.get("type") not in ("message", "app_mention"):
        return None
    if event.get("subtype") in ("message_changed", "message_deleted", "message_replied"):
        return None
    channel, ts, root = event.get("channel"), event.get("ts"), event.get("thread_ts")
    if not isinstance(channel, str) or not channel or not isinstance(ts, str) or not _TS.fullmatch(ts):
        return None
    is_reply = isinstance(root, str) and bool(_TS.fullmatch(root)) and root != ts
    return Place(channel, ts, str(root) if is_reply else "")


def channel_of(event: object) -> str:
    """Where a message event happened, an edit too: behind what was missed there it has to wait."""
    is_message = isinstance(event, dict) and event.get("type") in ("message", "app_mention")
    channel = event.get("channel") if is_message and isinstance(event, dict) else None
    return channel if isinstance(channel, str) else ""


def event(payload: Json, me: Me) -> InboundEvent:
    """An Events API payload."""
    inner = payload["event"]
    kind = text_of(inner, "type")
    if kind not in ("message", "app_mention"):
        return Ignored(kind)
    return message({**inner, "team": payload.get("team_id") or inner.get("team")}, me)


def message(raw: Json, me: Me) -> InboundEvent:
    """A message, live or from the history."""
    subtype = raw.get("subtype") or ""
    if subtype == "message_changed":
        return _edit(raw, me)
    if subtype not in _SPOKEN:
        return Ignored(f"message {subtype}")
    if raw.get("bot_id") or raw.get("user") == me.user:
        return Ignored("message of a bot")
    ts = stamp(raw["ts"])
    return _spoken(raw, me, (message_key(me, text_of(raw, "channel"), ts),))


def message_key(me: Me, channel: str, ts: str) -> str:
    return f"msg:{me.team}:{channel}:{ts}"


def _edit(raw: Json, me: Me) -> InboundEvent:
    """A person changed their words. Slack tells the same of links that were unfurled and of threads that grew."""
    now, before = raw["message"], raw.get("previous_message") or {}
    edited = now.get("edited") or {}
    if now.get("text") == before.get("text") or not edited or now.get("bot_id") or now.get("user") == me.user:
        return Ignored("message_changed")
    if (now.get("subtype") or "") not in _SPOKEN:
        return Ignored("message_changed")
    channel, ts = text_of(raw, "channel"), stamp(now["ts"])
    whole = {**now, "channel": channel, "channel_type": raw.get("channel_type")}
    return _spoken(whole, me, (_edit_key(me, channel, ts, stamp(edited["ts"])),), is_edit=True)


def _edit_key(me: Me, channel: str, ts: str, edited: str) -> str:
    return f"edit:{me.team}:{channel}:{ts}:{edited}"


def edits_in(past: Json, channel: str, me: Me) -> set[str]:
    """The keys of edits whose words the history shows already."""
    edited = past.get("edited")
    at = edited.get("ts") if isinstance(edited, dict) else None
    return {_edit_key(me, channel, past["ts"], at)} if isinstance(at, str) else set()


def _spoken(raw: Json, me: Me, keys: tuple[str, ...], *, is_edit: bool = False) -> InboundEvent:
    channel, ts, user = text_of(raw, "channel"), stamp(raw["ts"]), text_of(raw, "user")
    words = raw.get("text") or ""
    if not isinstance(words, str):
        raise TypeError("text is not text")
    files = tuple(_attachment(file) for file in raw.get("files") or ())
    shared = _shared(raw, me)
    text = readable(words, me)
    if not text.strip() and not files and shared is None:
        text = _plain_text(words, me).strip()  # who calls us by our name and says no more wants to be heard too
        if not text:
            return Ignored("empty message")
    root = stamp(raw["thread_ts"]) if raw.get("thread_ts") else ""
    thread = root if root != ts else ""
    kind = raw.get("channel_type")
    is_direct = kind == "im" or (kind is None and channel.startswith("D"))
    is_addressed = (
        is_direct
        or f"<@{me.user}>" in words  # somebody else's id may begin like ours
        or f"<@{me.user}|" in words
        or bool(thread and (raw.get("parent_user_id") == me.user or me.takes_part(channel, thread)))
    )
    kind = ChatKind.DM if is_direct else ChatKind.GROUP
    # In a channel a question opens a thread, and the talk goes on there.
    opens = ts if is_addressed and not is_direct and not thread else ""
    profile = raw.get("user_profile") or {}
    return InboundMessage(
        keys=keys,
        session_key=SessionKey("slack", kind, channel, thread or opens, account=me.account),
        sender_id=user,
        text=text,
        sent_at=datetime.fromtimestamp(float(ts), UTC),
        sender_name=str(profile.get("display_name") or profile.get("real_name") or ""),
        message_id=ts,
        attachments=files,
        quote=shared,
        is_addressed=is_addressed,
        is_edit=is_edit,
    )


def readable(words: str, me: Me) -> str:
    """Slack's notation as people read it; our own name at an end is no part of what is said to us."""
    mine = re.compile(re.escape(f"<@{me.user}") + r"(?:\|[^<>]*)?>")
    return _plain_text(without_name(words, mine), me)


def _plain_text(words: str, me: Me) -> str:
    plain = _ANGLED.sub(lambda found: _angled(found[1], found[2], found[3] or "", me), words)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace(_GAPS, "")


def _angled(mark: str, what: str, label: str, me: Me) -> str:
    match mark:
        case "@":
            return f"@{label or (me.name if what == me.user and me.name else what)}"
        case "#":
            return f"#{label or what}"
        case "!":
            return label or f"@{what.partition('^')[0]}"
        case _:
            address = what.removeprefix("mailto:").removeprefix("tel:")
            bare = address.partition("://")[2]
            return address if not label or label in (address, bare, what) else f"{label} ({address})"


def _shared(raw: Json, me: Me) -> Quote | None:
    """A message that somebody handed on: it stands beside their own words."""
    attachments = raw.get("attachments")
    for each in attachments if isinstance(attachments, list) else ():
        is_message = isinstance(each, dict) and bool(each.get("is_share") or each.get("is_msg_unfurl"))
        if is_message and isinstance(each.get("text"), str) and each["text"].strip():
            author = str(each.get("author_name") or "")
            from_us = each.get("author_id") == me.user
            return Quote(_plain_text(each["text"], me), author, str(each.get("ts") or ""), from_us=from_us)
    return None


def _attachment(file: Json) -> Attachment:
    mime = str(file.get("mimetype") or "")
    address = file.get("url_private_download") or file.get("url_private")
    return Attachment(
        kind=AttachmentKind.VOICE if file.get("subtype") == "slack_audio" else kind_of_type(mime),
        file_id=address if isinstance(address, str) and address else f"id:{text_of(file, 'id')}",
        name=str(file.get("name") or file.get("title") or "file"),
        mime=mime,
        size=int(file.get("size") or 0),
    )


def interaction(payload: Json, me: Me, now: datetime) -> InboundEvent:
    """A button that was pressed."""
    if payload.get("type") != "block_actions":
        return Ignored(str(payload.get("type") or "interactive"))
    action = payload["actions"][0]
    if action.get("type") != "button" or not action.get("value"):
        return Ignored("block_actions")
    shown, channel = payload.get("message") or {}, payload["channel"]
    where, user = text_of(channel, "id"), text_of(payload["user"], "id")
    ts = stamp(payload["container"]["message_ts"])
    root = str(shown.get("thread_ts") or payload["container"].get("thread_ts") or "")
    kind = "im" if where.startswith("D") or channel.get("name") == "directmessage" else "channel"
    return Press(
        keys=(f"press:{me.team}:{where}:{ts}:{user}:{stamp(action['action_ts'])}",),
        session_key=SessionKey(
            "slack",
            ChatKind.DM if kind == "im" else ChatKind.GROUP,
            where,
            root if root != ts else "",
            account=me.account,
        ),
        sender_id=user,
        data=text_of(action, "value"),
        sent_at=now,
        press_id=str(payload.get("response_url") or ""),
        message_id=ts,
        sender_name=str(payload["user"].get("username") or payload["user"].get("name") or ""),
    )


def slash(payload: Json, me: Me, now: datetime) -> InboundEvent:
    """``/hermes stop`` is ``/stop``, ``/hermes /model gpt-5`` too; ``/hermes`` is ``/help``, all else a question."""
    channel, user = text_of(payload, "channel_id"), text_of(payload, "user_id")
    is_direct = channel.startswith("D") or payload.get("channel_name") == "directmessage"
    typed = str(payload.get("text") or "").strip()
    return InboundMessage(
        keys=(f"slash:{me.team}:{text_of(payload, 'trigger_id')}",),
        session_key=SessionKey("slack", ChatKind.DM if is_direct else ChatKind.GROUP, channel, account=me.account),
        sender_id=user,
        text=_typed(text_of(payload, "command"), readable(typed, me)),
        sent_at=now,
        sender_name=str(payload.get("user_name") or ""),
    )


def _typed(command: str, words: str) -> str:
    if command != COMMAND:
        return f"{command} {words}".strip()
    if not words:
        return "/help"
    # One small word is a command; more than that is one only where it begins as commands do.
    return f"/{words}" if words.isascii() and words.isalpha() and words.islower() else words
