"""Run a program to its end: no shell, a deadline, bounded output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from hermes.agent.backends.process_groups import let_go

StartedGroup = Callable[[int], Awaitable[None]] | None


class TooMuchError(Exception):
    """A program printed more than it may."""


class ProgramResult(NamedTuple):
    code: int
    out: bytes
    err: bytes


async def run_program(
    argv: Sequence[str],
    *,
    stdin: bytes,
    seconds: float,
    max_bytes: int,
    env: Mapping[str, str],
    started_group: StartedGroup = None,
) -> ProgramResult:
    """Run ``argv`` in its own process group, which is killed at the end.

    Raises OSError, TimeoutError or TooMuchError.
    """
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True
    )
    assert process.stdin is not None  # noqa: S101 - all three are pipes
    assert process.stdout is not None  # noqa: S101 - the same
    assert process.stderr is not None  # noqa: S101 - the same
    tasks: list[asyncio.Future[bytes]] = []
    try:
        if started_group is not None:
            await started_group(process.pid)
        async with asyncio.timeout(seconds):
            tasks = [
                asyncio.ensure_future(_read(process.stdout, max_bytes)),
                asyncio.ensure_future(_read(process.stderr, max_bytes)),
                asyncio.ensure_future(_feed(process.stdin, stdin)),
            ]
            out, err = await asyncio.gather(*tasks[:2])
            code = await process.wait()  # its pipes close a moment before it has ended
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        with suppress(ProcessLookupError):  # all of its group have ended by themselves
            os.killpg(process.pid, signal.SIGKILL)
        await let_go(process)
    return ProgramResult(code, out, err)


async def _read(pipe: asyncio.StreamReader, max_bytes: int) -> bytes:
    data = bytearray()
    while chunk := await pipe.read(1 << 16):
        data += chunk
        if len(data) > max_bytes:
            raise TooMuchError
    return bytes(data)


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> bytes:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has read all that it wanted
        pipe.write(data)
        await pipe.drain()
    pipe.close()
    return b""
