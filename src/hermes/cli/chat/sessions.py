"""Earlier conversations: the picker, and a conversation shown again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes.cli.chat.lines import EMPTY, UNLIMITED, Line, StyledText, plain, text_of, wrap
from hermes.cli.chat.markdown import render
from hermes.cli.chat.menu import Menu, MenuChoice
from hermes.core.durations import format_time
from hermes.core.i18n.en import Texts
from hermes.core.keys import LOCAL, SessionKey
from hermes.core.printable import printable, printable_line
from hermes.core.text import one_line

SHOWN_MESSAGES = 20
MAX_SHOWN_LINES = 40  # of one message that was said by the person


def picker(found: Sequence[Mapping[str, Any]], words: Texts, now: float) -> Menu:
    choices = []
    for session in found:
        when = format_time("%Y-%m-%d %H:%M", session["updated_at"])
        if now - session["updated_at"] < 20 * 3600:
            when = format_time("%H:%M", session["updated_at"])
        platform = platform_of(str(session["key"]))
        note = "  ".join(filter(None, (when, f"{session['lines']} {words.CHAT_LINES}", platform)))
        preview = tuple(_preview(message) for message in session["preview"])
        choices.append(MenuChoice(session["id"], one_line(session["title"], 60) or session["id"], "", note, preview))
    return Menu(choices, title=words.CHAT_PICK, is_searched=True)


def _preview(message: Mapping[str, Any]) -> str:
    """The beginning of a message in one line; of an answer its words, without the marks of Markdown."""
    if message["role"] == "user":
        return f"> {one_line(message['text'], 200)}"
    return "  " + one_line(" ".join(text_of(line).strip() for line in render(message["text"], UNLIMITED)), 200)


def platform_of(key: str) -> str:
    """The platform on which a conversation began; '' for this machine and for what cannot be read."""
    try:
        platform = SessionKey.parse(key).platform
    except ValueError:
        return ""
    return "" if platform == LOCAL else platform


def conversation(session: Mapping[str, Any], words: Texts, width: int) -> list[Line]:
    """A conversation as it would stand here, had it been held here."""
    lines: list[Line] = [EMPTY]
    title = printable_line(str(session.get("title") or ""))
    origin = platform_of(str(session.get("key") or ""))
    head = "  ".join(filter(None, (title, words.CHAT_FROM.format(platform=origin) if origin else "")))
    rule = f"── {head} " if head else ""
    lines.append(plain(rule + "─" * max(0, min(width, 60) - len(rule)), "rule"))
    for message in session.get("messages", ()):
        lines += message_lines(message, words, width)
    lines.append(EMPTY)
    return lines


def message_lines(message: Mapping[str, Any], words: Texts, width: int) -> list[Line]:
    """One message of a conversation, with its origin where it was said on another platform."""
    text = str(message["text"])
    lines: list[Line] = []
    if message["role"] != "user":
        if text.strip():
            lines += render(text, width)
        lines += [
            (StyledText("✓ ", "dim"), StyledText(printable_line(name), "dim")) for name in message.get("tools", ())
        ]
        return lines
    lines.append(EMPTY)
    if message.get("platform"):
        origin = " · ".join(filter(None, (str(message["platform"]), str(message.get("name") or ""))))
        lines += wrap(plain(words.CHAT_VIA.format(origin=printable_line(origin)), "dim"), width)
    rows = printable(text).splitlines() or [""]
    for number, row in enumerate(rows[:MAX_SHOWN_LINES]):
        lead = plain("> " if not number else "  ", "mark")
        lines += wrap(plain(row.expandtabs(4), "you"), width, lead, plain("  "))
    if len(rows) > MAX_SHOWN_LINES:
        lines.append(plain("  " + words.CHAT_MORE_LINES.format(count=len(rows) - MAX_SHOWN_LINES), "dim"))
    lines.append(EMPTY)
    return lines
