"""Hold what one check of ``hermes doctor`` found."""

from __future__ import annotations

from typing import Literal

from hermes.core.dataclasses import dataclass

Level = Literal["good", "hint", "trouble"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the screen; ``more`` are lines below it."""

    name: str
    level: Level
    text: str
    more: tuple[str, ...] = ()
