"""Hold what another gateway's home contains, in our own words, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from hermes.config.trees import Table
from hermes.core.dataclasses import dataclass
from hermes.store.sessions.imports import ImportedSession


@dataclass(frozen=True, slots=True)
class FoundPairing:
    """A person whom the other gateway let in."""

    platform: str
    user_id: str
    name: str = ""
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class FoundJob:
    """A job. ``told`` is what ``Jobs.create`` takes; ``notes`` name what it loses on the way."""

    id: str
    name: str
    fields: Mapping[str, object]
    is_paused: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundComment:
    author: str
    body: str
    at: float


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task of a board. ``needs`` are ids, there, of the tasks that it waits for."""

    id: str
    board: str
    title: str
    body: str = ""
    state: str = "todo"
    priority: int = 0
    assignee: str = ""
    result: str = ""
    created_at: float = 0.0
    done_at: float | None = None
    comments: tuple[FoundComment, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundSkillFolder:
    folder: Path
    category: str = ""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A text that becomes the file ``name`` of our home. ``note`` says what is to be known about it."""

    name: str
    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that does not come, and why. ``part`` is one of the parts of a report."""

    part: str
    name: str
    reason: str


@dataclass(slots=True)
class FoundHome:
    """A whole home. ``sessions`` reads them one by one when it is called, ``settings`` are under our names."""

    kind: str
    path: Path
    settings: Table = field(default_factory=Table)
    variables: dict[str, str] = field(default_factory=dict)
    pairings: list[FoundPairing] = field(default_factory=list)
    jobs: list[FoundJob] = field(default_factory=list)
    tasks: list[FoundTask] = field(default_factory=list)
    skills: list[FoundSkillFolder] = field(default_factory=list)
    files: list[FoundFile] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    sessions: Callable[[], Iterator[ImportedSession]] = lambda: iter(())

    def leave_out(self, part: str, name: str, reason: str) -> None:
        self.left_out.append(LeftOut(part, name, reason))
