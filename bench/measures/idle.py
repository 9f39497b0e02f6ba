"""Doing nothing, with the HTTP port open and Telegram connected: memory of the process tree, CPU of a while."""

from __future__ import annotations

import asyncio

from bench import machine, talk
from bench.rig import GatewayProcess, folder, world
from bench.rows import Plan, Row, Rows

MEMORY_MEGABYTES = 80.0
CPU_PERCENT = 0.5
CALM_SECONDS = 3.0


async def measure(plan: Plan) -> Rows:
    seconds = min(plan.idle_seconds, 2.0) if plan.short else plan.idle_seconds
    async with folder() as place, world(place / "home") as here:
        await asyncio.sleep(0.5 if plan.short else CALM_SECONDS)
        gateway = here.gateway
        tree = gateway.processes
        memory = machine.resident(tree) / machine.MEGABYTE
        shared = machine.proportional(tree) / machine.MEGABYTE
        plan.say(f"watching it do nothing for {seconds:.0f} s")
        before = _cpu(gateway)
        await asyncio.sleep(seconds)
        percent = 100 * (_cpu(gateway) - before) / seconds
        await talk.bursts(here, range(1000, 1000 + plan.count(200, 5)), plan.count(3, 1))
        later = machine.resident(gateway.processes) / machine.MEGABYTE
    return [
        Row("memory, idle: RSS of the process tree", memory, "MB", MEMORY_MEGABYTES, f"{len(tree)} processes"),
        Row("memory, idle: PSS (shared pages counted once)", shared, "MB"),
        Row("idle CPU of the process tree", percent, "% of a core", CPU_PERCENT, f"over {seconds:.0f} s"),
        Row("memory after a burst: RSS of the process tree", later, "MB", note=f"{plan.count(600, 5)} messages"),
    ]


def _cpu(gateway: GatewayProcess) -> float:
    return sum(machine.cpu_seconds(pid) for pid in gateway.processes)
