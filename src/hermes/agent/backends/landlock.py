"""Run commands under Landlock, where bubblewrap is missing or forbidden.

It keeps files, sockets, signals and limits of others out of reach. It hides no names: a path that is known can be
asked whether it exists. There is no /proc, and modes of files cannot be changed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from hermes.agent.backends import confine, sandbox_mounts
from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import at_home_in
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.errors import ToolError
from hermes.core.i18n.en import Texts

TEMPORARY = ".tmp"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class LandlockBackend:
    name = BackendName.LANDLOCK
    touches_host = False
    shares_files = True

    def __init__(self, home: Path, *, network: bool) -> None:
        self._home = home.resolve()
        self._network = network

    def where(self, folder: Path, words: Texts) -> str:
        return (words.WHERE_LANDLOCK if self._network else words.WHERE_LANDLOCK_OFFLINE).format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        workspace = await asyncio.to_thread(work.workspace.resolve)
        if self._home.is_relative_to(workspace):
            raise ToolError(
                "There is no terminal for you: the gateway's own folder lies in your workspace, and Landlock cannot "
                "keep it closed there. The owner can install bubblewrap, or set agent.workspace to another folder."
            )
        temporary = workspace / TEMPORARY
        await asyncio.to_thread(temporary.mkdir, mode=0o700, exist_ok=True)
        may = {
            "read": [str(path) for path in (*sandbox_mounts.programs(self._home), *sandbox_mounts.settings())],
            "write": [str(workspace), *DEVICES],
            "network": self._network,
        }
        # The lease stays outside: it is what ends the rest. -I and -S: nothing of anybody's is imported.
        confined = (sys.executable, "-I", "-S", confine.__file__, json.dumps(may), *work.arguments)
        variables = at_home_in(workspace, work.environment, str(temporary))
        return await ChildProcess.start(Launch(leased(confined), variables, work.folder), output)


def why_not() -> str:
    if not sys.platform.startswith("linux") or not confine.is_known_machine() or not confine.landlock_version():
        return "this kernel has no Landlock"
    return ""
