"""Spell commands so that they can be typed as printed."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from hermes.hosting import paths, profiles
from hermes.hosting.translation import tr

_CLONE = Path(__file__).resolve().parents[4]
_INDENT = 3


def command_name() -> str:
    """Spell the command as it is typed here, with the profile that this command was typed for.

    A service names the home of its profile instead; those of the usual home can be typed by their names.
    """
    name, home = os.environ.get("HERMES_PROFILE", ""), os.path.abspath(os.environ.get("HERMES_HOME") or "/")
    if not name and profiles.root_of(home) == os.path.expanduser("~/.hermes"):
        name = profiles.profile_of(home)
    return f"{program()} -p {name}" if name and not profiles.why_no_name(name) else program()


def program() -> str:
    """``hermes`` when the one on the PATH is ours, else the script of the clone as seen from here."""
    # This installation keeps the command in the clone, or pip put it beside our Python.
    ours = [_CLONE / "scripts" / "hermes", Path(sys.executable).parent / "hermes"]
    found = shutil.which("hermes")
    if found and Path(found).resolve() in {path.resolve() for path in ours}:
        return "hermes"
    for path in ours:
        if path.exists():
            return _as_seen_from_here(path)
    return f"{_as_seen_from_here(Path(sys.executable))} -m hermes"


def even_examples(examples: str) -> str:
    """Lay out examples (command, two spaces, what it does) in even columns, as they are typed here."""
    halves = [_halves(line) for line in examples.splitlines()]
    width = max((len(command) for command, does in halves if command and does), default=_INDENT)
    return "\n".join(f"  {command:<{width}}   {does}".rstrip() for command, does in halves)


def _halves(example: str) -> tuple[str, str]:
    command, _, does = example.removeprefix("  ").partition("  ")
    return command_name() if command == "hermes" else as_typed(command), as_typed(tr(does.strip()))


def as_typed(text: str) -> str:
    """Rewrite the commands in a text as they can be typed here."""
    from hermes.cli.commands import COMMANDS  # who imports us when there is something to say

    return re.sub(
        rf"(?<![\w./-])(?<!-m )hermes (?=(?:{'|'.join(COMMANDS)})\b|--?\w)", lambda _: f"{command_name()} ", text
    )


def _as_seen_from_here(path: Path) -> str:
    here = paths.working_folder("")
    if here and path.is_relative_to(here):
        return f"./{path.relative_to(here)}"
    home = os.path.expanduser("~")
    return f"~{str(path)[len(home) :]}" if str(path).startswith(home + os.sep) else str(path)
