"""The dashboard on 10,000 sessions, 100,000 messages and 10,000 tasks: each route, and what an open page costs."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import aiohttp

from bench import machine
from bench.rig import ROOT, BenchError, World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.store.home import make_home
from hermes.store.kanban import tasks
from hermes.store.kanban.open import MIGRATIONS
from hermes.store.kanban.tasks import NewTask
from hermes.store.open import open_database

LINES = 10
LINE_BYTES = 120
SEED_SECONDS = 1800.0
MAX_MILLISECONDS = 1000.0
MAX_KILOBYTES = 300.0
MAX_MEGABYTES = 2.0
TIMES = 5
CALM_SECONDS = 5.0
PAGES_OF_EIGHT_HOURS = 480
"""A page that is loaded anew each minute for eight hours; in between it listens."""

ROUTES = (
    "/api/overview",
    "/api/sessions?limit=50",
    "/api/sessions?query=ordinary",
    "/api/sessions/{session}",
    "/api/sessions/{session}/messages?limit=200",
    "/api/messages?limit=50",
    "/api/messages?query=nothing+like+this",
    "/api/messages?state=dead",
    "/api/messages/{message}",
    "/api/people",
    "/api/grants",
    "/api/approvals",
    "/api/pairings",
    "/api/jobs",
    "/api/kanban/tasks?limit=200",
    "/api/kanban/stats",
    "/api/platforms",
    "/api/models",
    "/api/settings",
    "/api/logs",
    "/api/usage?days=30",
    "/api/dashboard/sign-ins",
    "/v1/skills",
    "/v1/toolsets",
)


async def measure(plan: Plan) -> Rows:
    sessions, cards = plan.count(10_000, 20), plan.count(10_000, 20)
    async with folder() as place:
        home = place / "home"
        began = time.monotonic()
        await _seed(home, sessions)
        await _add_tasks(home, cards)
        plan.say(f"stored {sessions} sessions, {sessions * LINES} messages and {cards} tasks in"
                 f" {time.monotonic() - began:.0f} s")  # fmt: skip
        async with world(home) as here:
            key = (home / "api_server.key").read_text("ascii").strip()
            headers = {"Authorization": f"Bearer {key}"}
            async with aiohttp.ClientSession(f"http://127.0.0.1:{here.gateway.port}", headers=headers) as http:
                return [*await _open_page(plan, here, http), *await _routes(plan, http), *await _day(plan, here, http)]


async def _routes(plan: Plan, http: aiohttp.ClientSession) -> Rows:
    async with http.get("/api/sessions?limit=1") as answer:
        session = (await answer.json())["data"][0]["id"]
    async with http.get("/api/messages?direction=in&limit=1") as answer:
        message = (await answer.json())["data"][0]["id"]
    await _index(http)
    slowest: list[tuple[float, str]] = []
    largest: list[tuple[float, str]] = []
    for form in ROUTES:
        path = form.replace("{session}", session).replace("{message}", message)
        seconds, size = 0.0, 0
        for _ in range(plan.count(TIMES, 1)):
            began = time.monotonic()
            async with http.get(path) as answer:
                body = await answer.read()
                if answer.status != 200:
                    raise BenchError(f"{path} answered {answer.status}: {body[:200]!r}")
            seconds, size = max(seconds, time.monotonic() - began), max(size, len(body))
        slowest.append((milliseconds(seconds), form))
        largest.append((size / 1000, form))
        plan.say(f"{form:<50} {milliseconds(seconds):8.1f} ms {size / 1000:8.1f} kB")
    return [
        Row(f"dashboard: slowest of {len(ROUTES)} routes", *max(slowest)[:1], "ms", MAX_MILLISECONDS, max(slowest)[1]),
        Row("dashboard: largest answer", *max(largest)[:1], "kB", MAX_KILOBYTES, max(largest)[1]),
    ]


async def _index(http: aiohttp.ClientSession) -> None:
    """Search until the index, which the first search begins, holds everything."""
    while True:
        async with http.get("/api/sessions?query=nothing+like+this") as answer:
            if (await answer.json())["is_complete"]:
                return


async def _open_page(plan: Plan, here: World, http: aiohttp.ClientSession) -> Rows:
    """Memory with one idle page open, against before anybody asked for it."""
    calm = 0.5 if plan.short else CALM_SECONDS
    async with http.get("/v1/models") as answer:  # what any first request makes the server keep is not the page's
        await answer.read()
    await asyncio.sleep(calm)
    before = machine.proportional(here.gateway.processes)
    async with http.get("/api/events") as events:
        await events.content.readline()
        await asyncio.sleep(calm)
        cpu = here.gateway.cpu()
        watched = 2.0 if plan.short else 20.0
        await asyncio.sleep(watched)
        percent = 100 * (here.gateway.cpu() - cpu) / watched
        grown = (machine.proportional(here.gateway.processes) - before) / machine.MEGABYTE
    return [
        Row("dashboard: memory of an idle page", grown, "MB PSS", MAX_MEGABYTES),
        Row("dashboard: CPU of an idle page", percent, "% of a core", note=f"over {watched:.0f} s"),
    ]


async def _day(plan: Plan, here: World, http: aiohttp.ClientSession) -> Rows:
    """Eight hours of use: the page is loaded each minute, listens, and is left; time is not waited for."""
    pages = plan.count(PAGES_OF_EIGHT_HOURS, 3)
    for _ in range(plan.count(50, 1)):
        await _visit(http)
    memory, files = machine.resident(here.gateway.processes), machine.open_files(here.gateway.worker)
    for _ in range(pages):
        await _visit(http)
    await asyncio.sleep(1.0)
    grown = (machine.resident(here.gateway.processes) - memory) / machine.MEGABYTE
    more = machine.open_files(here.gateway.worker) - files
    note = f"{pages} loads, each with a stream"
    return [
        Row("dashboard: memory after eight hours of use", grown, "MB RSS more", MAX_MEGABYTES, note),
        Row("dashboard: descriptors after eight hours of use", more, "more", 4, note),
    ]


async def _visit(http: aiohttp.ClientSession) -> None:
    async with http.get("/api/events") as events:
        await events.content.readline()
        for path in ("/api/overview", "/api/sessions?limit=50", "/api/messages?limit=50", "/api/usage?days=30"):
            async with http.get(path) as answer:
                await answer.read()


async def _seed(home: Path, count: int) -> None:
    environ = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"}
    told = ["--sessions", str(count), "--lines", str(LINES), "--line-bytes", str(LINE_BYTES)]
    command = [sys.executable, "-m", "bench.seed", str(home), *told]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environ)
    async with asyncio.timeout(SEED_SECONDS):
        if await process.wait():
            raise BenchError("The store was not seeded.")


async def _add_tasks(home: Path, count: int) -> None:
    make_home(home)
    db = await open_database(home / "kanban.db", migrations=MIGRATIONS)
    try:
        for number in range(count):
            new = NewTask(f"Task {number}: look at what came in", "Read it, and say what to do. " * 5)
            await db.write(tasks.make, new, actor="bench", now=time.time())
    finally:
        await db.close()
