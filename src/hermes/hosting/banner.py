"""Render the start screen of `gateway run`; the caller prints it."""

from __future__ import annotations

from collections.abc import Sequence

_BOX = (
    "┌──────────────────────────────────────────────────────┐",
    "│             ⚕ Hermes Gateway Starting...             │",
    "│  Messaging platforms + cron scheduler + OpenAI API   │",
    "│  Press Ctrl+C to stop                                │",
    "└──────────────────────────────────────────────────────┘",
)


def opening() -> list[str]:
    return list(_BOX)


def facts(
    *,
    home: str,
    is_new: bool,
    model: str,
    api: str,
    skills: str = "",
    cron: str = "",
    chats: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> list[str]:
    """Render the facts of a start, one per line."""
    lines = [
        f"Home     {home}{', new' if is_new else ''}, readable by you alone",
        *([f"Syncing bundled skills into {home}/skills/ ...  {skills}"] if skills else []),
        f"Model    {model}",
        f"API      {api}",
    ]
    lines += [f"Chats    {chat}" for chat in chats] or ["Chats    none yet"]
    lines += [f"Cron     {cron}"] if cron else []
    lines += [f"WARNING  {warning}" for warning in warnings]
    return lines


def api_line(url: str, command: str) -> str:
    return f"{url}/v1   (its key: {command} api-key show)"


def closing(*, seconds: float, command: str, is_terminal: bool) -> list[str]:
    """The line that says it is up and, for a person, what to type next."""
    lines = [f"Gateway started in {seconds:.1f} s."]
    if is_terminal:
        lines += [
            "",
            f"  Talk to it        {command}",
            f"  A better model    {command} setup   (also finds Ollama, LM Studio)",
            f"  On your phone     {command} gateway setup",
            f"  Keep it running   {command} gateway install",
            f"  Its status        {command} gateway status",
            f"  Find problems     {command} doctor",
            "It restarts itself after a crash. Closing this window stops it.",
        ]
    return lines


def short_home(home: str, user_home: str) -> str:
    """``~/.hermes`` rather than the whole path."""
    return f"~{home.removeprefix(user_home)}" if home.startswith(f"{user_home}/") else home


def foreign_home(home: str, description: str, command: str) -> str:
    """A home that another program made: what it is, that it was left alone, and how to live beside it."""
    return (
        f"{home} belongs to {description}. I have changed nothing there.\n"
        f"  Take it over   HERMES_HOME={home}-two {command} import hermes-agent {home} --dry-run"
        "   (shows what would be imported; changes nothing)\n"
        f"  Side by side   HERMES_HOME={home}-two API_SERVER_PORT=8643 {command} gateway run"
        "   (give it its own bot tokens)"
    )
