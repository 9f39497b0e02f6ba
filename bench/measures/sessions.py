"""The same start and the same cost per message with 10,000 sessions stored (and, with --history-gb, more)."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import machine, talk
from bench.measures.lone import PAUSE_SECONDS
from bench.measures.start import once
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
class Fakes:
    telegram: FakeTelegram
    model: ModelProcess


@dataclass(frozen=True, slots=True)
class Met:
    start_cpu: float
    start_seconds: float
    together: Talk
    lone: Talk


async def measure(plan: Plan) -> Rows:
    count = plan.count(10_000, 50)
    size = max(LINE_BYTES, int(plan.history_gb * 1e9 / (count * LINES * COPIES)))
    # One Telegram for all starts: its message ids go on, so that no message looks like one of an earlier start.
    async with folder() as place, model() as provider, FakeTelegram() as telegram:
        fakes = Fakes(telegram, provider)
        plan.say("the empty store first")
        empty = await _meet(plan, fakes, place / "empty", first_chat=1000)
        full_home = place / "full"
        began = time.monotonic()
        await _seed(full_home, count, size)
        stored = sum(file.stat().st_size for file in full_home.glob("state.db*")) / machine.MEGABYTE
        plan.say(f"stored {count} sessions of {LINES} lines, {stored:.0f} MB, in {time.monotonic() - began:.0f} s")
        full = await _meet(plan, fakes, full_home, first_chat=1000)
        known = await _meet(plan, fakes, full_home, first_chat=FIRST_CHAT)
    name = f"{count} sessions"
    note = f"{stored:.0f} MB stored"
    return [
        _more(f"{name}: CPU until ready, against an empty store", full.start_cpu, empty.start_cpu, note),
        Row(f"{name}: start to ready", full.start_seconds, "s", note=f"{empty.start_seconds:.2f} s on an empty store"),
        *full.together.rows(f"{name}, at once"),
        _more(f"{name}: CPU at once, against an empty store", full.together.cpu_each, empty.together.cpu_each, note),
        *full.lone.rows(f"{name}, lone message"),
        _more(f"{name}: CPU of a lone message, against an empty store", full.lone.cpu_each, empty.lone.cpu_each, note),
        *known.together.rows(f"{name}, at once in chats with {LINES} lines of history"),
    ]


def _more(what: str, full: float, empty: float, note: str) -> Row:
    figures = f"{milliseconds(full):.2f} ms against {milliseconds(empty):.2f} ms"
    return Row(what, 100 * (full / max(empty, 1e-9) - 1), "% more", MORE_PERCENT, f"{figures}; {note}")


async def _meet(plan: Plan, fakes: Fakes, home: Path, *, first_chat: int) -> Met:
    lone = plan.count(30, 3)
    chats = range(first_chat, first_chat + plan.count(200, 5))
    starts = [await once(home, fakes.model, fakes.telegram) for _ in range(plan.count(3, 1))]
    gateway = GatewayProcess(home, settings(fakes.telegram, fakes.model, home.parent))
    async with running(gateway):
        await gateway.ready()
        world = World(gateway, fakes.telegram, fakes.model)
        await talk.warm_up(world)
        together = await talk.bursts(world, chats, plan.count(3, 1))
        alone = await talk.paced(world, [7] * lone, pause=PAUSE_SECONDS)
    cpu, seconds = (statistics.median(values) for values in zip(*((s.cpu, s.ready) for s in starts), strict=True))
    return Met(cpu, seconds, together, alone)


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
