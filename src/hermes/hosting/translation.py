"""Say what the command line prints in the language of the person at the terminal.

``tr`` is called where a sentence is printed, never on what others wrote, on JSON or on log lines.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from hermes.core.i18n.languages import CHINESE, ENGLISH, LANGUAGES

_SETTING = re.compile(r"(?m)^language:[ \t]*[\"']?([a-z]+)")
_VARIABLE = re.compile(r"(?m)^(?:export )?HERMES_LANGUAGE=[\"']?([a-z]+)")
MAX_CHARS = 200_000


def tr(text: object) -> str:
    """The text in the language of the terminal; as it is where that is English."""
    translated = str(text)
    if language() != CHINESE:
        return translated
    from hermes.core.i18n.cli import to_chinese  # hundreds of sentences, for those who read them

    return to_chinese(translated)


def columns(text: str) -> int:
    """How many columns a text takes: Chinese characters take two."""
    if text.isascii():
        return len(text)
    from hermes.core.i18n.cli import display_width

    return display_width(text)


def pad(text: str, width: int) -> str:
    """Fill a text up to so many columns, whatever the width of its characters."""
    return text + " " * max(0, width - columns(text))


def language() -> str:
    """What ``HERMES_LANGUAGE`` or ``language:`` says, else the locale of the terminal.

    The files are looked through rather than loaded: help and errors must not wait for the configuration.
    """
    home = os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes")
    files = os.environ.get("HERMES_ENV") or f"{home}/.env", os.environ.get("HERMES_CONFIG") or f"{home}/config.yaml"
    chosen = os.environ.get("HERMES_LANGUAGE", "") or _from_files(*files)
    if chosen in LANGUAGES:
        return chosen
    return CHINESE if terminal_language().lower().startswith("zh") else ENGLISH


def terminal_language() -> str:
    """The language that this terminal is set to; '' where it says none."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name, ""):
            spoken = value.partition(".")[0]
            return "" if spoken in ("C", "POSIX") else spoken
    return ""


@lru_cache(maxsize=8)
def _from_files(env: str, config: str) -> str:
    for path, form in ((env, _VARIABLE), (config, _SETTING)):
        try:
            with open(os.path.expanduser(path), encoding="utf-8", errors="replace") as file:
                found = form.search(file.read(MAX_CHARS))
        except OSError:  # none is there, or not ours to read: whoever loads it says so
            continue
        if found:
            return found[1]
    return ""
