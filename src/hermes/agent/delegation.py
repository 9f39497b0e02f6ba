"""Define subtasks: parts of a task that run in turns of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from hermes.core.dataclasses import dataclass
from hermes.core.keys import SessionKey
from hermes.core.roles import PersonRole


@dataclass(frozen=True, slots=True)
class Subtask:
    """One part of a task. ``key`` names it for good: asked for twice, after a crash, it is done once.

    ``role`` is that of the turn which hands the part on: the part never has more.
    """

    key: str
    task: str
    person_id: str
    origin: SessionKey
    depth: int
    role: PersonRole


@dataclass(frozen=True, slots=True)
class SubtaskResult:
    """The result of a subtask: the ``state`` of its turn, its reply or the reason in ``text``."""

    state: str
    text: str

    @property
    def is_done(self) -> bool:
        return self.state == "done"


@dataclass(frozen=True, slots=True)
class Delegation:
    """``run`` carries out subtasks, all at once, until each has ended; cancelling it stops them."""

    run: Callable[[Sequence[Subtask]], Awaitable[list[SubtaskResult]]]
