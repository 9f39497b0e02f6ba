"""Read the sessions of OpenClaw: JSON lines beside an index, or a database for each agent."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

from hermes.core.text import one_line, storable
from hermes.hosting.importers import hermes_agent
from hermes.hosting.importers.found import FoundHome
from hermes.hosting.importers.hermes_agent import Json
from hermes.hosting.importers.source import SourceHome, UnreadableError, rows
from hermes.store.sessions.imports import ImportedSession

PLATFORMS = {
    "qqbot": "qq",
    "openclaw-weixin": "weixin",
    "webchat": "local",
    "main": "local",
    "lark": "feishu",
}
"""Channels that are called otherwise here."""
KINDS = {"direct": "dm", "dm": "dm", "group": "group", "channel": "channel", "room": "channel"}
MAX_TRANSCRIPT_BYTES = 200_000_000
MAX_EVENT_BYTES = 20_000_000


def agents(source: SourceHome) -> list[str]:
    return [name for name in source.names("agents") if source.is_folder("agents", name)]


def bare_id(channel: str, given: str) -> str:
    """``telegram:42``, ``tg:42`` and ``user:42`` are 42."""
    first, colon, rest = given.strip().partition(":")
    is_prefix = first.casefold() in (channel.casefold(), "tg", "user", "channel", "group", "chat", "discord", "slack")
    return bare_id(channel, rest) if colon and is_prefix and rest else given.strip()


def read_sessions(source: SourceHome, home: FoundHome) -> Iterator[ImportedSession]:
    """Read the sessions of every agent, one by one. What is in both forms is taken from the database."""
    for agent in agents(source):
        known: set[str] = set()
        database = ("agents", agent, "agent", "openclaw-agent.sqlite")
        if source.is_file(*database):
            try:
                with source.database(*database) as connection:
                    for session in _of_database(connection, home):
                        known.add(session.id)
                        yield session
            except UnreadableError as error:
                home.leave_out("sessions", "/".join(database), str(error))
        for session in _of_files(source, agent, home):
            if session.id not in known:
                yield session


# Files


def _of_files(source: SourceHome, agent: str, home: FoundHome) -> Iterator[ImportedSession]:
    folder = ("agents", agent, "sessions")
    index: dict[str, tuple[str, Json]] = {}
    if source.is_file(*folder, "sessions.json"):
        try:
            stored = source.json(*folder, "sessions.json", most=50_000_000)
        except UnreadableError as error:
            home.leave_out("sessions", f"{agent}/sessions.json", str(error))
            stored = {}
        for key, entry in stored.items() if isinstance(stored, dict) else ():
            if isinstance(entry, dict) and entry.get("sessionId"):
                index[str(entry["sessionId"])] = str(key), entry
    for name in source.names(*folder):
        if not name.endswith(".jsonl"):
            continue
        try:
            raw = source.read(*folder, name, most=MAX_TRANSCRIPT_BYTES)
        except UnreadableError as error:
            home.leave_out("sessions", name, str(error))
            continue
        session_id = name.removesuffix(".jsonl")
        key, entry = index.get(session_id, ("", {}))
        note = partial(home.leave_out, "sessions", name)
        events = _parsed(raw.split(b"\n"), note)
        session = _build(session_id, events, key, entry, is_current=bool(key), note=note)
        if session is not None:
            yield session


def _parsed(lines: Iterable[bytes | str], note: Callable[[str], object]) -> Iterator[tuple[int, Json]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            note(f"line {number}: not JSON; left out.")
            continue
        if isinstance(data, dict):
            yield number, data


# The database


def _of_database(connection: sqlite3.Connection, home: FoundHome) -> Iterator[ImportedSession]:
    nodes: dict[str, Json] = {}
    current: set[str] = set()
    for row in rows(connection, "session_nodes", ("session_key", "current_session_id", "entry_json", "label")):
        entry = _json(row.get("entry_json"))
        nodes[str(row.get("session_key"))] = {**entry, "label": row.get("label") or entry.get("label")}
        current.add(str(row.get("current_session_id")))
    chats = {
        str(row.get("conversation_id")): row
        for row in rows(connection, "conversations", ("conversation_id", "channel", "kind", "peer_id", "thread_id"))
    }
    wanted = ("session_id", "session_key", "primary_conversation_id", "display_name", "created_at", "channel")
    for row in list(rows(connection, "session_windows", wanted, "ORDER BY created_at, session_id")):
        session_id, key = str(row.get("session_id")), str(row.get("session_key") or "")
        note = partial(home.leave_out, "sessions", session_id)
        events = enumerate(_events(connection, session_id, note), 1)
        entry = dict(nodes.get(key, {}))
        if chat := chats.get(str(row.get("primary_conversation_id"))):
            entry["conversation"] = chat
        entry.setdefault("displayName", row.get("display_name"))
        session = _build(session_id, events, key, entry, is_current=session_id in current, note=note)
        if session is not None:
            yield session


def _events(connection: sqlite3.Connection, session_id: str, note: Callable[[str], object]) -> Iterator[Json]:
    packed = 0
    wanted = ("event_json", "event_zstd")
    for row in list(rows(connection, "transcript_events", wanted, "WHERE session_id = ? ORDER BY seq", session_id)):
        text = row.get("event_json")
        if text is None and row.get("event_zstd"):
            text = _unpacked(row["event_zstd"])
        if text is None:
            packed += 1
            continue
        data = _json(text)
        if data:
            yield data
    if packed:
        note(f"{packed} lines are compressed in a way that this Python cannot read (3.14 can); left out.")


def _unpacked(raw: object) -> str | None:
    """Zstandard is part of Python 3.14; None where it is missing, or the bytes are no such thing."""
    try:
        zstd = import_module("compression.zstd")
    except ImportError:
        return None
    try:
        made = zstd.ZstdDecompressor().decompress(bytes(raw), MAX_EVENT_BYTES)  # type: ignore[call-overload] # or TypeError
    except (zstd.ZstdError, EOFError, TypeError):
        return None
    return str(made.decode("utf-8", "replace"))


def _json(text: object) -> dict[str, Any]:
    try:
        data = json.loads(str(text))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


# One session


def _build(
    session_id: str,
    events: Iterable[tuple[int, Json]],
    key: str,
    entry: Json,
    *,
    is_current: bool,
    note: Callable[[str], object],
) -> ImportedSession | None:
    path = _active([(number, event) for number, event in events if event.get("type") != "session"])
    lines = [(number, line) for number, event in path if (line := _line(event)) is not None]
    title = storable(str(entry.get("label") or entry.get("displayName") or ""))
    about: dict[str, Any] = {"title": one_line(title, 200) if title else ""}
    origin = _origin(key, entry)
    if origin:
        about["origin"] = origin
    began = next((at for _, line in lines if (at := line["timestamp"])), 0.0)
    return hermes_agent.build(
        f"openclaw:{session_id}",
        lines,
        about,
        platform=str(origin.get("platform") or "local"),
        began=began,
        is_current=is_current and bool(origin),
        note=note,
    )


def _active(events: list[tuple[int, Json]]) -> list[tuple[int, Json]]:
    """The branch that ends in the newest entry; where entries name no parents, all of them."""
    by_id = {str(event["id"]): (number, event) for number, event in events if event.get("id")}
    if not by_id or not any(event.get("parentId") for _, event in events):
        return events
    found: list[tuple[int, Json]] = []
    at: object = next(str(event["id"]) for _, event in reversed(events) if event.get("id"))
    seen: set[str] = set()
    while at and str(at) in by_id and str(at) not in seen:
        seen.add(str(at))
        found.append(by_id[str(at)])
        at = by_id[str(at)][1].get("parentId")
    return found[::-1]


def _line(event: Json) -> dict[str, Any] | None:
    """A message in the form that hermes-agent has too; None for what is no message."""
    message = event.get("message")
    if event.get("type") not in ("message", None) or not isinstance(message, dict):
        return None
    role = {"toolResult": "tool"}.get(str(message.get("role")), str(message.get("role") or ""))
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    calls = [
        {"id": part.get("id"), "function": {"name": part.get("name"), "arguments": part.get("arguments")}}
        for part in parts
        if part.get("type") == "toolCall"
    ]
    texts = [part for part in parts if part.get("type") in ("text", "image_url")]
    return {
        "role": role,
        "content": content if isinstance(content, str) else texts,
        "tool_calls": calls,
        "tool_call_id": message.get("toolCallId"),
        "tool_name": message.get("toolName"),
        "timestamp": _time(message.get("timestamp")) or _time(event.get("timestamp")),
    }


def _time(given: object) -> float | None:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given / 1000 if 1e11 < given < 1e14 else None
    try:
        return datetime.fromisoformat(str(given).replace("Z", "+00:00")).astimezone(UTC).timestamp() if given else None
    except (ValueError, OverflowError, OSError):
        return None


def _origin(key: str, entry: Json) -> Json:
    """The chat of a session, from its conversation, its key, or where its last answer went."""
    chat = entry.get("conversation")
    if isinstance(chat, Mapping) and chat.get("peer_id"):
        channel, peer = str(chat.get("channel") or ""), str(chat["peer_id"])
        return _chat(channel, str(chat.get("kind") or "direct"), peer, str(chat.get("thread_id") or ""))
    word, _, rest = key.partition(":")
    parts = rest.split(":")
    if word == "agent" and len(parts) >= 4 and parts[2] in KINDS:
        thread = parts[5] if len(parts) >= 6 and parts[4] in ("topic", "thread") else ""
        return _chat(parts[1], parts[2], parts[3], thread)
    delivery = entry.get("delivery")
    last = entry.get("deliveryContext") or (delivery.get("context") if isinstance(delivery, dict) else None)
    about: Json = last if isinstance(last, dict) else {"channel": entry.get("lastChannel"), "to": entry.get("lastTo")}
    if about.get("channel") and about.get("to") and about["channel"] != "webchat":
        kind = str(entry.get("chatType") or "direct")
        return _chat(str(about["channel"]), kind, bare_id(str(about["channel"]), str(about["to"])), "")
    return {}


def _chat(channel: str, kind: str, chat: str, thread: str) -> Json:
    kind = KINDS.get(kind, "dm")
    made = {
        "platform": PLATFORMS.get(channel, channel),
        "chat_type": kind,
        "chat_id": bare_id(channel, chat),
        "thread_id": thread,
    }
    return {**made, "user_id": made["chat_id"]} if kind == "dm" else made
