"""Run commands under bubblewrap: read-only system, writable workspace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hermes.agent.backends import sandbox_mounts
from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import at_home_in
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Texts
from hermes.core.i18n.failures import describe_failure

PROBE_SECONDS = 5.0
# New namespaces for users, processes, IPC, names and the network; no privilege inside; gone when we are gone.
_ALONE = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")


class BubblewrapBackend:
    """``home`` is the gateway's own folder: of it, a command sees its workspace and no more."""

    name = BackendName.BUBBLEWRAP
    touches_host = False
    shares_files = True

    def __init__(self, home: Path, *, network: bool) -> None:
        self._home = home.resolve()
        self._network = network

    def where(self, folder: Path, words: Texts) -> str:
        return (words.WHERE_SANDBOX if self._network else words.WHERE_SANDBOX_OFFLINE).format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        arguments = (*self._sandbox(work), "--", *leased(work.arguments))
        # The processes inside have a session of their own; a SIGTERM to bwrap would kill them without a word.
        variables = at_home_in(work.workspace, work.environment)
        return await ChildProcess.start(Launch(arguments, variables, takes_term=False), output)

    def _sandbox(self, work: CommandSpec) -> tuple[str, ...]:
        workspace = work.workspace.resolve()
        arguments = ["bwrap", *_ALONE, *(["--share-net"] if self._network else []), *_system(self._home)]
        arguments += ["--bind", str(workspace), str(workspace)]
        if self._home != workspace and self._home.is_relative_to(workspace):
            arguments += ["--tmpfs", str(self._home)]  # the owner gave everybody a folder in which it lies
        arguments += ["--remount-ro", "/", "--chdir", str(work.folder.resolve())]
        return tuple(arguments)


def _system(home: Path) -> list[str]:
    arguments: list[str] = []
    for path in sandbox_mounts.programs(home):
        if path.is_symlink():  # /bin is usr/bin nowadays
            arguments += ["--symlink", str(path.readlink()), str(path)]
        else:
            arguments += ["--ro-bind", str(path), str(path)]
    for path in sandbox_mounts.settings():
        # The real file under the usual name: resolv.conf is a link into /run, which is not shown.
        arguments += ["--ro-bind-try", str(path.resolve()), str(path)]
    for folder in ("/tmp", "/var/tmp", "/run"):  # noqa: S108 - its own, empty ones
        arguments += ["--tmpfs", folder]
    return [*arguments, "--proc", "/proc", "--dev", "/dev"]


def why_not() -> str:
    """Return why there is no sandbox here; '' when there is. Tried, not guessed: some systems forbid what it needs."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    trial = ["bwrap", *_ALONE, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        tried = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work ({describe_failure(error)})"
    if tried.returncode:
        said = tried.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"bubblewrap does not work ({said[-1][:200] if said else f'exit code {tried.returncode}'})"
    return ""
