"""`hermes --version`: the CPU of a command that does nearly nothing."""

from __future__ import annotations

import asyncio
import os
import resource
import statistics

from bench.rig import ROOT, BenchError
from bench.rows import Plan, Row, Rows, milliseconds

CPU_MILLISECONDS = 100.0


async def measure(plan: Plan) -> Rows:
    times = plan.count(10, 2)
    used = [await cpu_of("--version") for _ in range(times)]
    return [
        Row(
            "hermes --version: CPU", milliseconds(statistics.median(used)), "ms", CPU_MILLISECONDS, f"median of {times}"
        )
    ]


async def cpu_of(*arguments: str) -> float:
    """CPU of the command and all it starts; nothing else of ours may end meanwhile."""
    before = _ended_children()
    process = await asyncio.create_subprocess_exec(
        str(ROOT / "scripts" / "hermes"),
        *arguments,
        env={"PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(60):
        if await process.wait() != 0:
            raise BenchError(f"hermes {' '.join(arguments)} failed")
    return _ended_children() - before


def _ended_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
