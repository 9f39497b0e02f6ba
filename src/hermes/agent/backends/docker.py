"""Run each command in a container of its own, with docker or podman."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import at_home_in
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Texts
from hermes.store.ids import new_id

PROGRAMS = ("docker", "podman")
MAX_PROCESSES = 1024
MB = 1024 * 1024
# What the program itself may need to find its server; the command inside sees none of it.
OF_THE_PROGRAM = (
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST",
    "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "XDG_RUNTIME_DIR", "HOME", "PATH",
)  # fmt: skip
ALWAYS_GIVEN = ("PATH",)


class DockerBackend:
    """``environ`` is the gateway's own, for the docker program alone."""

    name = BackendName.DOCKER
    touches_host = False
    shares_files = True

    def __init__(self, home: Path, image: str, environ: Mapping[str, str], *, network: bool) -> None:
        self._home = home.resolve()
        self._image = image
        self._environ = environ
        self._network = network

    def where(self, folder: Path, words: Texts) -> str:
        form = words.WHERE_CONTAINER if self._network else words.WHERE_CONTAINER_OFFLINE
        return form.format(image=self._image, folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        program = find_program(self._environ) or PROGRAMS[0]
        name = new_id("hermes").replace("_", "-")
        variables = at_home_in(work.workspace, work.environment)
        inside = {key: value for key, value in variables.items() if key not in ALWAYS_GIVEN}
        own = {key: self._environ[key] for key in OF_THE_PROGRAM if key in self._environ}
        arguments = (
            program,
            *self._run(work, program, name, inside),
            self._image,
            *leased(work.arguments, first=_inner_limits(work)),
        )
        launch = Launch(
            arguments,
            {**own, **{key: value for key, value in inside.items() if key not in own}},
            takes_term=False,  # it would end the program here and leave the container
            kill=(program, "kill", name),
            remove=(program, "rm", "--force", name),
            bounds=work.bounds,
            workspace=work.workspace,
            is_elsewhere=True,
        )
        return await ChildProcess.start(launch, output)

    def _run(self, work: CommandSpec, program: str, name: str, inside: Mapping[str, str]) -> list[str]:
        workspace = work.workspace.resolve()
        # Not --rm: through podman's socket the docker program then tells 0 for every exit code.
        arguments = ["run", "--interactive", "--name", name, "--label", label_of(self._home), "--pull", "never"]
        arguments += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", *_limits(work)]
        arguments += ["--user", f"{os.getuid()}:{os.getgid()}", "--workdir", str(work.folder.resolve())]
        arguments += ["--volume", f"{workspace}:{workspace}"]
        # Said in any case: a default may be the network of the host, with all that listens on its loopback.
        own = "private" if os.path.basename(program) == "podman" else "bridge"
        arguments += ["--network", own if self._network else "none"]
        if self._home != workspace and self._home.is_relative_to(workspace):
            arguments += ["--tmpfs", str(self._home)]
        for key, value in inside.items():
            # Named, not told: the value stays out of the machine's list of processes. HOME means another one out here.
            arguments += ["--env", f"{key}={value}" if key in OF_THE_PROGRAM else key]
        return arguments


def _limits(work: CommandSpec) -> list[str]:
    """Bound a container. Its own files are closed to writing: they would lie on this machine's disk, uncounted."""
    limits = work.bounds.limits if work.bounds is not None else None
    arguments = ["--pids-limit", str(limits.processes if limits is not None and limits.processes else MAX_PROCESSES)]
    if limits is None:
        return arguments
    size = f"size={limits.tmp // MB}m,mode=1777"
    arguments += ["--read-only"]
    for place in ("/tmp", "/var/tmp", "/run"):  # noqa: S108 - the container's own
        arguments += ["--tmpfs", f"{place}:{size}"]
    if limits.memory:
        arguments += ["--memory", f"{limits.memory // MB}m", "--memory-swap", f"{limits.memory // MB}m"]
    return arguments


def _inner_limits(work: CommandSpec) -> str:
    """Bound each process from inside: naming one limit outside would replace the defaults of all others."""
    if work.bounds is None:
        return ""
    limits = work.bounds.limits
    lines = f"ulimit -t {limits.cpu_seconds}\n" if limits.cpu_seconds else ""
    if work.bounds.is_full:
        return f"{lines}ulimit -f 0\n"
    return f"{lines}ulimit -f {limits.file // 512}\n" if limits.file else lines  # in blocks, says POSIX


def label_of(home: Path) -> str:
    """Return what marks the containers of one gateway."""
    return f"hermes.home={hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]}"


def sweep(home: Path, environ: Mapping[str, str]) -> None:
    """Remove containers that ended with a gateway which died. Asked at the start, when none of ours can be young."""
    program = find_program(environ)
    if program:
        command = [program, "container", "prune", "--force", "--filter", f"label={label_of(home)}"]
        own = {key: environ[key] for key in OF_THE_PROGRAM if key in environ}
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # its server is down: nothing to remove now
            subprocess.run(command, env=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)


def find_program(environ: Mapping[str, str]) -> str:
    path = environ.get("PATH")
    return next((found for name in PROGRAMS if (found := shutil.which(name, path=path))), "")


def why_not(image: str, environ: Mapping[str, str]) -> str:
    if not image:
        return "terminal.docker_image is not set"
    return "" if find_program(environ) else "neither docker nor podman is installed"
