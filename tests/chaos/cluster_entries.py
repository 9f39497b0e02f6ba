"""Jobs and tasks of two nodes on one PostgreSQL, with kill -9 of a node: each runs once, whoever runs it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

from hermes.core.errors import GatewayError
from hermes.hosting.control import client as control
from tests.chaos.cluster import Accident, Cluster, opened, own_server
from tests.chaos.telling import Options, Told
from tests.chaos.world import until

CHAT = 4242
CALL_SECONDS = 60.0
END_SECONDS = 90.0
MANY_EACH = 20


@dataclass(slots=True)
class NodeEntries:
    """What people handed in at either node, and what was acknowledged."""

    cluster: Cluster
    jobs: dict[str, str] = field(default_factory=dict)  # the text of each job, by its id
    tasks: dict[int, str] = field(default_factory=dict)  # the title of each task, by its number

    async def make(self, count: int, label: str) -> None:
        """Make jobs that are due within a second, and tasks that the agent does at once, at one node or the other."""
        for number in range(count):
            text = f"job {label}-{number}"
            job = {"schedule": "1s", "prompt": text, "deliver": f"telegram:{CHAT}", "no_agent": number % 2 == 0}
            made = await self._call("cron.create", {"job": job, "key": f"{label}x{number}"})
            self.jobs[made["id"]] = text
            title = f"task {label}-{number}"
            task = {"title": title, "assignee": "agent", "ready": True, "key": f"{label}t{number}"}
            made = await self._call("kanban.create", task)
            self.tasks[made["id"]] = title

    async def _call(self, verb: str, args: dict[str, Any]) -> Any:
        """Ask any node until one answers, as a person would: the same key makes one job."""
        async with asyncio.timeout(CALL_SECONDS):
            while True:
                node = self.cluster.chance.choice(self.cluster.nodes)
                try:
                    return await asyncio.to_thread(control.call, node.gateway.home, verb, args, 5.0)
                except (GatewayError, OSError):
                    await asyncio.sleep(0.1)

    def found_wrong(self) -> list[str]:
        """Everything that did not run exactly once or did not arrive, by the database and by the fake."""
        turns, slots, states, runs = self._counts()
        texts = [text.removeprefix("↻ ") for text in self.cluster.telegram.texts(CHAT)]
        wrong = [f"{job} fired {slots.get(job, 0)} times" for job in self.jobs if slots.get(job, 0) != 1]
        for job, text in self.jobs.items():
            if (count := turns.get(f"agent:main:cron:dm:{job}", 0)) != 1:
                wrong.append(f"{job} ran {count} times")
            if not any(text in sent for sent in texts):
                wrong.append(f"{job} was not delivered")
        for task in self.tasks:
            count = turns.get(f"agent:main:task:dm:kanban-{task}", 0)
            if count != 1 or runs.get(task, 0) != 1 or states.get(task) != "done":
                wrong.append(f"task {task} is {states.get(task)}, {count} turns, {runs.get(task, 0)} runs")
        return wrong

    def has_ended(self) -> bool:
        turns, _, states, _ = self._counts()
        ran = all(turns.get(f"agent:main:cron:dm:{job}") for job in self.jobs)
        texts = self.cluster.telegram.texts(CHAT)
        arrived = all(any(text in sent for sent in texts) for text in self.jobs.values())
        return ran and arrived and all(states.get(task) == "done" for task in self.tasks)

    def _counts(self) -> tuple[dict[str, int], dict[str, int], dict[int, str], dict[int, int]]:
        with psycopg.connect(self.cluster.database, autocommit=True) as db:
            turns = db.execute("SELECT lane, COUNT(*) FROM turns WHERE state = 'done' GROUP BY lane").fetchall()
            slots = db.execute("SELECT job_id, COUNT(*) FROM job_slots GROUP BY job_id").fetchall()
            states = db.execute("SELECT id, state FROM tasks").fetchall()
            runs = db.execute("SELECT task_id, COUNT(*) FROM task_runs GROUP BY task_id").fetchall()
        return dict(turns), dict(slots), dict(states), dict(runs)


async def kill_nodes_with_entries(cluster: Cluster, each: int, kills: int) -> NodeEntries:
    """Kill a node or its worker at a random moment while jobs and tasks are made, fired, run and sent."""
    entries = NodeEntries(cluster)
    cluster.telegram.private_chat(CHAT)
    for number in range(kills):
        making = asyncio.create_task(entries.make(each, f"r{number}"))
        await asyncio.sleep(cluster.chance.uniform(0.05, 2.0))
        accident = Accident.KILL_NODE if number % 2 else Accident.KILL_WORKER
        await cluster.befall(accident, cluster.nodes[number % len(cluster.nodes)], settles=False)
        await making
        if (number + 1) % 10 == 0:
            print(f"{number + 1} of {kills} kills", flush=True)
    with suppress(TimeoutError):  # what is missing then is counted
        await until(entries.has_ended, END_SECONDS)
    return entries


async def kill_many_with_entries(options: Options) -> Told:
    """The long form: 20 jobs and 20 tasks for each of a quarter of the kills."""
    kills = max(1, options.kills // 4)
    with own_server(options.folder / "entries") as (url, _path, _restart):
        async with opened(options.folder / "entries" / "world", url, 2, options.seed) as cluster:
            entries = await kill_nodes_with_entries(cluster, MANY_EACH, kills)
            wrong = await asyncio.to_thread(entries.found_wrong)
    for line in wrong:
        print(line)
    handed_in = f"{len(entries.jobs)} jobs, {len(entries.tasks)} tasks"
    return Told([(f"{kills} kills of 2 nodes, {handed_in}: not exactly once", str(len(wrong)))], not wrong)
