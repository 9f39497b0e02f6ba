"""What goes with whatever is said in a terminal: its folder, its language, how long it waits."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from hermes.cli.support.client import load_config, outside_platforms
from hermes.cli.support.program_name import command_name
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick

# A shell is left by the bare words, and nobody means to say them to the agent.
LEAVING = frozenset({"/exit", "/quit", "/q", "exit", "quit"})
SAY_SECONDS = 600.0  # of silence, where only request files can be exchanged; else a sign of life comes every 2 s


def own_words(home: Path) -> Texts:
    """The words of whoever sits here: in the language of the settings, else of their terminal."""
    return words_of(pick(load_config(home).config.language, "", hint=terminal_language()))


def terminal_language() -> str:
    """The language that this terminal is set to; '' where it says none."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name, ""):
            language = value.partition(".")[0]
            return "" if language in ("C", "POSIX") else language
    return ""


def surroundings() -> dict[str, str]:
    """What goes with whatever is said here."""
    return {"folder": here(), "language": terminal_language()}


def here() -> str:
    """The folder that we are in: there the owner's tools work. Empty when it was removed under us."""
    with suppress(OSError):
        return os.getcwd()
    return ""


def configured_platforms(home: Path) -> list[str]:
    """Platforms that somebody set up, and that only a running gateway listens to."""
    return outside_platforms(load_config(home).config)


def deaf_words(platforms: list[str]) -> str:
    names = ", ".join(platforms)
    return f"Gateway is not running: nobody is answered on {names}. Start it: {command_name()} gateway run"
