"""What this machine asks for the bare work of a lone message: three HTTP calls and three commits, paced alike.

Code that wakes ten times a second runs with cold caches, several times dearer than the same code in a burst. So the
figure of a lone message is read beside this one, which has nothing of ours in it.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp

from bench import machine
from bench.measures.lone import PAUSE_SECONDS
from bench.rig import ECHO, folder, model
from bench.rows import Plan, Row, Rows, milliseconds

CALLS = COMMITS = 3
BODY = {"model": "x", "messages": [{"role": "user", "content": "hi"}]}


async def measure(plan: Plan) -> Rows:
    count = plan.count(50, 3)
    async with folder() as place, model(*ECHO) as provider, aiohttp.ClientSession() as http:

        async def call() -> None:
            async with http.post(f"{provider.url}/chat/completions", json=BODY) as response:
                await response.read()

        plan.say(f"{count} bare calls and {count} bare commits, one every {PAUSE_SECONDS * 1000:.0f} ms")
        one_call = await _paced(call, count)
        with _Writer(place / "bare.db") as writer:
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


class _Writer:
    """One thread that commits, as the store has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: queue.SimpleQueue[asyncio.Future[None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> _Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.put(None)
        self._thread.join()

    async def commit(self) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._asked.put(done)
        await done

    def _run(self) -> None:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA synchronous = full")
        connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
        while (done := self._asked.get()) is not None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO rows (text) VALUES (?)", ["x" * 400])
            connection.execute("COMMIT")
            self._loop.call_soon_threadsafe(done.set_result, None)
        connection.close()
