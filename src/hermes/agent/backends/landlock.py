"""Run commands under Landlock, where bubblewrap is missing or forbidden.

It keeps files, sockets, signals and limits of others out of reach. It hides no names: a path that is known can be
asked whether it exists. There is no /proc and no network: without a network namespace this machine's own loopback would
be open too. Modes and times change for files of the workspace alone (``confine``).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hermes.agent.backends import confine, sandbox_mounts
from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import at_home_in
from hermes.agent.backends.lease import leased, limit_processes
from hermes.agent.backends.limits import threads_of_user
from hermes.agent.backends.output import Output
from hermes.core.errors import ToolError
from hermes.core.i18n.en import Texts

TEMPORARY = ".tmp"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class LandlockBackend:
    name = BackendName.LANDLOCK
    touches_host = False
    shares_files = True

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()

    def where(self, folder: Path, words: Texts) -> str:
        return words.WHERE_LANDLOCK_OFFLINE.format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        workspace = await asyncio.to_thread(work.workspace.resolve)
        if self._home.is_relative_to(workspace):
            raise ToolError(
                "There is no terminal for you: the gateway's own folder lies in your workspace, and Landlock cannot "
                "keep it closed there. The owner can install bubblewrap, or set agent.workspace to another folder."
            )
        read = (*sandbox_mounts.programs(self._home), *sandbox_mounts.settings())
        temporary = await asyncio.to_thread(make_temporary, workspace / TEMPORARY)
        variables = at_home_in(workspace, work.environment, str(temporary))
        return await start_confined(work, read, (workspace,), (), variables, temporary, output)


async def start_confined(
    work: CommandSpec,
    read: Iterable[Path],
    write: Iterable[Path],
    families: tuple[int, ...],
    variables: dict[str, str],
    temporary: Path,
    output: Output,
) -> ChildProcess:
    """Start a command that reads and writes these paths and opens sockets of these ``families``."""
    may = {
        "read": [str(path) for path in read],
        "write": [*(str(path) for path in write), *DEVICES],
        "families": families,
    }
    # The lease stays outside: it is what ends the rest. -I and -S: nothing of anybody's is imported.
    confined = (sys.executable, "-I", "-S", confine.__file__, json.dumps(may), *work.arguments)
    bounds, processes = work.bounds, 0
    if bounds is not None and bounds.limits.processes and os.getuid() != 0:
        processes = bounds.limits.processes + await asyncio.to_thread(threads_of_user)
    arguments = leased(confined, first=limit_processes(processes))
    launch = Launch(arguments, variables, work.folder, bounds=bounds, workspace=work.workspace, scratch=temporary)
    return await ChildProcess.start(launch, output)


def make_temporary(parent: Path) -> Path:
    """Make the folder for the temporary files of one command. A link in its place is not followed."""
    if parent.is_symlink():
        raise ToolError(f"{parent.name} in the workspace is a link. Remove it: temporary files are kept there.")
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=parent))


def why_not() -> str:
    if not sys.platform.startswith("linux") or not confine.is_known_machine() or not confine.landlock_version():
        return "this kernel has no Landlock"
    return ""
