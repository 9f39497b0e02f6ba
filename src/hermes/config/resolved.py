"""Say where a value was written, and what each key became."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from hermes.config.values import Key, Raw
from hermes.core.dataclasses import dataclass


class Rank(IntEnum):
    """Who is heard first."""

    ENVIRONMENT = 0
    ENV_FILE = 1  # the one that a person named at the start
    HOME_ENV = 2
    YAML = 3
    JSON = 4
    SOUL = 5  # the text of SOUL.md, where no persona is set


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value stands. ``written`` is its name there."""

    rank: Rank
    label: str
    written: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.label} line {self.line}" if self.line else self.label


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that somebody wrote for a key. An alias (an older place of a key) is heard after the key itself."""

    key: Key
    raw: Raw
    source: Source
    is_alias: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a key became. ``winner`` None: a bad value left the last good one (``is_kept``) or the default."""

    key: Key
    value: Any
    winner: Source | None
    entries: tuple[Entry, ...]
    is_kept: bool = False
