"""What this machine asks for the bare work of a lone message, of an API request and of a paced stream.

Code that wakes ten times a second runs with cold caches, several times dearer than the same code in a burst. So the
figure of a lone message is read beside that of three bare HTTP calls and three bare commits, paced alike; and those of
the API beside a bare server (``bench.bare``), measured in turn with the gateway.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp

from bench import caller, machine
from bench.bare import Writer
from bench.caller import CHAT, Door, Line, door_of
from bench.measures.api import AT_ONCE, FAST, LONG_TOKENS, SETTLE_SECONDS, says
from bench.measures.lone import PAUSE_SECONDS
from bench.rig import ECHO, ROOT, START_SECONDS, BenchError, World, folder, model, world
from bench.rows import Plan, Row, Rows, milliseconds

CALLS = COMMITS = 3
PAIRS = 7
STREAM = ("--mode", "stream", "--tokens", str(LONG_TOKENS), "--rate", str(FAST))
BODY = {"model": "x", "messages": [{"role": "user", "content": "hi"}]}


async def measure(plan: Plan) -> Rows:
    requests, streams = plan.count(150, 5), plan.count(30, 2)

    async def ask(door: Door) -> int:
        async with Line(door) as line:
            for _ in range(requests):
                await line.ask(CHAT, says("hi"))
        return requests

    async def follow(door: Door) -> int:
        met = await caller.streams(door, CHAT, says("go", stream=True), streams, per_second=AT_ONCE / 2)
        if not all(stream.ended for stream in met):
            raise BenchError("A stream broke off.")
        return streams

    how = f"a stream of {LONG_TOKENS} tokens at {FAST:.0f}/s"
    return [
        *await _lone(plan),
        *await _beside_bare(plan, "an API request alone", ECHO, ask),
        *await _beside_bare(plan, how, STREAM, follow),
    ]


async def _lone(plan: Plan) -> Rows:
    count = plan.count(50, 3)
    async with folder() as place, model(*ECHO) as provider, aiohttp.ClientSession() as http:

        async def call() -> None:
            async with http.post(f"{provider.url}/chat/completions", json=BODY) as response:
                await response.read()

        plan.say(f"{count} bare calls and {count} bare commits, one every {PAUSE_SECONDS * 1000:.0f} ms")
        one_call = await _paced(call, count)
        with Writer(place / "bare.db") as writer:
            one_commit = await _paced(writer.commit, count)
    note = "bare aiohttp and sqlite3, nothing of ours"
    whole = CALLS * one_call + COMMITS * one_commit
    return [
        Row("one HTTP call, paced: CPU", milliseconds(one_call), "ms", note=note),
        Row("one commit in another thread, paced: CPU", milliseconds(one_commit), "ms", note=note),
        Row("the floor of a lone message: three of each", milliseconds(whole), "ms", note=note),
    ]


async def _paced(act: Callable[[], Awaitable[None]], count: int) -> float:
    """CPU seconds of one, with the same pause between two of them as between lone messages."""
    for _ in range(10):
        await act()
    before = machine.cpu_seconds(machine.own_pid())
    for _ in range(count):
        await act()
        await asyncio.sleep(PAUSE_SECONDS)
    return (machine.cpu_seconds(machine.own_pid()) - before) / count


async def _beside_bare(
    plan: Plan, what: str, arguments: tuple[str, ...], act: Callable[[Door], Awaitable[int]]
) -> Rows:
    """CPU of the gateway's worker and of the bare server for the same, in turn, since the machine changes its speed."""
    pairs = plan.count(PAIRS, 1)
    plan.say(f"{what}: by the gateway and by a bare server in turn, {pairs} times")
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(folder())
        here: World = await stack.enter_async_context(world(place / "home", model_arguments=arguments))
        bare_pid, bare_port = await stack.enter_async_context(_bare(place / "bare.db", here.model.url))
        sides = {here.gateway.worker: door_of(here.gateway), bare_pid: Door(bare_port, "none")}
        costs: dict[int, list[float]] = {pid: [] for pid in sides}
        for door in sides.values():
            await act(door)
        for _ in range(pairs):
            for pid, door in sides.items():
                before = machine.cpu_seconds(pid)
                count = await act(door)
                await asyncio.sleep(SETTLE_SECONDS)
                costs[pid].append((machine.cpu_seconds(pid) - before) / count)
    ours, bare = costs.values()
    times = statistics.median(mine / other for mine, other in zip(ours, bare, strict=True))
    note = f"median of {pairs} pairs"
    return [
        Row(f"{what}, bare: CPU", milliseconds(statistics.median(bare)), "ms", note="bare aiohttp, orjson and sqlite3"),
        Row(f"{what}, by the gateway: CPU", milliseconds(statistics.median(ours)), "ms", note=note),
        Row(f"{what}: the gateway's cost to the bare one's", times, "", note=note),
    ]


@asynccontextmanager
async def _bare(database: Path, model_url: str) -> AsyncIterator[tuple[int, int]]:
    """The bare server: its process and its port."""
    command = [sys.executable, "-m", "bench.bare", str(database), model_url]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            told = (await process.stdout.readline()).decode().strip()
        if not told:
            raise BenchError("The bare server did not start.")
        yield process.pid, int(told)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
