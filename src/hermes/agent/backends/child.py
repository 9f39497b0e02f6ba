"""Run a command as a child process: start, read output, end its group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hermes.agent.backends import cgroups, limits
from hermes.agent.backends.base import Bounds
from hermes.agent.backends.lease import gated
from hermes.agent.backends.output import Output
from hermes.agent.backends.process_groups import descendants, is_alive, is_running, signal_group
from hermes.core.dataclasses import dataclass
from hermes.core.errors import ToolError
from hermes.core.i18n.failures import sentence

log = logging.getLogger(__name__)

TERM_SECONDS = 1.0
LAST_OUTPUT_SECONDS = 0.5
GONE_SECONDS = 2.0
OWN_SECONDS = 5.0  # for a command of our own that ends or removes something elsewhere
CHUNK = 64 * 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Launch:
    """The child process of a back end. Its standard input is the lease; ``preface`` is written into it first.

    ``takes_term``: the command's processes are in the child's own group, so that a SIGTERM to this reaches them; where
    they are elsewhere, only the end of the lease does. ``kill`` is run when what is elsewhere did not end in time, or
    its child here was killed; ``remove`` in any case, at the end.

    ``bounds`` are enforced on the child and all below it, and on the files of ``workspace``; with ``is_elsewhere`` the
    processes are bounded by whatever runs them. ``scratch`` is a folder that goes with the command. ``descriptors``
    are inherited and closed here.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None = None
    preface: bytes = b""
    takes_term: bool = True
    kill: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    bounds: Bounds | None = None
    workspace: Path | None = None
    is_elsewhere: bool = False
    scratch: Path | None = None
    descriptors: tuple[int, ...] = ()


class ChildProcess:
    """Implement ``Running``; the starter awaits ``wait`` or ``end``."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, lease: int) -> None:
        self._launch = launch
        self._process = process
        self._lease = lease
        self.group = process.pid  # it was started as the leader of a session of its own
        self.had_leftovers = False
        self.stopped_by = ""
        self.companion: ChildProcess | None = None  # a process that serves this one, and ends with it
        self._started_at = time.time()
        self._cgroup: Path | None = None
        self._below: list[int] = []  # processes that were below the child when it was killed
        self._over: asyncio.Task[int]

    @classmethod
    async def start(cls, launch: Launch, output: Output) -> ChildProcess:
        lease_end, lease = os.pipe()
        output_end, output_start = os.pipe()
        group: Path | None = None
        is_gated = launch.bounds is not None and not launch.is_elsewhere
        try:
            os.set_blocking(lease, False)
            os.write(lease, launch.preface)
            # From this thread, which lives as long as the process: what asks the kernel to be killed when its parent
            # dies (bubblewrap does) means the thread that started it.
            process = await asyncio.create_subprocess_exec(
                *(gated(launch.arguments) if is_gated else launch.arguments),
                stdin=lease_end,
                stdout=output_start,
                stderr=asyncio.subprocess.STDOUT,
                cwd=launch.folder,
                env=dict(launch.environment),
                start_new_session=True,
                pass_fds=launch.descriptors,
            )
            if launch.bounds is not None and is_gated:
                limits.apply(process.pid, launch.bounds.limits, is_full=launch.bounds.is_full)
                if (divided := cgroups.delegated()) is not None:
                    group = cgroups.enter(divided, process.pid, launch.bounds.limits)
                os.write(lease, b"\n")
        except BaseException as error:
            os.close(lease)
            os.close(output_end)
            if isinstance(error, OSError | ValueError):
                raise ToolError(f"The command could not be started: {sentence(str(error))}") from error
            raise
        finally:
            for descriptor in (lease_end, output_start, *launch.descriptors):
                os.close(descriptor)
        child = cls(launch, process, lease)
        child._cgroup = group
        child._over = asyncio.create_task(child._watch(output_end, output), name=f"command {process.pid}")
        return child

    async def wait(self) -> int:
        return await asyncio.shield(self._over)

    async def end(self) -> None:
        if self._over.done():
            return
        self._end_lease()
        if self._launch.takes_term:
            signal_group(self.group, signal.SIGTERM)
        # Where the lease itself kills, it does so after the same second: we come a moment later.
        patience = TERM_SECONDS if self._launch.takes_term else TERM_SECONDS + 0.2
        await asyncio.wait({self._over}, timeout=patience)
        if not self._over.done():
            await self._run(self._launch.kill)
            await self._kill()
        patience = 2 * GONE_SECONDS + LAST_OUTPUT_SECONDS + (2 * OWN_SECONDS if self._launch.remove else 0)
        await asyncio.wait({self._over}, timeout=patience)
        if not self._over.done():
            log.error("Command not ended", extra={"group": self.group})

    async def _watch(self, output_end: int, output: Output) -> int:
        reading = asyncio.create_task(_take(output_end, output))
        bounding = asyncio.create_task(self._enforce()) if self._launch.bounds is not None else None
        try:
            code = await self._process.wait()
            if bounding is not None:
                bounding.cancel()
            if signal_group(self.group, 0) and await asyncio.to_thread(is_alive, self.group):
                # Processes the command left in its group end with the command.
                self.had_leftovers = signal_group(self.group, signal.SIGTERM)
                if not await _is_gone(self.group, TERM_SECONDS):
                    signal_group(self.group, signal.SIGKILL)
                    await _is_gone(self.group, GONE_SECONDS)
            if self._below:
                await _until(lambda: not any(is_running(pid) for pid in self._below), GONE_SECONDS)
            if code < 0:
                await self._run(self._launch.kill)
            await asyncio.wait({reading}, timeout=LAST_OUTPUT_SECONDS)
            await self._run(self._launch.remove)
        finally:
            self._end_lease()
            reading.cancel()
            await asyncio.wait({reading} if bounding is None else {reading, bounding})
            if self.companion is not None:
                await self.companion.end()
            await asyncio.to_thread(self._clean_up)
        if bounding is not None and not bounding.cancelled() and (error := bounding.exception()) is not None:
            log.error("Command limits not enforced", exc_info=error)
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.error("Command output not stored", exc_info=error)
        return code if code >= 0 else 128 - code

    async def _enforce(self) -> None:
        """End the command when it uses more than it may."""
        launch, bounds = self._launch, self._launch.bounds
        if bounds is None or launch.workspace is None:
            return
        first = 0 if launch.is_elsewhere else self.group
        watch = limits.LimitWatch(first, bounds.limits, launch.workspace, bounds.quota, bounds.used)
        why = ""
        while not why:
            await asyncio.sleep(limits.LOOK_SECONDS)
            why = await asyncio.to_thread(watch.look)
        self.stopped_by = why
        log.warning("Command ended at a limit", extra={"group": self.group, "reason": why})
        await self._run(launch.kill)
        await self._kill()

    async def _kill(self) -> None:
        """SIGKILL the group and, in a sandbox, what left it: bubblewrap's own first process has another session."""
        if self._launch.bounds is not None and not self._launch.is_elsewhere:
            self._below = (await asyncio.to_thread(descendants, self.group))[1:]
        signal_group(self.group, signal.SIGKILL)
        for pid in self._below:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has just ended
                os.kill(pid, signal.SIGKILL)

    def _clean_up(self) -> None:
        if self._cgroup is not None:
            cgroups.leave(self._cgroup)
        if self._launch.scratch is not None:
            shutil.rmtree(self._launch.scratch, ignore_errors=True)  # the command's own, which may have closed a folder
        if self._launch.is_elsewhere and self._launch.workspace is not None:
            limits.clear_set_id_bits(self._launch.workspace, self._started_at)

    async def _run(self, arguments: tuple[str, ...]) -> None:
        if arguments:
            await _run_quietly(arguments, self._launch.environment)

    def _end_lease(self) -> None:
        if self._lease >= 0:
            os.close(self._lease)
            self._lease = -1


async def _is_gone(group: int, seconds: float) -> bool:
    return await _until(lambda: not is_alive(group), seconds)


async def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while not await asyncio.to_thread(is_so):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


async def _take(descriptor: int, output: Output) -> None:
    reader = asyncio.StreamReader(CHUNK)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        while chunk := await reader.read(CHUNK):
            await output.write(chunk)
    finally:
        transport.close()


async def _run_quietly(arguments: tuple[str, ...], environment: Mapping[str, str]) -> None:
    """Run a command of our own and ignore its result."""
    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environment),
        )
        try:
            async with asyncio.timeout(OWN_SECONDS):
                await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await work to its end; a cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
