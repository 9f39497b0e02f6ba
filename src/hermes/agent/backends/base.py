"""Define a back end: a place where commands run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from hermes.agent.backends.limits import CommandLimits, WorkspaceQuota
from hermes.agent.backends.output import Output
from hermes.core.dataclasses import dataclass
from hermes.core.i18n.en import Texts


class BackendName(StrEnum):
    LOCAL = "local"
    GUARDED = "guarded"
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    DOCKER = "docker"
    SSH = "ssh"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a command may use. ``used`` is what its workspace holds already, ``quota`` measures that again."""

    limits: CommandLimits
    quota: WorkspaceQuota
    used: int = 0

    @property
    def is_full(self) -> bool:
        """Tell whether the workspace holds all that it may: files can be removed, and none can grow."""
        return bool(self.limits.workspace) and self.used >= self.limits.workspace


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What is to run. ``arguments`` reach the program as they are; ``environment`` is all that it gets of ours.

    ``folder`` is ``workspace`` or lies in it: both as this machine knows them. ``bounds`` hold in a sandbox; ``local``
    and ``ssh`` know none.
    """

    arguments: tuple[str, ...]
    folder: Path
    workspace: Path
    environment: Mapping[str, str]
    bounds: Bounds | None = None


class Running(Protocol):
    """A command that was started. Its output goes into the ``Output`` it was started with."""

    @property
    def group(self) -> int:
        """Return the process group on this machine that stands for it."""

    @property
    def had_leftovers(self) -> bool:
        """Tell whether it left processes behind, which were ended with it."""

    @property
    def stopped_by(self) -> str:
        """Return the limit that ended the command, as the second half of a sentence; '' when none did."""

    async def wait(self) -> int:
        """Its exit code, once it and all that it started have ended and its output is complete."""

    async def end(self) -> None:
        """SIGTERM to all of it, SIGKILL after a second; returns when nothing of it is left. Harmless when repeated."""


class Backend(Protocol):
    """``touches_host``: what runs here reaches beyond a person's own sandbox and workspace.

    ``shares_files``: the workspace of this machine is there, under the same path.
    """

    @property
    def name(self) -> BackendName: ...

    @property
    def touches_host(self) -> bool: ...

    @property
    def shares_files(self) -> bool: ...

    def where(self, folder: Path, words: Texts) -> str:
        """Return the back end and the folder, for whoever is asked to approve: ``bubblewrap, in /srv/work``."""

    async def start(self, work: CommandSpec, output: Output) -> Running:
        """Start it. Whatever happens to this process, what was started ends with it. ToolError says why not."""
