"""Run a command as a child process: start, read output, end its group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hermes.agent.backends.output import Output
from hermes.agent.backends.process_groups import is_alive, signal_group
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
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None = None
    preface: bytes = b""
    takes_term: bool = True
    kill: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class ChildProcess:
    """Implement ``Running``; the starter awaits ``wait`` or ``end``."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, lease: int) -> None:
        self._launch = launch
        self._process = process
        self._lease = lease
        self.group = process.pid  # it was started as the leader of a session of its own
        self.had_leftovers = False
        self._over: asyncio.Task[int]

    @classmethod
    async def start(cls, launch: Launch, output: Output) -> ChildProcess:
        lease_end, lease = os.pipe()
        output_end, output_start = os.pipe()
        try:
            os.set_blocking(lease, False)
            os.write(lease, launch.preface)
            # From this thread, which lives as long as the process: what asks the kernel to be killed when its parent
            # dies (bubblewrap does) means the thread that started it.
            process = await asyncio.create_subprocess_exec(
                *launch.arguments,
                stdin=lease_end,
                stdout=output_start,
                stderr=asyncio.subprocess.STDOUT,
                cwd=launch.folder,
                env=dict(launch.environment),
                start_new_session=True,
            )
        except BaseException as error:
            os.close(lease)
            os.close(output_end)
            if isinstance(error, OSError | ValueError):
                raise ToolError(f"The command could not be started: {sentence(str(error))}") from error
            raise
        finally:
            os.close(lease_end)
            os.close(output_start)
        child = cls(launch, process, lease)
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
            signal_group(self.group, signal.SIGKILL)
        patience = GONE_SECONDS + LAST_OUTPUT_SECONDS + (2 * OWN_SECONDS if self._launch.remove else 0)
        await asyncio.wait({self._over}, timeout=patience)
        if not self._over.done():
            log.error("Command not ended", extra={"group": self.group})

    async def _watch(self, output_end: int, output: Output) -> int:
        reading = asyncio.create_task(_take(output_end, output))
        try:
            code = await self._process.wait()
            if signal_group(self.group, 0) and await asyncio.to_thread(is_alive, self.group):
                # Processes the command left in its group end with the command.
                self.had_leftovers = signal_group(self.group, signal.SIGTERM)
                if not await _is_gone(self.group, TERM_SECONDS):
                    signal_group(self.group, signal.SIGKILL)
                    await _is_gone(self.group, GONE_SECONDS)
            if code < 0:
                await self._run(self._launch.kill)
            await asyncio.wait({reading}, timeout=LAST_OUTPUT_SECONDS)
            await self._run(self._launch.remove)
        finally:
            self._end_lease()
            reading.cancel()
            await asyncio.wait({reading})
        if not reading.cancelled() and (error := reading.exception()) is not None:
            log.error("Command output not stored", exc_info=error)
        return code if code >= 0 else 128 - code

    async def _run(self, arguments: tuple[str, ...]) -> None:
        if arguments:
            await _run_quietly(arguments, self._launch.environment)

    def _end_lease(self) -> None:
        if self._lease >= 0:
            os.close(self._lease)
            self._lease = -1


async def _is_gone(group: int, seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while await asyncio.to_thread(is_alive, group):
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
