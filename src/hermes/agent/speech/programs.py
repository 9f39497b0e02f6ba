"""Run speech programs: no shell, a deadline, the process group killed."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from hermes.agent.backends.environment import scrubbed
from hermes.agent.backends.process_groups import let_go
from hermes.core.errors import ToolError

MAX_OUTPUT_BYTES = 100_000_000  # of what it prints: an hour of silence is a few bytes when packed, and endless unpacked
SHOWN = 300


class TooMuchError(Exception):
    """It prints and prints."""


StartedGroup = Callable[[int], Awaitable[None]] | None


def argv_of(template: str, values: Mapping[str, str], setting: str) -> list[str]:
    """Return the words of a command with their placeholders filled in; no shell ever sees them."""
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise ToolError(f"{setting} cannot be read ({error}). The owner sets it anew.") from None
    if not parts:
        raise ToolError(f"{setting} is empty. The owner names a program there.")
    for name, value in values.items():
        parts = [part.replace(f"{{{name}}}", value) for part in parts]
    return parts


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    seconds: float,
    started_group: StartedGroup = None,
    what: str = "",
    most_bytes: int = MAX_OUTPUT_BYTES,
) -> bytes:
    """Run a program and return its output; ToolError when missing, failed, late or too long."""
    name = what or os.path.basename(argv[0])
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=scrubbed(os.environ, passed=("LD_LIBRARY_PATH",)),
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(f"{name} cannot be started ({error.strerror}).") from None
    try:
        if started_group is not None:
            await started_group(process.pid)
        async with asyncio.timeout(seconds):
            out, err = await _exchanged(process, stdin, most_bytes)
            await process.wait()  # its pipes close a moment before it has ended
    except TooMuchError:
        raise ToolError(f"{name} printed more than {most_bytes} bytes and was ended.") from None
    except TimeoutError:
        raise ToolError(f"{name} took longer than {seconds:g} s and was ended.") from None
    finally:
        with suppress(ProcessLookupError):  # all of its group have ended by themselves
            os.killpg(process.pid, signal.SIGKILL)
        await let_go(process)
    if process.returncode != 0:
        said = " ".join(err.decode("utf-8", "replace").split())[-SHOWN:]
        raise ToolError(f"{name} failed with exit code {process.returncode}" + (f": {said}" if said else "."))
    return out


async def _exchanged(process: Process, stdin: bytes, most_bytes: int) -> tuple[bytes, bytes]:
    """Feed stdin and read both outputs, like ``communicate`` with a size limit."""
    assert process.stdin is not None  # noqa: S101 - all three are pipes: run() asked for them
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    reading = [asyncio.ensure_future(_read(pipe, most_bytes)) for pipe in (process.stdout, process.stderr)]
    feeding = asyncio.ensure_future(_feed(process.stdin, stdin))
    try:
        out, err = await asyncio.gather(*reading)
    finally:
        for task in (*reading, feeding):
            task.cancel()
        await asyncio.wait((*reading, feeding))
    return out, err


async def _read(pipe: asyncio.StreamReader, most_bytes: int) -> bytes:
    kept = bytearray()
    while chunk := await pipe.read(1 << 16):
        kept += chunk
        if len(kept) > most_bytes:
            raise TooMuchError
    return bytes(kept)


async def _feed(pipe: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it has read all that it wanted
        pipe.write(data)
        await pipe.drain()
    pipe.close()
