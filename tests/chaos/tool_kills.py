"""kill -9 of the worker while a batch of five calls runs; what happened is counted at the far end.

A command appends to a file, a file is written, a message is sent, a list is kept and a task is handed on, which appends
too. Nothing may happen twice, nothing may be lost, and no process of a tool may be left. Only of a command that was
running the result may say that nobody knows whether it finished.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from hermes.core.turn import INTERRUPTED_BY_RESTART
from hermes.hosting.control import client as control
from tests.chaos.world import Victim, World, opened, until
from tests.fakes.model import Answer, Json, Reply, calls_tools, last_user_text

ANSWER_SECONDS = 60.0
LONGEST_BATCH_SECONDS = 0.9
PAUSE = "0.25"
LINES = "lines.txt"
OWNER, USER = 7, 8
CALLS = ("terminal", "write_file", "send_message", "todo", "delegate_task")


@dataclass(slots=True)
class Counted:
    """What became of the batches. ``wrong`` tells each of them that broke a promise, and how."""

    kills: int = 0
    batches: int = 0
    cut_off: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    repeated: int = 0
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.wrong and not self.left


def batch(number: int) -> Reply:
    append = f"echo 'batch {number}' >> {LINES}; sleep {PAUSE}"
    return calls_tools(
        ("terminal", {"command": append}),
        ("write_file", {"path": f"out-{number}.txt", "content": f"written {number}"}),
        ("send_message", {"text": f"note {number}"}),
        ("todo", {"items": [{"id": str(number), "text": f"step {number}"}]}),
        ("delegate_task", {"tasks": [f"errand {number}"]}),
    )


def answer_to(body: Json) -> Answer:
    """``batch N`` makes the five calls, its errand one of its own; with their results both are at their end."""
    said = last_user_text(body)
    if body["messages"][-1]["role"] == "tool":
        return Reply(text=f"echo: {said}")
    if said.startswith("batch "):
        return batch(int(said.split()[1]))
    if said.startswith("errand "):
        return calls_tools(("terminal", {"command": f"echo '{said}' >> {LINES}; sleep {PAUSE}"}))
    return Reply(text=f"echo: {said}")


async def kill_in_batches(folder: Path, kills: int, seed: int) -> Counted:
    counted = Counted()
    async with opened(folder, seed) as world:
        world.model._answer_to = answer_to  # type: ignore[method-assign]
        for user in (OWNER, USER):
            world.telegram.user_says("hello", chat=user, user=user)
            await _answered(world, user, "hello")
        owner = {"person": f"telegram:{OWNER}", "role": "owner"}
        await asyncio.to_thread(control.call, world.gateway.home, "people.role", owner)
        for number in range(kills):
            user = OWNER if number % 2 else USER  # in turn by themselves, and in the sandbox
            world.telegram.user_says(f"batch {number}", chat=user, user=user)
            await asyncio.sleep(world.chance.uniform(0.0, LONGEST_BATCH_SECONDS))
            counted.cut_off[_where(world, number)] += 1
            await world.gateway.kill(Victim.WORKER)
            await world.gateway.ready()
            counted.left += await _left(folder)
            await _answered(world, user, f"batch {number}")
            counted.kills += 1
        counted.left += await _left(folder)
        home = world.gateway.home
    _count(counted, world, folder / "work", home, kills)
    return counted


async def _answered(world: World, user: int, said: str) -> None:
    await until(lambda: world.telegram.has_answered(user, f"echo: {said}"), ANSWER_SECONDS)


def _where(world: World, number: int) -> str:
    """In which call the kill comes, by what the store knows just before it."""
    made = {(name, json.dumps(arguments, separators=(",", ":"))) for name, arguments in batch(number).tool_calls}
    with closing(_store(world.gateway.home)) as db:
        rows = db.execute("SELECT name, arguments, state FROM tool_calls").fetchall()
    found = [(name, state) for name, arguments, state in rows if (name, arguments) in made]
    started = [name for name, state in found if state == "started"]
    return started[0] if started else ("between calls" if found else "before the calls")


def _store(home: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{home / 'state.db'}?mode=ro", uri=True)


async def _left(folder: Path) -> list[str]:
    """Commands of a dead worker that still run. What has begun anew since is not theirs: it is given its time."""

    def running() -> list[str]:
        found = []
        for entry in filter(str.isdecimal, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                place = os.readlink(f"/proc/{entry}/cwd")
            except OSError:
                continue
            if f"sleep {PAUSE}" in words and place.startswith(str(folder)):
                found.append(f"{entry}: {words[:100]}")
        return found

    try:
        await until(lambda: not running(), 5.0)
    except TimeoutError:
        return running()
    return []


def _count(counted: Counted, world: World, work: Path, home: Path, batches: int) -> None:
    counted.batches = batches
    lines = Counter((work / LINES).read_text("utf-8").splitlines())
    notes: Counter[str] = Counter(flight.text for flight in world.telegram.flights if not flight.is_marked)
    again: Counter[str] = Counter(flight.text for flight in world.telegram.flights if flight.is_marked)
    with closing(_store(home)) as db:
        calls = db.execute("SELECT turn_id, name, arguments, state, outcome, result FROM tool_calls").fetchall()
        errands = db.execute("SELECT COUNT(*) FROM turns WHERE lane LIKE '%:task:%'").fetchone()[0]
    made = {(name, arguments): (state, outcome, result) for _, name, arguments, state, outcome, result in calls}
    for number in range(batches):
        for name, arguments in batch(number).tool_calls:
            state, outcome, result = made.get((name, json.dumps(arguments, separators=(",", ":"))), ("missing", "", ""))
            is_unknown = result == INTERRUPTED_BY_RESTART
            counted.unknown += is_unknown
            if state != "done" or (outcome != "ok" and not is_unknown):
                counted.wrong.append(f"batch {number}: {name} is {state} {outcome}: {result[:100]}")
            if is_unknown and name != "terminal":
                counted.wrong.append(f"batch {number}: {name} is unknown, though it could run again")
        told = made.get(("terminal", json.dumps(dict(batch(number).tool_calls[0][1]), separators=(",", ":"))))
        certain = told is not None and told[2] != INTERRUPTED_BY_RESTART
        _check(counted, number, "line", lines[f"batch {number}"], least=1 if certain else 0)
        _check(counted, number, "line of its errand", lines[f"errand {number}"], least=0)
        sent = notes[f"note {number}"]
        _check(counted, number, "message", sent, least=0 if again[f"note {number}"] else 1)
        counted.repeated += again[f"note {number}"]
        if (work / f"out-{number}.txt").read_text("utf-8") != f"written {number}":
            counted.wrong.append(f"batch {number}: its file is not as written")
    if errands != batches:
        counted.wrong.append(f"{errands} errands of {batches} batches")
    if len(calls) != batches * (len(CALLS) + 1):
        counted.wrong.append(f"{len(calls)} calls of {batches} batches")


def _check(counted: Counted, number: int, what: str, count: int, *, least: int) -> None:
    if not least <= count <= 1:
        counted.wrong.append(f"batch {number}: {what} {count} times")
