"""Define what a tool is given (ToolContext, Parts) and what it returns."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from hermes.agent.real_path import real_path
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.catalogue import ENGLISH
from hermes.core.i18n.en import Texts
from hermes.core.keys import SessionKey
from hermes.core.messages import Image
from hermes.core.roles import PersonRole
from hermes.store.db import Tx

KERNEL_FOLDERS = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Closed to every tool: they reach the memory and environment of processes, devices, and the kernel."""

Part = TypeVar("Part")


class Parts:
    """Hold the services of tools, one object per class: a new tool changes no signature. The start fills it once."""

    def __init__(self, *parts: object) -> None:
        self._parts = {type(part): part for part in parts}

    def get(self, kind: type[Part]) -> Part:
        """Return the object of exactly this class. ToolError where this gateway has none."""
        found = self._parts.get(kind)
        if not isinstance(found, kind):
            raise ToolError(f"This gateway runs without {kind.__name__}, which this tool needs.")
        return found


NO_PARTS = Parts()


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Describe the caller of a tool and what the caller may touch.

    ``call_id`` identifies the call across restarts: use it as the key of everything the call writes.
    ``forbidden`` folders are refused even inside the workspace, unless the workspace itself lies in one.
    ``started_group`` is called with the process group of every process a tool starts, so that it dies with its turn.
    ``words`` are the texts in the person's language; texts for the model stay English.
    ``depth`` counts nested subtasks: 0 in a turn that a person started.
    ``is_among_others``: people of lower roles write in the conversation and nothing was approved: no file is sent.
    ``is_shared``: the workspace is one folder for everybody.
    """

    call_id: str
    session_key: SessionKey
    person_id: str
    workspace: Path
    forbidden: tuple[Path, ...] = ()
    started_group: Callable[[int], Awaitable[None]] | None = None
    role: PersonRole = PersonRole.USER
    session_id: str = ""
    turn_id: str = ""
    parts: Parts = NO_PARTS
    on_behalf_of: SessionKey | None = None
    depth: int = 0
    words: Texts = ENGLISH
    is_among_others: bool = False
    is_shared: bool = False

    @property
    def origin(self) -> SessionKey:
        """Return the chat that asked: the session's own, or the parent turn's in a subtask."""
        return self.on_behalf_of or self.session_key

    @property
    def closed(self) -> tuple[Path, ...]:
        """Return the folders that no tool enters, unless the workspace itself lies in one."""
        return (*self.forbidden, *KERNEL_FOLDERS)

    def inside(self, path: str) -> Path:
        """Resolve a path in the workspace, symlinks followed; ToolError when it is outside or closed."""
        if _ADDRESS.match(path):
            raise ToolError(f"{path!r} is an address, not a path. Write the path of a file in the workspace.")
        try:
            workspace = self.workspace.resolve()
            target = real_path(workspace / Path(path).expanduser())
            if not target.is_relative_to(workspace):
                raise ToolError(f"{path!r} is outside the workspace. Only files in {self.workspace} can be reached.")
            if any(_lies_in(target, folder) and not _lies_in(workspace, folder) for folder in self.closed):
                raise ToolError(f"{path!r} belongs to Hermes or to the system and is closed to tools.")
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL, a name too long, no such user
            raise ToolError(f"{path!r} is not a usable path ({error}).") from error
        return target

    def relative_path(self, path: Path) -> str:
        """Format a path as the model should write it: relative to the workspace."""
        workspace = self.workspace.resolve()
        return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def _lies_in(path: Path, folder: Path) -> bool:
    """Compare by name and by inode: on a case-insensitive disk ``.HERMES`` is ``.hermes``."""
    folder = folder.resolve()
    if path.is_relative_to(folder):
        return True
    try:
        wanted = os.stat(folder)
    except OSError:
        return False
    for parent in (path, *path.parents):
        try:
            if os.path.samestat(os.stat(parent), wanted):
                return True
        except OSError:  # a parent that does not exist is not the folder
            continue
    return False


@dataclass(frozen=True, slots=True)
class ApprovalNeed:
    """Hold the question to ask before a call. ``touches_host``: only an admin or the owner may answer it.

    ``subject`` is what a standing grant covers (the kind of danger and the back end, not one command); without a
    subject every call needs its own answer. ``where`` names the back end and the folder in which the call would run.
    """

    question: str
    touches_host: bool = True
    subject: str = ""
    where: str = ""

    def is_same_question(self, agreed: ApprovalNeed) -> bool:
        """Tell whether the person who approved ``agreed`` has read this same question."""
        return (self.question, self.where, self.touches_host) == (agreed.question, agreed.where, agreed.touches_host)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """Hold the result of a call that is more than plain text.

    ``effect`` writes to our own store in the transaction that records the result: both are committed, or neither.
    ``after`` is called after that commit, to wake a queue. ``asks``: ``text`` is a question to the person; it ends
    the turn, and their next message answers it.
    """

    text: str
    effect: Callable[[Tx], None] | None = None
    after: Callable[[], None] | None = None
    images: tuple[Image, ...] = ()
    asks: bool = False
