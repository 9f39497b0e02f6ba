"""From the command to /health, to ready and to the first answer, on a fresh home and on one that was used."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from bench import machine, talk
from bench.rig import GatewayProcess, ModelProcess, World, folder, model, running, settings
from bench.rows import Plan, Row, Rows, milliseconds
from tests.fakes.telegram import FakeTelegram

HEALTH_SECONDS = 0.6


@dataclass(frozen=True, slots=True)
class Start:
    health: float
    ready: float
    cpu: float
    first_answer: float
    second_answer: float


async def measure(plan: Plan) -> Rows:
    times = plan.count(5, 1)
    fresh: list[Start] = []
    used: list[Start] = []
    async with folder() as place, model() as provider, FakeTelegram() as telegram:
        for number in range(times):
            plan.say(f"start {number + 1} of {times}, on a fresh home and again on the same")
            home = place / f"home{number}"
            fresh.append(await once(home, provider, telegram))
            used.append(await once(home, provider, telegram))
    first = statistics.median(start.first_answer for start in fresh + used)
    second = statistics.median(start.second_answer for start in fresh + used)
    return [
        *rows_of("fresh home", fresh),
        *rows_of("used home", used),
        Row("first answer after a start", milliseconds(first), "ms", note="median; the design: as quick as the second"),
        Row("second answer", milliseconds(second), "ms", note="median"),
    ]


def rows_of(what: str, starts: list[Start]) -> Rows:
    note = f"median of {len(starts)}"
    health = statistics.median(start.health for start in starts)
    ready = statistics.median(start.ready for start in starts)
    cpu = statistics.median(start.cpu for start in starts)
    return [
        Row(f"{what}: start to /health", health, "s", HEALTH_SECONDS, note),
        Row(f"{what}: start to ready, Telegram connected", ready, "s", note=note),
        Row(f"{what}: CPU of the process tree until ready", cpu, "s", note=note),
    ]


async def once(home: Path, provider: ModelProcess, telegram: FakeTelegram) -> Start:
    gateway = GatewayProcess(home, settings(telegram, provider, home.parent))
    async with running(gateway):
        health = await gateway.health()
        ready = await gateway.ready()
        cpu = sum(machine.cpu_seconds(pid) for pid in gateway.processes)
        world = World(gateway, telegram, provider)
        first = await talk.paced(world, [7], pause=0.0)
        second = await talk.paced(world, [7], pause=0.0)
    return Start(health, ready, cpu, first.waits[0], second.waits[0])
