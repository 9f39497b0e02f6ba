"""Render the progress of tools: none, each new tool, every call, or with results."""

from __future__ import annotations

import json

from hermes.config.agent_settings import ToolProgressMode
from hermes.core.dataclasses import dataclass
from hermes.core.text import one_line

COMMAND_SHOWN = 50
ARGUMENTS_SHOWN = 200
RESULT_SHOWN = 120
_EMOJI = {
    "terminal": "💻",
    "process": "💻",
    "execute_code": "🐍",
    "read_file": "📖",
    "write_file": "✍️",
    "patch": "🔧",
    "search_files": "🔎",
    "session_search": "🔎",
    "web_search": "🌐",
    "web_extract": "🌐",
    "vision": "👁️",
    "memory": "🧠",
    "todo": "📋",
    "delegate_task": "🧵",
    "send_message": "✉️",
    "text_to_speech": "🔊",
    "skill_view": "📚",
    "skills_list": "📚",
    "skill_manage": "📚",
}


@dataclass(slots=True)
class ProgressLine:
    call_id: str
    name: str
    shown: str


def mode_of(chosen: str, configured: ToolProgressMode) -> ToolProgressMode:
    """A chat's own choice, else the configured one; a word of a newer version is none."""
    return ToolProgressMode(chosen) if chosen in list(ToolProgressMode) else configured


def started(lines: list[ProgressLine], mode: ToolProgressMode, call_id: str, name: str, arguments: str) -> None:
    if mode is ToolProgressMode.OFF or (mode is ToolProgressMode.NEW and lines and lines[-1].name == name):
        return
    shown = progress_line(name, arguments)
    if mode is ToolProgressMode.VERBOSE:
        command = _command(arguments) if name == "terminal" else ""
        shown = f"{_emoji(name)} {name} {_quoted(command or arguments, ARGUMENTS_SHOWN)}"
    lines.append(ProgressLine(call_id, name, shown))


def ended(lines: list[ProgressLine], mode: ToolProgressMode, call_id: str, result: str) -> None:
    """Where all is wanted, the first line of the result stands below its call."""
    line = next((line for line in reversed(lines) if line.call_id == call_id), None)
    first = next((text for text in result.splitlines() if text.strip()), "")
    if line is not None and mode is ToolProgressMode.VERBOSE and first:
        line.shown += f"\n↳ {_quoted(first, RESULT_SHOWN)}"


def progress_line(name: str, arguments: str) -> str:
    """One line about a tool at work: a terminal's command, or the tool's name."""
    command = _command(arguments) if name == "terminal" else ""
    return f"{_emoji(name)} {_quoted(command, COMMAND_SHOWN) if command else name}..."


def _emoji(name: str) -> str:
    return _EMOJI.get(name, "⚙️")


def _quoted(text: str, limit: int) -> str:
    """As code, so that no letter of it is read as markup; a backtick would end that."""
    return f"`{one_line(text, limit).replace('`', 'ˋ')}`"


def _command(arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:  # a model wrote it; it is shown as it is
        return arguments
    return str(given.get("command") or "") if isinstance(given, dict) else ""
