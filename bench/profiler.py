"""``--profile FOLDER``: let py-spy, where it is installed, watch the worker while a measurement runs."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.rows import Plan

RATE = "500"
FINISH_SECONDS = 30.0


@asynccontextmanager
async def watching(plan: Plan, pid: int, name: str) -> AsyncIterator[None]:
    """One line for each stack with its count, in FOLDER/NAME.txt. The figures of such a run are not to be quoted."""
    if not plan.profile:
        yield
        return
    tool = shutil.which("py-spy")
    if tool is None:
        plan.say("py-spy is not on the PATH: no profile")
        yield
        return
    file = Path(plan.profile) / f"{name}.txt"
    command = [tool, "record", "--pid", str(pid), "--gil", "--rate", RATE, "--format", "raw", "--output", str(file)]
    process = await asyncio.create_subprocess_exec(
        *command, "--nonblocking", stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)  # it writes what it saw, then ends
        try:
            async with asyncio.timeout(FINISH_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        plan.say(f"profile: {file}")
