"""The same start and the same cost per message with 10,000 sessions stored (and, with --history-gb, more).

A shared machine changes its speed by half from one minute to the next. So both gateways are up together and measured in
turn, and what is told is the median of the pairs' ratios.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench import machine, talk
from bench.measures.lone import PAUSE_SECONDS
from bench.measures.start import Start, once
from bench.rig import ROOT, BenchError, GatewayProcess, ModelProcess, World, folder, model, running, settings
from bench.rows import Plan, Row, Rows, milliseconds
from bench.seed import FIRST_CHAT
from bench.talk import Talk
from tests.fakes.telegram import FakeTelegram

LINES = 20
LINE_BYTES = 120
COPIES = 2  # a line is stored in the transcript, and in the inbox or the outbox too
MORE_PERCENT = 20.0
SEED_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Home:
    """A home and its own Telegram: its message ids go on, so that none looks like one of an earlier start."""

    path: Path
    telegram: FakeTelegram


@dataclass(slots=True)
class Pairs:
    """The same thing measured in turn, on the empty store and on the full one."""

    empty: list[float] = field(default_factory=list)
    full: list[float] = field(default_factory=list)

    def more(self, what: str, note: str) -> Row:
        ratios = [full / max(empty, 1e-9) for empty, full in zip(self.empty, self.full, strict=True)]
        full, empty = (milliseconds(statistics.median(values)) for values in (self.full, self.empty))
        told = f"median of {len(ratios)} pairs, {full:.2f} ms against {empty:.2f} ms; {note}"
        return Row(what, 100 * (statistics.median(ratios) - 1), "% more", MORE_PERCENT, told)


async def measure(plan: Plan) -> Rows:
    count = plan.count(10_000, 50)
    size = max(LINE_BYTES, int(plan.history_gb * 1e9 / (count * LINES * COPIES)))
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(folder())
        provider = await stack.enter_async_context(model())
        empty, full = [
            Home(place / name, await stack.enter_async_context(FakeTelegram())) for name in ("empty", "full")
        ]
        began = time.monotonic()
        await _seed(full.path, count, size)
        stored = sum(file.stat().st_size for file in full.path.glob("state.db*")) / machine.MEGABYTE
        plan.say(f"stored {count} sessions of {LINES} lines, {stored:.0f} MB, in {time.monotonic() - began:.0f} s")
        starts = [
            (await once(empty.path, provider, empty.telegram), await once(full.path, provider, full.telegram))
            for _ in range(plan.count(3, 1))
        ]
        worlds = [await _up(stack, home, provider) for home in (empty, full)]
        name = f"{count} sessions"
        return [*_start_rows(name, starts, f"{stored:.0f} MB stored"), *await _talks(plan, name, worlds)]


def _start_rows(name: str, starts: list[tuple[Start, Start]], note: str) -> Rows:
    cpu = Pairs([empty.cpu for empty, _ in starts], [full.cpu for _, full in starts])
    ready, before = (statistics.median(start[which].ready for start in starts) for which in (1, 0))
    return [
        cpu.more(f"{name}: CPU until ready, against an empty store", note),
        Row(f"{name}: start to ready", ready, "s", note=f"{before:.2f} s on an empty store"),
    ]


async def _up(stack: AsyncExitStack, home: Home, provider: ModelProcess) -> World:
    gateway = GatewayProcess(home.path, settings(home.telegram, provider, home.path.parent))
    await stack.enter_async_context(running(gateway))
    await gateway.ready()
    world = World(gateway, home.telegram, provider)
    await talk.warm_up(world)
    return world


async def _talks(plan: Plan, name: str, worlds: list[World]) -> Rows:
    people = plan.count(200, 5)

    async def newcomers(world: World, turn: int) -> Talk:
        first = 1000 + turn * people
        return await talk.bursts(world, range(first, first + people), 1)

    async def known(world: World, _turn: int) -> Talk:
        return await talk.bursts(world, range(1000, 1000 + people), 1)

    async def lone(world: World, _turn: int) -> Talk:
        return await talk.paced(world, [7] * plan.count(10, 3), pause=PAUSE_SECONDS)

    rows: Rows = []
    for what, act, turns in (
        ("new people at once", newcomers, 10),
        ("known people at once", known, 10),
        ("lone message", lone, 6),
    ):
        plan.say(f"{what}, on the empty store and on the full one in turn")
        rows += await _in_turn(f"{name}, {what}", worlds, act, plan.count(turns, 1))
    chats = range(FIRST_CHAT, FIRST_CHAT + people)
    history = await talk.bursts(worlds[1], chats, plan.count(3, 1))
    return [*rows, *history.rows(f"{name}, at once in chats with {LINES} lines of history")]


async def _in_turn(what: str, worlds: list[World], act: Callable[[World, int], Awaitable[Talk]], turns: int) -> Rows:
    pairs, whole = Pairs(), Talk()
    for turn in range(turns):
        costs = {}
        for which in (0, 1) if turn % 2 else (1, 0):
            met = await act(worlds[which], turn)
            costs[which] = met.cpu_each
            if which:
                whole.cpu, whole.count = whole.cpu + met.cpu, whole.count + met.count
                whole.waits += met.waits
        pairs.empty.append(costs[0])
        pairs.full.append(costs[1])
    note = f"{whole.count} messages on each"
    return [*whole.rows(what), pairs.more(f"{what}: CPU, against an empty store", note)]


async def _seed(home: Path, sessions: int, line_bytes: int) -> None:
    command = [sys.executable, "-m", "bench.seed", str(home), "--sessions", str(sessions)]
    command += ["--lines", str(LINES), "--line-bytes", str(line_bytes)]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        async with asyncio.timeout(SEED_SECONDS):
            if await process.wait() != 0:
                raise BenchError("Filling the store failed.")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
