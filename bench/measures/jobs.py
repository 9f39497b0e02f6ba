"""The same start and the same idle gateway with 10,000 jobs stored, and a board of 10,000 tasks listed.

Both gateways are started in turn and are up together, as in ``sessions``: what is told is the median of the pairs.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from pathlib import Path

from bench import machine
from bench.caller import Line, door_of
from bench.measures.sessions import Home
from bench.measures.start import once
from bench.rig import GatewayProcess, folder, model, running, settings
from bench.rows import Plan, Row, Rows, milliseconds, percentile
from hermes.core.entries.schedule import ScheduleKind
from hermes.store.db import Tx
from hermes.store.entries import jobs
from hermes.store.entries.jobs import JobRow
from hermes.store.home import make_home
from hermes.store.kanban import tasks
from hermes.store.kanban.open import open_board
from hermes.store.kanban.tasks import NewTask
from hermes.store.open import open_database
from tests.fakes.telegram import FakeTelegram

MORE_PERCENT = 3.0
CALM_SECONDS = 3.0
MONTH_SECONDS = 30 * 86_400.0
LIST_MILLISECONDS = 50.0
LISTS = 20


async def measure(plan: Plan) -> Rows:
    count = plan.count(10_000, 50)
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(folder())
        provider = await stack.enter_async_context(model())
        homes = [Home(place / name, await stack.enter_async_context(FakeTelegram())) for name in ("empty", "full")]
        for home, jobs_here in zip(homes, (0, count), strict=True):
            await seed(home.path, jobs_here)
        plan.say(f"stored {count} jobs and {count} tasks")
        for home in homes:  # the first start of a home does more
            await once(home.path, provider, home.telegram)
        starts: list[list[float]] = [[], []]
        for turn in range(plan.count(5, 1)):
            for which in (0, 1) if turn % 2 else (1, 0):
                begun = await once(homes[which].path, provider, homes[which].telegram)
                starts[which].append(begun.cpu)
        gateways = []
        for home in homes:
            gateway = GatewayProcess(home.path, settings(home.telegram, provider, place))
            gateways.append(await stack.enter_async_context(running(gateway)))
            await gateway.ready()
        idle = await _idle(plan, gateways)
        ratio = statistics.median(full / empty for empty, full in zip(*starts, strict=True))
        note = f"median of {len(starts[0])} pairs, {statistics.median(starts[1]):.2f} s"
        start = Row(f"{count} jobs: CPU until ready, against none", 100 * (ratio - 1), "% more", MORE_PERCENT, note)
        return [start, *idle, *await _lists(plan, count, gateways[1])]


async def _idle(plan: Plan, gateways: list[GatewayProcess]) -> Rows:
    seconds = min(plan.idle_seconds, 2.0) if plan.short else plan.idle_seconds
    await asyncio.sleep(0.5 if plan.short else CALM_SECONDS)
    before = [sum(map(machine.cpu_seconds, gateway.processes)) for gateway in gateways]
    plan.say(f"watching both do nothing for {seconds:.0f} s")
    await asyncio.sleep(seconds)
    after = [sum(map(machine.cpu_seconds, gateway.processes)) for gateway in gateways]
    none, many = (100 * (late - early) / seconds for early, late in zip(before, after, strict=True))
    empty, full = (machine.proportional(gateway.processes) / machine.MEGABYTE for gateway in gateways)
    more = 100 * (full / empty - 1)
    return [
        Row("… memory, idle: PSS, against none", more, "% more", MORE_PERCENT, f"{full:.1f} MB against {empty:.1f} MB"),
        Row("… idle CPU", many, "% of a core", note=f"{none:.2f} % with none"),
    ]


async def _lists(plan: Plan, count: int, gateway: GatewayProcess) -> Rows:
    rows: Rows = []
    async with Line(door_of(gateway)) as line:
        for what, path in (("a page of the board", "/api/kanban/tasks"), ("counts of the board", "/api/kanban/stats")):
            await line.ask(path, method="GET")
            waits = []
            for _ in range(plan.count(LISTS, 2)):
                began = time.monotonic()
                await line.ask(path, method="GET")
                waits.append(milliseconds(time.monotonic() - began))
            note = f"median of {len(waits)}, the slowest {max(waits):.1f} ms"
            limit = LIST_MILLISECONDS
            rows.append(Row(f"{count} tasks: {what} over HTTP", percentile(waits, 50), "ms", limit, note))
    return rows


async def seed(home: Path, count: int) -> None:
    """Store jobs that are due over the next month, and as many tasks."""
    make_home(home)
    db = await open_database(home / "state.db")
    try:
        await db.alone(_add_jobs, count)
        async with open_board(db, home) as board:
            await board.alone(_add_tasks, count)
    finally:
        await db.close()


def _add_jobs(tx: Tx, count: int) -> None:
    now = time.time()
    for number in range(count):
        due = now + MONTH_SECONDS * (1 + number / count)
        jobs.insert(
            tx,
            JobRow(
                id=f"j_{number}",
                name=f"Report {number}",
                person_id="local",
                role="owner",
                prompt="Say what is new in the project.",
                schedule="0 8 * * *",
                kind=ScheduleKind.CRON.value,
                next_slot=due,
                next_at=due,
                created_at=now,
                updated_at=now,
            ),
        )


def _add_tasks(tx: Tx, count: int) -> None:
    for number in range(count):
        tasks.make(tx, NewTask(f"Task {number}", made_by="local", made_by_role="owner"), actor="local", now=time.time())
