"""Tools at work, told beside the answer and never inside it: a model that reads such marks learns to write them."""

from __future__ import annotations

from typing import Any

import orjson

from hermes.core.messages import Json
from hermes.core.text import one_line
from hermes.services.events import ToolEnded, ToolStarted

EVENT = "hermes.tool.progress"
LABEL_LENGTH = 80
EMOJI = {"read_file": "📖", "search_files": "🔎", "terminal": "💻"}
ANY_TOOL = "⚙️"


class ToolProgress:
    """Exactly two events for each call: running, then completed, also where the turn ends in the middle of one."""

    def __init__(self) -> None:
        self._open: dict[str, Json] = {}
        self._seen: set[str] = set()

    def started(self, event: ToolStarted) -> Json | None:
        """None when this call was told before."""
        if event.call_id in self._seen:
            return None
        self._seen.add(event.call_id)
        shown = {
            "tool": event.name,
            "emoji": EMOJI.get(event.name, ANY_TOOL),
            "label": label(event.name, event.arguments),
            "toolCallId": event.call_id,
        }
        self._open[event.call_id] = shown
        return _event(shown, is_done=False)

    def ended(self, event: ToolEnded) -> Json | None:
        shown = self._open.pop(event.call_id, None)
        return None if shown is None else _event(shown, is_done=True)

    def close(self) -> list[Json]:
        """The second event of every call that the end of the turn cut off."""
        left = [_event(shown, is_done=True) for shown in self._open.values()]
        self._open.clear()
        return left


def _event(shown: Json, *, is_done: bool) -> Json:
    """``event`` is the form in which Open WebUI takes a line of status from a stream."""
    words = f"{shown['emoji']} {shown['tool']}" + ("" if shown["label"] == shown["tool"] else f": {shown['label']}")
    status = {"type": "status", "data": {"description": words, "done": is_done}}
    return {**shown, "status": "completed" if is_done else "running", "event": status}


def label(name: str, arguments: str) -> str:
    """What the call is about, in a few words: its first text argument, or the tool's name."""
    try:
        given: Any = orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return name
    values = given.values() if isinstance(given, dict) else ()
    text = next((value for value in values if isinstance(value, str) and value.strip()), "")
    return one_line(text, LABEL_LENGTH) or name
