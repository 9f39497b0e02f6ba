"""Run commands under bubblewrap: read-only system, writable workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hermes.agent.backends import confine, network, sandbox_mounts
from hermes.agent.backends.base import BackendName, CommandSpec
from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.environment import at_home_in
from hermes.agent.backends.lease import leased, limit_processes
from hermes.agent.backends.limits import is_counted_per_namespace
from hermes.agent.backends.output import Output
from hermes.core.i18n.en import Texts
from hermes.core.i18n.failures import describe_failure

PROBE_SECONDS = 5.0
# New namespaces for users, processes, IPC, names and the network; no privilege inside; gone when we are gone.
ALONE = ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
KERNEL_SETTINGS = (
    "/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/driver",
    "/proc/dynamic_debug", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/timer_list", "/proc/pressure", "/proc/tty",
    "/proc/latency_stats",
)  # fmt: skip
OWN_FOLDERS = ("/tmp", "/var/tmp", "/run")  # noqa: S108 - its own, empty ones


class BubblewrapBackend:
    """``home`` is the gateway's own folder: of it, a command sees its workspace and no more."""

    name = BackendName.BUBBLEWRAP
    touches_host = False
    shares_files = True

    def __init__(self, home: Path, *, network: bool) -> None:
        self._home = home.resolve()
        self._network = network

    def where(self, folder: Path, words: Texts) -> str:
        has_network = self._network and not network.why_not()
        return (words.WHERE_SANDBOX if has_network else words.WHERE_SANDBOX_OFFLINE).format(folder=folder)

    async def start(self, work: CommandSpec, output: Output) -> ChildProcess:
        variables = at_home_in(work.workspace, work.environment)
        has_network = self._network and not network.why_not()
        return await start_sandbox([*ALONE, *self._mounts(work)], work, variables, output, own_network=has_network)

    def _mounts(self, work: CommandSpec) -> Iterable[str]:
        workspace = work.workspace.resolve()
        tmp = work.bounds.limits.tmp if work.bounds is not None else 0
        yield from _system(self._home)
        yield from own_folders(tmp)
        yield from ("--bind", str(workspace), str(workspace))
        if self._home != workspace and self._home.is_relative_to(workspace):
            yield from ("--tmpfs", str(self._home), "--remount-ro", str(self._home))  # everybody's folder holds it
        yield from ("--remount-ro", "/", "--chdir", str(work.folder.resolve()))


async def start_sandbox(
    arguments: Iterable[str],
    work: CommandSpec,
    variables: dict[str, str],
    output: Output,
    *,
    own_network: bool = False,
) -> ChildProcess:
    """Start bubblewrap with these arguments; ``own_network`` connects it to the internet before the command runs."""
    bounds = work.bounds
    per_namespace = bounds.limits.processes if bounds is not None and is_counted_per_namespace() else 0
    inside: list[int] = []
    more: list[str] = []
    if rules := confine.namespace_filter():
        inside.append(_readable(rules))
        more += ["--seccomp", str(inside[-1])]
    info = block = -1
    if own_network:
        inside.append(_readable(network.RESOLV_CONF))
        more += ["--ro-bind-data", str(inside[-1]), "/etc/resolv.conf"]
        info, info_writer = os.pipe()
        blocked, block = os.pipe()
        inside += [info_writer, blocked]
        more += ["--info-fd", str(info_writer), "--block-fd", str(blocked)]
    command = ("bwrap", *arguments, *more, "--", *leased(work.arguments, first=limit_processes(per_namespace)))
    # The processes inside have a session of their own; a SIGTERM to bwrap would kill them without a word.
    launch = Launch(
        command, variables, takes_term=False, bounds=bounds, workspace=work.workspace, descriptors=tuple(inside)
    )
    try:
        child = await ChildProcess.start(launch, output)
        if own_network:
            try:
                child.companion = await network.attach(info, variables)
            except BaseException:
                await child.end()
                raise
            os.write(block, b"\n")
    finally:
        for descriptor in (info, block):
            if descriptor >= 0:
                os.close(descriptor)
    return child


def _readable(data: bytes) -> int:
    """Return a pipe that holds these bytes, which are few."""
    reading, writing = os.pipe()
    try:
        os.write(writing, data)
    finally:
        os.close(writing)
    return reading


def own_folders(size: int) -> Iterable[str]:
    """Mount what each sandbox has of its own: small folders in memory, its processes, a few devices."""
    bound = ("--size", str(size)) if size else ()
    yield from ("--proc", "/proc", "--dev", "/dev")
    for folder in (*OWN_FOLDERS, "/dev/shm"):  # noqa: S108 - of the sandbox alone
        yield from (*bound, "--tmpfs", folder)
    yield from ("--remount-ro", "/dev")  # it is memory too, and has no size
    if os.getuid() == 0:
        # They belong to root, who may write them without any privilege: the program that dumps cores, and more.
        for place in KERNEL_SETTINGS:
            yield from ("--ro-bind-try", place, place)


def _system(home: Path) -> Iterable[str]:
    for path in sandbox_mounts.programs(home):
        if path.is_symlink():  # /bin is usr/bin nowadays
            yield from ("--symlink", str(path.readlink()), str(path))
        else:
            yield from ("--ro-bind", str(path), str(path))
    for path in sandbox_mounts.settings():
        # The real file under the usual name: resolv.conf is a link into /run, which is not shown.
        yield from ("--ro-bind-try", str(path.resolve()), str(path))


def why_not() -> str:
    """Return why there is no sandbox here; '' when there is. Tried, not guessed: some systems forbid what it needs."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    trial = ["bwrap", *ALONE, "--ro-bind", "/", "/", *own_folders(1024 * 1024), "--", "true"]
    try:
        tried = subprocess.run(trial, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work ({describe_failure(error)})"
    if tried.returncode:
        lines = tried.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"bubblewrap does not work ({lines[-1][:200] if lines else f'exit code {tried.returncode}'})"
    return ""
