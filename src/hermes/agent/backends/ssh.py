"""Run commands on another machine over ssh; they end with the connection."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import let_through
from hermes.agent.backends.lease import REMOTE_LEASE, leased
from hermes.agent.backends.output import Output
from hermes.config.agent_settings import TerminalConfig
from hermes.core.errors import ToolError
from hermes.core.i18n.en import Texts

MAX_PREFACE_BYTES = 60_000  # bytes: what a pipe takes before anybody reads
FAILED = 255
"""The exit code with which ssh says that it did not come through."""

# Nothing is asked of anybody, nothing is shared with other connections, and a dead one is noticed.
_OPTIONS = ("BatchMode=yes", "ControlMaster=no", "ControlPath=none", "ConnectTimeout=10", "ServerAliveInterval=15",
            "ServerAliveCountMax=2", "ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes",
            "LogLevel=ERROR")  # fmt: skip
_PLAIN_HOST = re.compile(r"[A-Za-z0-9_.:%\[\]-]+")


class SshBackend:
    name = BackendName.SSH
    touches_host = True
    shares_files = False

    def __init__(self, config: TerminalConfig, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ

    def where(self, folder: Path, words: Texts) -> str:
        user = f"{self._config.ssh_user}@" if self._config.ssh_user else ""
        below = f" ({folder.name})" if folder.name else ""
        place = f"{self._config.ssh_folder or words.WHERE_SSH_HOME}{below}"
        return words.WHERE_SSH.format(host=f"{user}{self._config.ssh_host}", folder=place)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        own = {name: self._environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK") if name in self._environ}
        # The remote folder has the same path below ssh_folder as the local one below the workspace.
        below = work.folder.relative_to(work.workspace)
        folder = "/".join(part for part in (self._config.ssh_folder.rstrip("/"), str(below)) if part not in ("", "."))
        change = f"cd -- {_quoted_folder(folder)} && " if folder else ""
        remote = f"{change}exec {shlex.join(leased(work.arguments, REMOTE_LEASE))}"
        arguments = (*self._connection(), remote)
        # A SIGTERM to ssh would cut the connection before the command there could end by itself.
        launch = Launch(arguments, own, preface=_preface(let_through(work.environment)), takes_term=False)
        return await ChildProcess.start(launch, output)

    def _connection(self) -> tuple[str, ...]:
        config = self._config
        if config.ssh_host.startswith("-") or not _PLAIN_HOST.fullmatch(config.ssh_host):
            raise ToolError("terminal.ssh_host is not the name of a machine.")
        arguments = ["ssh", "-T", "-p", str(config.ssh_port)]
        options = list(_OPTIONS)
        if config.ssh_known_hosts:
            options += [f"UserKnownHostsFile={config.ssh_known_hosts}", "GlobalKnownHostsFile=/dev/null"]
        for option in options:
            arguments += ["-o", option]
        if config.ssh_key:
            arguments += ["-i", config.ssh_key, "-o", "IdentitiesOnly=yes"]
        if config.ssh_user:
            arguments += ["-l", config.ssh_user]
        return (*arguments, "--", config.ssh_host)


def _quoted_folder(folder: str) -> str:
    """A ~ at the beginning is for the shell there to know."""
    if folder == "~" or folder.startswith("~/"):
        return "~" + (f"/{shlex.quote(folder[2:])}" if folder[2:] else "")
    return shlex.quote(folder)


def _preface(variables: Mapping[str, str]) -> bytes:
    lines = [f"{name}={value}\n" for name, value in variables.items() if "\n" not in value]
    preface = "".join([*lines, "\n"]).encode("utf-8", "surrogateescape")
    if len(preface) > MAX_PREFACE_BYTES:
        raise ToolError("The variables of terminal.env_passthrough are too long to be sent over ssh.")
    return preface


def why_not(config: TerminalConfig) -> str:
    if not config.ssh_host:
        return "terminal.ssh_host is not set"
    return "" if shutil.which("ssh") else "ssh is not installed"
