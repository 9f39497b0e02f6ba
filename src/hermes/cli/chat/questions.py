"""What the agent asks before it goes on: approvals as a box with choices, and ``clarify`` questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hermes.cli.chat.highlight import Highlighter
from hermes.cli.chat.lines import EMPTY, TAB, Line, StyledText, plain, wrap
from hermes.cli.chat.menu import Menu, MenuChoice
from hermes.core.i18n.en import Texts
from hermes.core.text import visible

ONCE, SESSION, ALWAYS, DENY, DENY_WHY = "once", "session", "always", "deny", "why"
OWN_WORDS = ""
_COMMANDS = {"terminal": ("command", "bash"), "execute_code": ("code", "python")}


def approval_box(asked: Mapping[str, Any], words: Texts, width: int) -> list[Line]:
    """Show the whole of what would run, every hidden character spelled out; then where, and why it is asked."""
    bar = (StyledText("│ ", "warn"),)
    rows: list[Line] = [EMPTY, (StyledText("╭─ ", "warn"), StyledText(words.CHAT_MAY_I, "strong"))]
    name = visible(str(asked.get("tool") or ""))
    where = visible(str(asked.get("where") or ""))
    rows += wrap(plain(" ".join(filter(None, (name, where))), "dim"), width, bar, bar)
    rows.append(bar)
    for line in _what_runs(asked):
        rows += wrap(line, width, (*bar, StyledText("  ")), (*bar, StyledText("    ")))
    rows.append(bar)
    for number, row in enumerate(visible(str(asked.get("question") or "")).splitlines()):
        sentence = words.CHAT_WHY.format(why=row) if not number else row
        rows += wrap(plain(sentence), width, bar, bar)
    if proof := str(asked.get("proof") or ""):
        notice = words.CHAT_TOO_LONG.format(count=len(str(asked.get("arguments") or "")), proof=visible(proof))
        rows += wrap(plain(notice, "strong"), width, bar, bar)
    rows.append(plain("╰─", "warn"))
    return rows


def _what_runs(asked: Mapping[str, Any]) -> list[Line]:
    arguments = str(asked.get("arguments") or "")
    try:
        given = json.loads(arguments)
    except ValueError:  # a model wrote it: shown as it is
        given = None
    if not isinstance(given, dict):
        return [plain(row) for row in _spelled(arguments)]
    name, language = _COMMANDS.get(str(asked.get("tool") or ""), ("", ""))
    rows: list[Line] = []
    if isinstance(code := given.pop(name, None), str):
        rows += Highlighter(language).add(_spelled(code))
    for key, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *others = _spelled(text) or [""]
        rows.append((StyledText(f"{visible(str(key))}: ", "dim"), StyledText(first)))
        rows += [plain(f"  {row}") for row in others]
    return rows


def _spelled(text: str) -> list[str]:
    """The lines of a text in which nothing hides. A tab is shown as blanks."""
    return [visible(line.expandtabs(TAB)) for line in text.split("\n")]


def approval_menu(asked: Mapping[str, Any], words: Texts) -> Menu:
    """Offer the answers. What has scrolled away is not approved with one key: its code is typed."""
    is_long = bool(asked.get("proof"))
    choices = [] if is_long else [MenuChoice(ONCE, words.CHAT_YES, "y")]
    if asked.get("has_scopes") and not is_long:
        choices += [MenuChoice(SESSION, words.CHAT_YES_SESSION, "s"), MenuChoice(ALWAYS, words.CHAT_YES_ALWAYS, "a")]
    choices += [MenuChoice(DENY, words.CHAT_NO, "n"), MenuChoice(DENY_WHY, words.CHAT_NO_WHY, "w")]
    return Menu(choices, hint=words.CHAT_CHOOSE)


def answer_command(code: str, value: str, reason: str = "") -> str:
    """The slash command that gives this answer."""
    if value in (DENY, DENY_WHY):
        return f"/deny {code} {' '.join(reason.split())}".rstrip()
    return f"/approve {code}" if value == ONCE else f"/approve {code} {value}"


def clarify_menu(choices: tuple[str, ...], words: Texts) -> Menu:
    offered = [MenuChoice(choice, choice) for choice in choices]
    return Menu([*offered, MenuChoice(OWN_WORDS, words.CHAT_OWN_WORDS)], hint=words.CHAT_CHOOSE)
