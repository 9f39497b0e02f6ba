"""Parse slash commands, and find the nearest known one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from hermes.core.dataclasses import dataclass

_COMMAND = re.compile(r"/([A-Za-z][A-Za-z0-9_-]{0,31})(?:@\w+)?(?:\s+(.*))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandLine:
    name: str
    rest: str


def read_command(text: str) -> CommandLine | None:
    """``/stop``, ``/approve K7QP``, ``/new@ana_bot``; not ``/etc/hosts`` and not ``/ what``."""
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return None
    return CommandLine(match[1].lower(), (match[2] or "").strip())


def nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""
