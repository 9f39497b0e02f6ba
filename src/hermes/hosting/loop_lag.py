"""Sample how late the event loop is, for the bench."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

SAMPLE_SECONDS = 0.01
VARIABLE = "HERMES_TEST_LAG"

Sample = tuple[float, float, float]


@contextlib.asynccontextmanager
async def sampling(environ: Mapping[str, str]) -> AsyncIterator[None]:
    """With ``HERMES_TEST_LAG=FILE`` a timer of 10 ms runs until the end of the block; without it nothing does.

    The file gets one line for each time it fired: when it was due (monotonic), how late it was, and how much CPU
    the loop's thread used since the time before. Lateness without CPU is the machine's doing, not the gateway's.
    """
    file = environ.get(VARIABLE, "")
    if not file:
        yield
        return
    samples: list[Sample] = []
    timer = asyncio.create_task(_sample(samples), name="lag")
    try:
        yield
    finally:
        timer.cancel()
        await asyncio.wait([timer])
        await asyncio.to_thread(_write, Path(file), samples)


async def _sample(samples: list[Sample]) -> None:
    while True:
        due, used = time.monotonic() + SAMPLE_SECONDS, time.thread_time()
        await asyncio.sleep(SAMPLE_SECONDS)
        samples.append((due, time.monotonic() - due, time.thread_time() - used))


def _write(file: Path, samples: list[Sample]) -> None:
    file.write_text("".join(f"{due:.6f} {late:.6f} {used:.6f}\n" for due, late, used in samples), "ascii")
