"""The API: CPU of the worker for a request, for a stream, for a thousand of them, and along a chain of responses."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench import caller, machine, profiler
from bench.caller import CHAT, RESPONSES, Door, Line, Streamed, door_of
from bench.rig import World, folder, world
from bench.rows import Plan, Row, Rows, milliseconds, percentile

REQUEST_MILLISECONDS = 3.0
STREAM_MILLISECONDS = 15.0
STREAM_EVENTS = 25.0
FIRST_WORDS_SECONDS = 1.0
CHAIN_GROWTH = 1.2
CHAIN_PAIRS = 10
SETTLE_SECONDS = 0.8
PAGES = ("page_count", "freelist_count", "page_size")

LONG_TOKENS, FAST = 500, 500.0
MANY_TOKENS, SLOW = 300, 20.0  # 15 s each, so that the first still runs when the last is opened
OPENED_PER_SECOND = 100.0
AT_ONCE = 20
MODEL = "hermes"


async def measure(plan: Plan) -> Rows:
    return [
        *await requests(plan),
        *await long_streams(plan),
        *await many_streams(plan),
        *await chain(plan),
    ]


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}


class Cpu:
    """CPU of the worker since the beginning, what it does after the last answer included."""

    def __init__(self, here: World) -> None:
        self._here = here
        self._before = here.gateway.cpu()

    async def used(self) -> float:
        await asyncio.sleep(SETTLE_SECONDS)
        return self._here.gateway.cpu() - self._before


# Whole answers


async def requests(plan: Plan) -> Rows:
    rows: Rows = []
    async with folder() as place, world(place / "home") as here:
        door = door_of(here.gateway)
        await _ask(door, plan.count(100, 10), AT_ONCE)
        for path, body in ((CHAT, says("hi")), (RESPONSES, {"model": MODEL, "input": "hi"})):
            for at_once in (1, AT_ONCE):
                count = plan.count(1000, 20)
                plan.say(f"{count} requests to {path}, {at_once} at once")
                cpu = Cpu(here)
                async with profiler.watching(plan, here.gateway.worker, f"api{path.replace('/', '-')}-{at_once}"):
                    await _ask(door, count, at_once, path, body)
                each = milliseconds(await cpu.used() / count)
                budget = REQUEST_MILLISECONDS if path == CHAT else None
                rows.append(Row(f"{path}, {at_once} at once: CPU per request", each, "ms", budget, f"{count} requests"))
    return rows


async def _ask(door: Door, count: int, at_once: int, path: str = CHAT, body: Any = None) -> None:
    async def one_after_another() -> None:
        async with Line(door) as line:
            for _ in range(count // at_once):
                await line.ask(path, body or says("hi"))

    await asyncio.gather(*(one_after_another() for _ in range(at_once)))


# Streams


async def long_streams(plan: Plan) -> Rows:
    return [*await _long_streams(plan, 0.0), *await _long_streams(plan, FAST)]


async def _long_streams(plan: Plan, rate: float) -> Rows:
    """At a pace a stream is a second of small wake-ups; from a model that answers at once it is a large answer."""
    count = plan.count(100, 4)
    arguments = ("--mode", "stream", "--tokens", str(LONG_TOKENS), "--rate", str(rate))
    how = f"{LONG_TOKENS} tokens at {f'{rate:.0f}/s' if rate else 'once'}"
    rows: Rows = []
    async with folder() as place, world(place / "home", model_arguments=arguments) as here:
        door = door_of(here.gateway)
        plan.say(f"{count} streams of {how}, {AT_ONCE // 2} opened each second")
        await caller.streams(door, CHAT, says("warm up", stream=True), plan.count(20, 1), per_second=AT_ONCE)
        for path, body in ((CHAT, says("go")), (RESPONSES, {"model": MODEL, "input": "go"})):
            cpu = Cpu(here)
            async with profiler.watching(plan, here.gateway.worker, f"api-long{path.replace('/', '-')}-{rate:.0f}"):
                met = await caller.streams(door, path, {**body, "stream": True}, count, per_second=AT_ONCE / 2)
            each = milliseconds(await cpu.used() / count)
            rows.append(
                Row(f"{path}, {how}: CPU per stream", each, "ms", STREAM_MILLISECONDS if path == CHAT else None)
            )
            if path == CHAT:
                events = max(len(stream.events()) for stream in met)
                rows.append(_failed(f"{path}, {how}", met, LONG_TOKENS))
                rows.append(Row(f"{path}, {how}: events", events, "", STREAM_EVENTS, "most of any"))
    return rows


async def many_streams(plan: Plan) -> Rows:
    count = plan.count(1000, 10)
    rate = SLOW * plan.count(1, 10)
    arguments = ("--mode", "stream", "--tokens", str(MANY_TOKENS), "--rate", str(rate), "--stamped")
    async with folder() as place, world(place / "home", model_arguments=arguments) as here:
        door = door_of(here.gateway)
        plan.say(f"{count} streams of {MANY_TOKENS} tokens at {rate:.0f}/s, opened at {OPENED_PER_SECOND:.0f}/s")
        await caller.stream(door, CHAT, says("warm up", stream=True))
        cpu = Cpu(here)
        async with profiler.watching(plan, here.gateway.worker, "api-many"), _watching(here) as most:
            met = await caller.streams(door, CHAT, says("go", stream=True), count, per_second=OPENED_PER_SECOND)
        each = milliseconds(await cpu.used() / count)
        late = [stream.first_at - _stamp(stream) for stream in met if stream.first_at]
        waits = [stream.first_at - stream.opened_at for stream in met if stream.first_at]
    name = f"{count} streams of {MANY_TOKENS} tokens"
    return [
        _failed(name, met, MANY_TOKENS),
        Row(f"{name}: open at once, at most", most["open"], ""),
        Row(f"{name}: CPU per stream", each, "ms"),
        Row(f"{name}: model's first token to first content, p50", percentile(late, 50), "s"),
        Row(f"{name}: model's first token to first content, longest", max(late, default=0.0), "s", FIRST_WORDS_SECONDS),
        Row(f"{name}: request to first content, p99", percentile(waits, 99), "s"),
        Row(f"{name}: RSS of the tree, at most", most["memory"] / machine.MEGABYTE, "MB"),
    ]


@asynccontextmanager
async def _watching(here: World) -> AsyncIterator[dict[str, int]]:
    """The most that was open at once at the model, and the most memory the gateway used."""
    before = machine.open_files(here.model.pid)
    most = {"open": 0, "memory": 0}

    async def look() -> None:
        while True:
            most["open"] = max(most["open"], machine.open_files(here.model.pid) - before)
            most["memory"] = max(most["memory"], machine.resident(here.gateway.processes))
            await asyncio.sleep(0.5)

    looking = asyncio.create_task(look())
    try:
        yield most
    finally:
        looking.cancel()


def _failed(name: str, met: Sequence[Streamed], tokens: int) -> Row:
    """One that broke off, ended badly or lacks a word has failed."""
    failed = sum(not _is_whole(stream, tokens) for stream in met)
    return Row(f"{name}: failed", failed, "", 0.0, f"of {len(met)}")


def _is_whole(stream: Streamed, tokens: int) -> bool:
    words = stream.content().split()
    return stream.ended and len(words) == tokens and words[-1] == f"w{tokens - 1}"


def _stamp(stream: Streamed) -> float:
    """When the model wrote its first token: the fake writes the time of the machine's clock into it."""
    return float(stream.content().split()[0].removeprefix("@"))


# A chain


async def chain(plan: Plan) -> Rows:
    """Each response goes on from the one before it.

    Ten turns behind turn 5 of a new chain and ten of the long one are measured in turn, so that a machine whose speed
    changes is as slow for both; the pairs lie around the turn that is named.
    """
    length, around, pairs = plan.count(500, 24), plan.count(10, 4), plan.count(CHAIN_PAIRS, 2)
    plan.say(f"a chain of {length} responses, {pairs} times {around} of them beside those of a new one")
    young: list[float] = []
    old: list[float] = []
    async with folder() as place, world(place / "home") as here, Line(door_of(here.gateway)) as line:
        at, last = length - pairs * around // 2, ""
        halves = []
        for stretch in (range(at // 2), range(at // 2, at)):
            last, cost = await _go_on(here, line, last, stretch)
            halves.append(cost.stored / len(stretch))
        for _ in range(pairs):
            first, _ = await _go_on(here, line, "", range(5))
            _, cost = await _go_on(here, line, first, range(5, 5 + around))
            young.append(cost.cpu / around)
            last, cost = await _go_on(here, line, last, range(at, at := at + around))
            old.append(cost.cpu / around)
    growth = median(late / early for early, late in zip(young, old, strict=True))
    return [
        Row("a chain of responses: CPU of turn 5", milliseconds(median(young)), "ms", note=f"median of {pairs}"),
        Row(f"a chain of responses: CPU of turn {length}", milliseconds(median(old)), "ms", note=f"median of {pairs}"),
        Row(f"a chain of responses: turn {length} to turn 5", growth, "", CHAIN_GROWTH, note="median of the pairs"),
        Row("a chain of responses: stored for each", sum(halves) / 2 / 1000, "kB", note="all databases"),
        Row("a chain of responses: stored for its second half to its first", halves[1] / halves[0], "", CHAIN_GROWTH),
    ]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What some responses in a row cost: CPU of the worker, and bytes stored."""

    cpu: float
    stored: int


async def _go_on(here: World, line: Line, last: str, turns: range) -> tuple[str, Stretch]:
    """The next turns of a chain; the id of its newest response."""
    stored, cpu = _stored(here.gateway.home), Cpu(here)
    for number in turns:
        body = {"model": MODEL, "input": f"question {number}"}
        answer = await line.ask(RESPONSES, {**body, "previous_response_id": last} if last else body)
        last = str(answer["id"])
    used = await cpu.used()
    return last, Stretch(used, _stored(here.gateway.home) - stored)


def _stored(home: Path) -> int:
    """Bytes in use in every database of the home, those still in a log included."""
    total = 0
    for file in home.glob("*.db"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
            pages, free, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in PAGES)
            total += (pages - free) * size
    return total
