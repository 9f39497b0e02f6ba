"""What goes with whatever is said in a terminal: its folder, its language, how long it waits."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.cli.support.client import GatewayClient
from hermes.cli.support.home import load_config, outside_platforms
from hermes.cli.support.program_name import as_typed, command_name
from hermes.cli.support.screen import note
from hermes.core.i18n.catalogue import words_of
from hermes.core.i18n.en import Texts
from hermes.core.i18n.languages import pick
from hermes.hosting.terminal import out
from hermes.hosting.translation import terminal_language, tr

if TYPE_CHECKING:
    from hermes.config import Config

# A shell is left by the bare words, and nobody means to say them to the agent.
LEAVING = frozenset({"/exit", "/quit", "/q", "exit", "quit"})
SAY_SECONDS = 600.0  # of silence, where only request files can be exchanged; else a sign of life comes every 2 s


def greet(client: GatewayClient) -> tuple[Texts, Config]:
    """Print the first lines of a chat; return its words (in the language of the settings, else of the terminal)."""
    loaded = load_config(client.home)
    words = words_of(pick(loaded.config.language, "", hint=terminal_language()))
    out(words.BANNER, flush=True)
    for problem in loaded.problems:
        if problem.where == "./.env":  # of this folder, and not read
            note(f"! {as_typed(str(problem))}")
    if client.is_alone and (platforms := ", ".join(outside_platforms(loaded.config))):
        start = f"Start it: {command_name()} gateway run"
        out(tr(f"Gateway is not running: nobody is answered on {platforms}. {start}"), flush=True)
    return words, loaded.config


def surroundings() -> dict[str, str]:
    """What goes with whatever is said here."""
    return {"folder": here(), "language": terminal_language()}


def here() -> str:
    """The folder that we are in: there the owner's tools work. Empty when it was removed under us."""
    with suppress(OSError):
        return os.getcwd()
    return ""
