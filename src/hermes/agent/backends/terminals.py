"""Run terminal commands: back end per person, background jobs, outputs."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol, assert_never

from hermes.agent.backends import bubblewrap, cgroups, docker, environment, landlock, network, ssh
from hermes.agent.backends.base import Backend, BackendName, Bounds, CommandSpec, Running
from hermes.agent.backends.child import to_the_end
from hermes.agent.backends.limits import MB, WARN_SHARE, WorkspaceQuota, limits_of
from hermes.agent.backends.local import LocalBackend
from hermes.agent.backends.output import Output, read_file
from hermes.agent.backends.process_groups import birth_of, kill_group
from hermes.agent.backends.selection import Availability, choose
from hermes.agent.toolkit.context import ToolContext
from hermes.config import Config
from hermes.config.agent_settings import TerminalConfig
from hermes.core.dataclasses import dataclass
from hermes.core.errors import StoreIsDownError, ToolError
from hermes.core.ports import Clock
from hermes.core.roles import PersonRole, at_least
from hermes.core.text import storable
from hermes.store import processes
from hermes.store.db import Database
from hermes.store.ids import new_id
from hermes.store.processes import Process

log = logging.getLogger(__name__)

OUTPUTS = "outputs"
LOOK_SECONDS = 300.0
KEPT_SECONDS = 7 * 86400.0
MAX_RUNNING = 16  # of one person, in the background
MAX_LISTED = 50
MAX_ARGUMENT_BYTES = 120_000  # bytes; the kernel takes 128 KiB in one argument


@dataclass(frozen=True, slots=True)
class TerminalCommand:
    """Hold a command to run: ``arguments`` are run, ``shown`` is listed.

    ``outside``: it runs outside the sandbox of the ``guarded`` back end, after an approval.
    """

    arguments: tuple[str, ...]
    shown: str
    folder: str = ""
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """Hold a finished command; ``exit_code`` None: it was killed at its timeout.

    The receiver closes ``output``. ``notes`` are sentences for the model: a limit that ended the command, a workspace
    that is nearly full, a network that is not there.
    """

    process: Process
    output: Output
    had_leftovers: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _BackgroundCommand:
    process: Process
    running: Running
    output: Output
    bounds: Bounds | None = None
    over: asyncio.Task[None] | None = None


class ProcessesElsewhere(Protocol):
    """Background commands of other nodes."""

    async def read(self, process: Process, offset: int, count: int) -> tuple[bytes, int]: ...
    async def wait(self, process: Process, seconds: float) -> None: ...
    async def kill(self, process: Process) -> None: ...


class Terminals:
    """Run the commands of the terminal tools; ``more_variables`` names what skills need.

    Whatever it started has ended when ``close`` returns; if this process dies, what it started ends by itself.
    ``elsewhere`` reaches the commands of other nodes; None where there are none.
    """

    elsewhere: ProcessesElsewhere | None = None

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        config: Callable[[], Config],
        db: Database,
        clock: Clock,
        *,
        look_up: Callable[[str], str | None] = lambda _: None,
        more_variables: Callable[[], Iterable[str]] = tuple,
        mask: Callable[[bytes], bytes] = bytes,
        host: str = "",
    ) -> None:
        """``host`` is the name under which commands are stored as this machine's; a node of a cluster has its own."""
        self._home = home
        self._environ = environ
        self._config = config
        self._db = db
        self._clock = clock
        self._look_up = look_up
        self._more_variables = more_variables
        self._mask = mask
        self._host = host or platform.node()
        self._sandboxes: tuple[str, str] | None = None  # why not bubblewrap, why not Landlock; as last seen
        self._jobs: dict[str, _BackgroundCommand] = {}
        self._quota = WorkspaceQuota()
        self._is_offline_told = False
        self._waited_for: dict[str, _BackgroundCommand] = {}  # by lane: the command that a turn waits for

    def approvals_mode(self) -> str:
        """Return which commands ask first: ``approvals.mode``."""
        return self._config().approvals.mode

    async def run(self) -> None:
        """Probe sandboxes and delete old outputs periodically, until cancelled."""
        if "docker" in (self._config().terminal.backend.value, self._config().terminal.others.value):
            await asyncio.to_thread(docker.sweep, self._home, self._environ)
        while True:
            self._sandboxes = await asyncio.to_thread(_try_sandboxes)
            if (divided := await asyncio.to_thread(cgroups.delegated)) is not None:
                await asyncio.to_thread(cgroups.sweep, divided)
            if self._config().terminal.network and (sentence := network.sentence_offline()):
                if not self._is_offline_told:
                    log.warning("Sandbox without network", extra={"reason": sentence})
                self._is_offline_told = True
            try:
                before = self._clock.now() - KEPT_SECONDS
                if await self._db.read(processes.has_old, host=self._host, before=before):
                    for name in await self._db.alone(processes.forget, host=self._host, before=before):
                        await asyncio.to_thread((self._home / OUTPUTS / name).unlink, missing_ok=True)
            except StoreIsDownError as error:
                log.warning("Store is down", extra={"while": "forgetting old commands", "reason": str(error)})
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """End all background commands."""
        jobs = list(self._jobs.values())
        await asyncio.gather(*(job.running.end() for job in jobs))
        await asyncio.gather(*(job.over for job in jobs if job.over is not None), return_exceptions=True)

    # Whose is which

    def backend(self, ctx: ToolContext, *, outside: bool = False) -> Backend:
        """Return the caller's back end; the ToolError says why there is none.

        ``outside`` is this machine without a sandbox, only for an owner whose commands run guarded.
        """
        config = self._config().terminal
        if self._sandboxes is None:  # ``run`` has not come to it yet
            self._sandboxes = _try_sandboxes()
        found = Availability(*self._sandboxes, docker.why_not(config.docker_image, self._environ), ssh.why_not(config))
        choice = choose(config, found, ctx.role)
        if choice.backend is None:
            raise ToolError(choice.why)
        if outside and choice.backend is not BackendName.LOCAL:
            if choice.backend is not BackendName.GUARDED or ctx.role is not PersonRole.OWNER:
                raise ToolError(
                    "outside=true works only for the owner, with terminal.backend: guarded. Call it without outside."
                )
            return LocalBackend(is_outside=True)
        return self._make(choice.backend, config)

    def _make(self, name: BackendName, config: TerminalConfig) -> Backend:
        match name:
            case BackendName.LOCAL:
                return LocalBackend()
            case BackendName.GUARDED:
                from hermes.agent.backends.guarded import GuardedBackend  # few owners have this sandbox

                has_bubblewrap = self._sandboxes is not None and not self._sandboxes[0]
                backups = self._home / Path(self._config().backup.folder).expanduser()
                return GuardedBackend(self._home, self._environ, has_bubblewrap=has_bubblewrap, backups=backups)
            case BackendName.BUBBLEWRAP:
                return bubblewrap.BubblewrapBackend(self._home, network=config.network)
            case BackendName.LANDLOCK:
                return landlock.LandlockBackend(self._home)
            case BackendName.DOCKER:
                return docker.DockerBackend(self._home, config.docker_image, self._environ, network=config.network)
            case BackendName.SSH:
                return ssh.SshBackend(config, self._environ)
            case _:
                assert_never(name)

    def timeout_seconds(self) -> float:
        return self._config().terminal.timeout_seconds

    # Running

    async def finish(self, ctx: ToolContext, command: TerminalCommand, seconds: float) -> Finished:
        """Run a command and wait; a timeout or cancellation ends the command first."""
        job = await self._start(ctx, command)
        self._waited_for[job.process.lane] = job
        try:
            if ctx.started_group is not None:
                await ctx.started_group(job.running.group)
            exit_code = None
            try:
                async with asyncio.timeout(seconds):
                    exit_code = await job.running.wait()
            except TimeoutError:
                await to_the_end(job.running.end())
        except BaseException:
            await to_the_end(_drop(job))
            raise
        finally:
            self._waited_for.pop(job.process.lane, None)
        ended = replace(job.process, ended_at=self._clock.now(), exit_code=exit_code)
        return Finished(ended, job.output, job.running.had_leftovers, tuple(self._notes(job, exit_code)))

    def _notes(self, job: _BackgroundCommand, exit_code: int | None) -> Iterable[str]:
        if job.running.stopped_by:
            yield f"Ended at a limit: {job.running.stopped_by}."
        elif exit_code == _FILE_TOO_LARGE and job.bounds is not None:
            yield "A file grew over its limit (terminal.limits.file_mb), or the workspace is full."
        if job.bounds is not None and (most := job.bounds.limits.workspace):
            used = f"{job.bounds.used // MB:,} of {most // MB:,} MB"
            if job.bounds.is_full:
                yield f"The workspace is full ({used}): until files are removed, no file can be written."
            elif job.bounds.used > most * WARN_SHARE:
                yield f"The workspace is nearly full ({used}). Remove what is not needed, and tell the person."
        offline = job.process.backend in (BackendName.BUBBLEWRAP, BackendName.LANDLOCK)
        if offline and exit_code and self._config().terminal.network:
            if job.process.backend == BackendName.LANDLOCK:
                yield "There is no network here: terminal.network needs bubblewrap, and this ran under Landlock."
            elif sentence := network.sentence_offline():
                yield sentence

    async def begin(self, ctx: ToolContext, command: TerminalCommand) -> Process:
        """Start a background command; it ends with the gateway."""
        started = [job.process for job in self._jobs.values() if job.process.person_id == ctx.person_id]
        mine = [process for process in started if ctx.person_id or process.session_id == ctx.session_id]
        if len(mine) >= MAX_RUNNING:
            raise ToolError(f"{MAX_RUNNING} commands of yours run already. End one with process(action='kill').")
        job = await self._start(ctx, command)
        try:
            await self._db.write(processes.record, job.process)
        except BaseException:
            await to_the_end(_drop(job))
            raise
        self._jobs[job.process.id] = job
        job.over = asyncio.create_task(self._see_to_its_end(job), name=f"process {job.process.id}")
        return job.process

    async def _start(self, ctx: ToolContext, command: TerminalCommand) -> _BackgroundCommand:
        backend = self.backend(ctx, outside=command.outside)
        work = await asyncio.to_thread(self._work, ctx, backend, command)
        process_id = new_id("p")
        output = Output(self._home / OUTPUTS / f"{process_id}.log", self._mask)
        running = await backend.start(work, output)
        process = Process(
            id=process_id,
            session_id=ctx.session_id,
            lane=str(ctx.session_key),
            person_id=ctx.person_id,
            command=storable(command.shown),
            backend=backend.name,
            folder=str(work.folder),
            log=output.path.name,
            host=self._host,
            process_group=running.group,
            process_started=birth_of(running.group),
            started_at=self._clock.now(),
        )
        return _BackgroundCommand(process, running, output, work.bounds)

    def _work(self, ctx: ToolContext, backend: Backend, command: TerminalCommand) -> CommandSpec:
        for argument in command.arguments:
            check_length(argument)
            if "\0" in argument:
                raise ToolError("A command cannot hold a NUL character.")
        workspace = ctx.workspace.resolve()
        folder = ctx.inside(command.folder or ".")
        if folder == workspace:
            workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
        if backend.shares_files and not folder.is_dir():
            raise ToolError(f"There is no folder {command.folder!r} in the workspace.")
        # env_passthrough may hold the owner's keys: not for users, who could print them.
        is_trusted = at_least(ctx.role, PersonRole.ADMIN)
        passed = (*self._config().terminal.env_passthrough, *self._more_variables()) if is_trusted else ()
        variables = environment.scrubbed(self._environ, passed=passed, look_up=self._look_up)
        bounds = None
        if backend.name not in (BackendName.LOCAL, BackendName.SSH):
            limits = limits_of(self._config().terminal.limits, is_owner=ctx.role is PersonRole.OWNER)
            if not workspace.is_relative_to(self._home.resolve()):
                limits = replace(limits, workspace=0)  # a folder that the owner chose, with files of their own
            used = self._quota.used(workspace, limits.workspace) if limits.workspace else 0
            bounds = Bounds(limits, self._quota, used)
        return CommandSpec(command.arguments, folder, workspace, variables, bounds)

    async def _see_to_its_end(self, job: _BackgroundCommand) -> None:
        try:
            exit_code = await job.running.wait()
            await job.output.close(keep=True)
            await self._db.write(processes.end, job.process.id, exit_code=exit_code, now=self._clock.now())
        except StoreIsDownError as error:  # the next start writes it down
            log.warning("Store is down", extra={"command": job.process.id, "reason": str(error)})
        finally:
            self._jobs.pop(job.process.id, None)

    async def last_output(self, lane: str, count: int) -> bytes:
        """Return the newest bytes of the command that a turn of this lane waits for; b'' where there is none."""
        job = self._waited_for.get(lane)
        if job is None:
            return b""
        size = job.output.size
        return self._mask(await job.output.read(max(0, size - count), count))

    # What goes on, or was kept

    async def listed(self, ctx: ToolContext) -> list[Process]:
        return await self._db.read(
            processes.listed, person_id=ctx.person_id, session_id=ctx.session_id, limit=MAX_LISTED
        )

    async def find(self, ctx: ToolContext, process_id: str) -> Process:
        """Return a process of this person; ToolError for any other id."""
        found = await self._db.read(processes.get, process_id, person_id=ctx.person_id, session_id=ctx.session_id)
        if found is None:
            raise ToolError(f"There is no process {process_id!r}. See process(action='list').")
        return found

    async def read(self, process: Process, offset: int, count: int) -> tuple[bytes, int]:
        """Return a piece of the output, and its size so far."""
        job = self._jobs.get(process.id)
        if job is not None:
            return await job.output.read(offset, count), job.output.size
        if self._is_elsewhere(process) and self.elsewhere is not None:
            return await self.elsewhere.read(process, offset, count)
        path = self._home / OUTPUTS / process.log
        return await asyncio.to_thread(lambda: (read_file(path, offset, count), _size(path)))

    def node_of(self, process: Process) -> str:
        """The node that a process belongs to; '' for this one."""
        return process.host if self.elsewhere is not None and self._is_elsewhere(process) else ""

    def _is_elsewhere(self, process: Process) -> bool:
        return process.host != self._host

    async def wait(self, process: Process, seconds: float) -> None:
        """Wait until the process ends, at most ``seconds``."""
        job = self._jobs.get(process.id)
        if job is not None and job.over is not None:
            await asyncio.wait({job.over}, timeout=seconds)
        elif process.is_running and self._is_elsewhere(process) and self.elsewhere is not None:
            await self.elsewhere.wait(process, seconds)

    async def kill(self, process: Process) -> None:
        job = self._jobs.get(process.id)
        if job is None and self._is_elsewhere(process) and self.elsewhere is not None:
            await self.elsewhere.kill(process)
            return
        if job is None or job.over is None:
            raise ToolError(f"{process.id} does not run here any more.")
        await to_the_end(job.running.end())
        await asyncio.wait({job.over}, timeout=5)


async def end_leftovers(db: Database, *, now: float, host: str = "") -> None:
    """Kill processes a crashed gateway left running, and record their end."""
    for left in await db.read(processes.left_open, host or platform.node()):
        if kill_group(left.process_group, left.process_started):
            log.warning("Killed process left by a crash", extra={"group": left.process_group, "command": left.id})
        await db.write(processes.end, left.id, exit_code=None, now=now)


_FILE_TOO_LARGE = 128 + 25  # ended by SIGXFSZ


def check_length(argument: str) -> None:
    if len(argument.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES:
        raise ToolError(f"This is longer than {MAX_ARGUMENT_BYTES:,} bytes. Write it into a file, and run that.")


def _try_sandboxes() -> tuple[str, str]:
    return bubblewrap.why_not(), landlock.why_not()


async def _drop(job: _BackgroundCommand) -> None:
    await job.running.end()
    await job.output.close(keep=False)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
