"""Programs that speak, listen or convert: run without a shell, within a time, and ended with all they started."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from hermes.agent.backends.environment import scrubbed
from hermes.core.errors import ToolError

MOST_OUTPUT = 100_000_000
SHOWN = 300

StartedGroup = Callable[[int], Awaitable[None]] | None


def argv_of(template: str, values: Mapping[str, str], setting: str) -> list[str]:
    """The words of a command with their placeholders filled in; no shell ever sees them."""
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise ToolError(f"{setting} cannot be read ({error}). The owner sets it anew.") from None
    if not parts:
        raise ToolError(f"{setting} is empty. The owner names a program there.")
    return [_filled(part, values) for part in parts]


def _filled(part: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        part = part.replace(f"{{{name}}}", value)
    return part


async def run(
    argv: Sequence[str], *, stdin: bytes = b"", seconds: float, started_group: StartedGroup = None, what: str = ""
) -> bytes:
    """What it printed; ToolError when it is not there, fails or takes too long."""
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
            out, err = await process.communicate(stdin)
    except TimeoutError:
        raise ToolError(f"{name} took longer than {seconds:g} s and was ended.") from None
    finally:
        with suppress(ProcessLookupError):  # all of its group have ended by themselves
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode != 0:
        said = " ".join(err.decode("utf-8", "replace").split())[-SHOWN:]
        raise ToolError(f"{name} failed with exit code {process.returncode}" + (f": {said}" if said else "."))
    return out
