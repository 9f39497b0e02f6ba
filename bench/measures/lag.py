"""How late the event loop is while the worker uses half a core."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from bench import talk
from bench.rig import BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds, percentile

WANTED_CORES = 0.5
LAG_MILLISECONDS = 20.0
FIRST_RATE = 100.0


@dataclass(frozen=True, slots=True)
class Load:
    """Messages at a steady rate: from when to when, and what they cost."""

    began: float
    ended: float
    count: int
    cpu: float

    @property
    def cores(self) -> float:
        return self.cpu / (self.ended - self.began)


@dataclass(frozen=True, slots=True)
class Lateness:
    late: list[float]
    own: list[float]


async def measure(plan: Plan) -> Rows:
    seconds = plan.count(10, 1)
    async with folder() as place:
        file = place / "lag.txt"
        async with world(place / "home", environ={"HERMES_TEST_LAG": str(file)}) as here:
            await talk.warm_up(here)
            trial = await steady(here, FIRST_RATE, plan.count(2, 1), first_chat=10_000)
            rate = FIRST_RATE * WANTED_CORES / max(trial.cores, 0.01)
            plan.say(f"{rate:.0f} messages per second for {seconds} s")
            load = await steady(here, rate, seconds, first_chat=100_000)
        seen = read(file, load)
    return rows(load, seen)


async def steady(here: World, rate: float, seconds: float, *, first_chat: int) -> Load:
    """Each message in a chat of its own, whether or not those before were answered; returns when all are."""
    telegram, seen = here.telegram, len(here.telegram.sent)
    count = int(rate * seconds)
    began, cpu = time.monotonic(), here.gateway.cpu()
    for number in range(count):
        await asyncio.sleep(max(0.0, began + number / rate - time.monotonic()))
        telegram.user_says("hi", chat=first_chat + number, user=first_chat + number)
    await telegram.wait_for(lambda: len(telegram.sent) >= seen + count, talk.ANSWER_SECONDS)
    return Load(began, time.monotonic(), count, here.gateway.cpu() - cpu)


def read(file: Path, load: Load) -> Lateness:
    """What the worker noted while the load lasted. Its clock and ours are the machine's."""
    if not file.exists():
        raise BenchError("The worker left no samples of its lag.")
    samples = [tuple(map(float, line.split())) for line in file.read_text("ascii").splitlines()]
    inside = [(late, used) for due, late, used in samples if load.began <= due <= load.ended]
    return Lateness([late for late, _ in inside], [min(late, used) for late, used in inside])


def rows(load: Load, seen: Lateness) -> Rows:
    note = f"{load.cores:.2f} cores used, {load.count} messages, {len(seen.late)} samples"
    own = "the part that the loop's own CPU explains"
    return [
        Row("loop lag, p50", milliseconds(percentile(seen.late, 50)), "ms", note=note),
        Row("loop lag, p99", milliseconds(percentile(seen.late, 99)), "ms", LAG_MILLISECONDS, note),
        Row("loop lag, p99 without the machine's other work", milliseconds(percentile(seen.own, 99)), "ms", note=own),
        Row("loop lag, longest", milliseconds(max(seen.late, default=0.0)), "ms", note=note),
    ]
