"""kill -9 with jobs, webhooks and tasks in flight: each that was accepted runs once, and its answer arrives."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from hermes.core.errors import GatewayError
from hermes.hosting.control import client as control
from tests.chaos.world import Victim, World, opened

SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ="
END_SECONDS = 60.0
CHAT = 4242


@dataclass(slots=True)
class Entries:
    """What other programs and a person at the command line have handed in, and what was acknowledged."""

    world: World
    http: aiohttp.ClientSession
    port: int
    jobs: dict[str, str] = field(default_factory=dict)
    """The text of each job that was made, by its id."""
    tasks: dict[int, str] = field(default_factory=dict)
    """The title of each task that was added to the board, by its number."""
    hooks: set[str] = field(default_factory=set)
    """The texts of webhooks that were answered with 202, or with 200 as duplicates."""

    async def make_jobs(self, count: int, label: str) -> None:
        """Make jobs that are due within a second; half of them ask the model."""
        for number in range(count):
            text = f"job {label}-{number}"
            told = {"schedule": "1s", "prompt": text, "deliver": f"telegram:{CHAT}", "no_agent": number % 2 == 0}
            made = await self._call("cron.create", {"job": told, "key": f"{label}x{number}".replace("-", "")})
            self.jobs[made["id"]] = text

    async def make_tasks(self, count: int, label: str) -> None:
        """Add tasks to the board that the agent does at once."""
        for number in range(count):
            text = f"task {label}-{number}"
            told = {"title": text, "assignee": "agent", "ready": True, "key": f"{label}t{number}"}
            made = await self._call("kanban.create", told)
            self.tasks[made["id"]] = text

    async def _call(self, verb: str, args: dict[str, Any]) -> Any:
        """Ask until it is answered, as the command line does: the same key makes one job."""
        async with asyncio.timeout(END_SECONDS):
            while True:
                try:
                    return await asyncio.to_thread(control.call, self.world.gateway.home, verb, args, 5.0)
                except (GatewayError, OSError):
                    await asyncio.sleep(0.1)

    async def post(self, text: str) -> None:
        """Send a webhook as a careful sender does: the same delivery again until it is acknowledged."""
        body = json.dumps({"text": text}).encode()
        signed = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature-256": f"sha256={signed}", "X-GitHub-Delivery": text}
        async with asyncio.timeout(END_SECONDS):
            while text not in self.hooks:
                try:
                    async with self.http.post(
                        f"http://127.0.0.1:{self.port}/webhooks/w", data=body, headers=headers
                    ) as got:
                        if got.status in (200, 202):
                            self.hooks.add(text)
                            return
                except (aiohttp.ClientError, OSError, TimeoutError):
                    pass  # the kill cut it off
                await asyncio.sleep(0.1)


@dataclass(frozen=True, slots=True)
class EntryVerdict:
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    undelivered: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        return not (self.lost or self.doubled or self.undelivered)


@asynccontextmanager
async def entering(folder: Path, seed: int) -> AsyncIterator[Entries]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with opened(folder, seed, WEBHOOK_PORT=str(port)) as world, aiohttp.ClientSession() as http:
        entries = Entries(world, http, port)
        world.telegram.private_chat(CHAT)
        told = {"name": "w", "secret": SECRET, "signature": "github", "prompt": "{text}", "deliver": f"telegram:{CHAT}"}
        config = world.gateway.home / "config.yaml"
        text = config.read_text("utf-8") if config.exists() else ""
        config.write_text(f"{text}\nwebhooks:\n  rate_limit: 100000\nkanban:\n  max_running: 50\n", encoding="utf-8")
        await entries._call("config.reload", {})
        await entries._call("webhooks.subscribe", {**told, "deliver_only": True})
        yield entries


async def kill_once(entries: Entries, each: int, victim: Victim, label: str) -> None:
    """Hand in so many of each, and kill at a random moment while they are made, fired, run and sent."""
    world = entries.world
    sending = [asyncio.create_task(entries.post(f"hook {label}-{number}")) for number in range(each)]
    making = asyncio.create_task(entries.make_jobs(each, label))
    adding = asyncio.create_task(entries.make_tasks(each, label))
    await asyncio.sleep(world.chance.uniform(0.05, 2.0))
    await world.gateway.kill(victim)
    if victim is not Victim.WORKER:
        world.gateway.start()
    await world.gateway.ready()
    await asyncio.gather(making, adding, *sending)


async def verdict(entries: Entries) -> EntryVerdict:
    """Wait until everything has ended, then count turns and messages."""
    path, board = (entries.world.gateway.home / name for name in ("state.db", "kanban.db"))
    wanted = len(entries.jobs) + len(entries.hooks)

    def ended() -> bool:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            [[done]] = db.execute("SELECT COUNT(*) FROM inbox WHERE kind IN ('cron', 'webhook') AND state = 'answered'")
            [[due]] = db.execute("SELECT COUNT(*) FROM outbox WHERE state IN ('ready', 'unknown')")
        with closing(sqlite3.connect(f"file:{board}?mode=ro", uri=True)) as db:
            [[over]] = db.execute("SELECT COUNT(*) FROM tasks WHERE state = 'done'")
        return bool(done >= wanted and due == 0 and over >= len(entries.tasks))

    try:
        async with asyncio.timeout(END_SECONDS):
            while not await asyncio.to_thread(ended):  # noqa: ASYNC110 - another process does not set our events
                await asyncio.sleep(0.2)
    except TimeoutError:
        pass  # the counts below say what is missing
    return await asyncio.to_thread(_count, path, board, entries)


def _count(path: Path, board: Path, entries: Entries) -> EntryVerdict:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        turns = dict(db.execute("SELECT lane, COUNT(*) FROM turns WHERE state = 'done' GROUP BY lane").fetchall())
        slots = dict(db.execute("SELECT job_id, COUNT(*) FROM job_slots GROUP BY job_id").fetchall())
        hooks = db.execute("SELECT body FROM inbox WHERE kind = 'webhook' AND state = 'answered'").fetchall()
    with closing(sqlite3.connect(f"file:{board}?mode=ro", uri=True)) as db:
        states = dict(db.execute("SELECT id, state FROM tasks").fetchall())
        runs = dict(db.execute("SELECT task_id, COUNT(*) FROM task_runs GROUP BY task_id").fetchall())
    tasks_ran = {task: turns.get(f"agent:main:task:dm:kanban-{task}", 0) for task in entries.tasks}
    ran = {job: turns.get(f"agent:main:cron:dm:{job}", 0) for job in entries.jobs}
    bodies = [body for [body] in hooks]
    stored = {text: sum(f'"{text}"' in body for body in bodies) for text in entries.hooks}
    texts = [text.removeprefix("↻ ") for text in entries.world.telegram.texts(CHAT)]
    expected = {*entries.jobs.values(), *entries.hooks}
    return EntryVerdict(
        tuple(job for job, count in ran.items() if not count)
        + tuple(f"#{task}" for task, count in tasks_ran.items() if not count or states.get(task) != "done")
        + tuple(text for text, count in stored.items() if not count),
        tuple(
            f"{job}: {count} turns, {slots.get(job, 0)} slots"
            for job, count in ran.items()
            if count > 1 or slots.get(job, 0) != 1
        )
        + tuple(
            f"#{task}: {count} turns, {runs.get(task, 0)} runs"
            for task, count in tasks_ran.items()
            if count > 1 or runs.get(task, 0) != 1
        )
        + tuple(text for text, count in stored.items() if count > 1),
        tuple(sorted(text for text in expected if not any(text in sent for sent in texts))),
    )


async def kill_entries(folder: Path, each: int, kills: int, seed: int) -> tuple[EntryVerdict, int]:
    """Return the verdict, and how many were accepted."""
    async with entering(folder, seed) as entries:
        for number in range(kills):
            victim = entries.world.chance.choice([Victim.WORKER, Victim.WORKER, Victim.BOTH])
            await kill_once(entries, each, victim, f"r{number}")
        return await verdict(entries), len(entries.jobs) + len(entries.hooks) + len(entries.tasks)
