"""Read hermes-agent's `sessions/sessions.json` and transcripts. Unreadable lines are reported and skipped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.core.keys import ChatKind, SessionKey
from hermes.core.messages import ChatMessage, Image, Role, ToolCall
from hermes.core.text import storable
from hermes.store import codec
from hermes.store.sessions.imports import ImportedLine, ImportedSession

Json = Mapping[str, Any]

MAX_LINE_BYTES = 20_000_000
MAX_INDEX_BYTES = 50_000_000
INDEX = "sessions.json"
PLATFORMS = {"qqbot": "qq", "cli": "local", "tui": "local", "api_server": "api", "whatsapp_business": "whatsapp_cloud"}
"""Platforms that have another name there."""
KINDS = {"dm": ChatKind.DM, "private": ChatKind.DM, "channel": ChatKind.CHANNEL}
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "tool": Role.TOOL, "function": Role.TOOL}
_NOT_SAID = frozenset({"session_meta", "system", "developer"})


@dataclass(frozen=True, slots=True)
class OldTranscripts:
    """The transcripts to read and what the index knows of them, by session id."""

    files: tuple[Path, ...]
    index: Mapping[str, Json] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()


@dataclass(slots=True)
class Read:
    """One transcript. ``session`` is None where it holds nothing; ``our_id`` is set where it was written by us."""

    path: Path
    session: ImportedSession | None = None
    troubles: list[str] = field(default_factory=list)
    our_id: str = ""


def find(path: Path) -> OldTranscripts:
    """Find transcripts in a home, a `sessions` folder, an index or a file. Blocks."""
    if not path.exists():
        raise GatewayError(f"There is no {path}. Name a home, its sessions folder or a .jsonl file.")
    if path.is_file() and path.suffix == ".jsonl":
        files, folder = [path], path.parent
    else:
        folder = path.parent if path.is_file() else path
        folder = folder / "sessions" if (folder / "sessions").is_dir() else folder
        files = sorted(file for file in folder.glob("*.jsonl") if file.is_file())
    index, troubles = read_index(folder)
    if not files:
        troubles.append(f"{folder} holds no transcripts (*.jsonl).")
    return OldTranscripts(tuple(files), index, tuple(troubles))


def read_index(folder: Path) -> tuple[dict[str, Json], list[str]]:
    """What the index of a `sessions` folder knows, by session id, and what is wrong with it. Blocks."""
    path = folder / INDEX
    if not path.is_file() or path.is_symlink():
        return {}, []
    try:
        if path.stat().st_size > MAX_INDEX_BYTES:
            raise ValueError("it is too large")
        index = json.loads(path.read_bytes())
    except (ValueError, RecursionError, OSError) as error:
        return {}, [f"{path.name} cannot be read ({error}); whose the sessions are is not known."]
    entries = index.items() if isinstance(index, dict) else ()
    found: dict[str, Json] = {
        str(entry["session_id"]): {"session_key": key, **entry}
        for key, entry in entries
        if isinstance(entry, dict) and entry.get("session_id")
    }
    return found, []


def read(path: Path, source: OldTranscripts) -> Read:
    """Read one transcript into our own messages. Blocks."""
    made = Read(path)
    entry = source.index.get(path.stem, {})
    lines = _lines(path, made)
    first = next(lines, None)
    if first is None:
        return made
    if "seq" in first[1] and "session" in first[1]:
        made.our_id = str(first[1]["session"])
        return made
    began = time_of(entry.get("created_at")) or path.stat().st_mtime
    made.session = build(
        path.stem,
        chain([first], lines),
        entry,
        began=began,
        is_current=bool(entry),
        note=lambda trouble: made.troubles.append(f"{path.name} {trouble}"),
    )
    return made


def build(
    source_id: str,
    lines: Iterable[tuple[int, Json]],
    entry: Json,
    *,
    platform: str = "",
    began: float,
    is_current: bool,
    note: Callable[[str], object],
) -> ImportedSession | None:
    """Make our session of theirs. None: nothing was said in it. ``note`` is told of lines that say nothing."""
    made: list[ImportedLine] = []
    names, exchange, at = dict[str, str](), 0, began
    for number, line in lines:
        platform = platform or str(line.get("platform") or "")
        at = time_of(line.get("timestamp")) or at
        message = _message(line, names)
        if message is None:
            if line.get("role") not in _NOT_SAID:
                note(f"line {number}: {line.get('role')!r} says nothing; left out.")
            continue
        exchange += message.role is Role.USER
        made.append(ImportedLine(max(1, exchange), codec.dump(message), at))
    if not made:
        return None
    key, user_id = _key(source_id, entry, platform)
    name = hashlib.sha256(source_id.encode()).hexdigest()[:16]
    title = storable(str(entry.get("title") or ""))
    first = min(began, made[0].at) if began else made[0].at
    return ImportedSession(f"s_{name}", str(key), title, first, user_id, is_current, made)


def _lines(path: Path, made: Read) -> Iterator[tuple[int, Json]]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE_BYTES)
                made.troubles.append(f"{path.name} line {number}: too long (over {MAX_LINE_BYTES:,} bytes); left out.")
                continue
            if not raw.strip():
                continue
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):  # not UTF-8 is one too
                made.troubles.append(f"{path.name} line {number}: not JSON; left out.")
                continue
            if isinstance(line, dict):
                yield number, line
            else:
                made.troubles.append(f"{path.name} line {number}: not a message; left out.")


def _message(line: Json, names: dict[str, str]) -> ChatMessage | None:
    """A line of the transcript, or None where nothing was said. ``names`` remembers which call is of which tool."""
    role = _ROLES.get(str(line.get("role") or ""))
    if role is None:
        return None
    text, images = _content(line.get("content"))
    calls = tuple(_calls(line.get("tool_calls"))) if role is Role.ASSISTANT else ()
    names.update({call.id: call.name for call in calls})
    call_id = str(line.get("tool_call_id") or "") if role is Role.TOOL else ""
    if not (text or images or calls or call_id):
        return None
    name = str(line.get("tool_name") or line.get("name") or names.get(call_id, "")) if role is Role.TOOL else ""
    return ChatMessage(role, text, calls, storable(call_id), images, storable(name))


def _content(content: object) -> tuple[str, tuple[Image, ...]]:
    """Text, or a list of parts with text and pictures."""
    if isinstance(content, str):
        return storable(content), ()
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [str(part["text"]) for part in parts if isinstance(part.get("text"), str)]
    pictures = (part["image_url"] for part in parts if "image_url" in part)
    urls = [str(each.get("url") if isinstance(each, dict) else each) for each in pictures]
    return storable("\n".join(texts)), tuple(Image(storable(url)) for url in urls if url.startswith(("http", "data:")))


def _calls(calls: object) -> Iterator[ToolCall]:
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict) and function.get("name"):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
            yield ToolCall(storable(str(call.get("id") or "")), storable(str(function["name"])), storable(text))


def _key(source_id: str, entry: Json, platform: str) -> tuple[SessionKey, str]:
    """The conversation it belongs to and whose it is alone, as far as the index says so."""
    given = entry.get("origin")
    origin: Json = given if isinstance(given, dict) else _from_key(str(entry.get("session_key") or ""))
    platform = str(origin.get("platform") or entry.get("platform") or platform or "local")
    platform = PLATFORMS.get(platform, platform)
    chat = storable(str(origin.get("chat_id") or ""))
    if not chat:
        return SessionKey(platform, ChatKind.DM, f"imported-{source_id}"), ""
    kind = KINDS.get(str(origin.get("chat_type") or entry.get("chat_type") or "dm"), ChatKind.GROUP)
    thread = storable(str(origin.get("thread_id") or ""))
    user = storable(str(origin.get("user_id") or (chat if kind is ChatKind.DM else "")))
    is_shared = kind is ChatKind.CHANNEL or bool(thread and kind is ChatKind.GROUP)
    person = user if kind is ChatKind.GROUP and not is_shared else ""
    return SessionKey(platform, kind, chat, thread, person), "" if is_shared else user


def _from_key(text: str) -> Json:
    """`agent:main:telegram:group:-100:55`: an index without origins says it in its keys alone."""
    word, _, rest = text.partition(":")
    parts = rest.split(":")
    if word != "agent" or len(parts) < 4:
        return {}
    _, platform, kind, chat, *more = parts
    entry = {"platform": platform, "chat_type": kind, "chat_id": chat}
    if kind in ("dm", "private"):
        return {**entry, "thread_id": more[0] if more else ""}
    return {**entry, "thread_id": more[0] if len(more) > 1 else "", "user_id": more[-1] if more else ""}


def time_of(given: object) -> float | None:
    """Read a time: seconds, or a time in ISO form; one without a zone is of this machine."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given) if 0 < given < 1e11 else None
    try:
        return datetime.fromisoformat(str(given)).timestamp() if given else None
    except (ValueError, OverflowError, OSError):
        return None
