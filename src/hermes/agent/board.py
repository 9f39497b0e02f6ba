"""Define how tools and commands reach the board: it is imported when somebody first uses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.core.dataclasses import dataclass

if TYPE_CHECKING:
    from hermes.agent.kanban import Board


@dataclass(frozen=True, slots=True)
class BoardAccess:
    open: Callable[[], Board]
