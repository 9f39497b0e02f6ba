"""How long messages wait for the store while it does something else, and what they wait for.

The disk of a shared machine has slow moments of its own. Beside the messages a process that has nothing of ours in it
(``python -m bench.waits FILE``) commits to a bare SQLite file on the same disk, as often: what is long there too was
the disk or the processor. And of each message's wait the part is known in which the writer was busy with other work.
"""

from __future__ import annotations

import argparse
import asyncio
import bisect
import select
import sqlite3
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.rows import milliseconds, percentile
from hermes.core.keys import SessionKey
from hermes.core.messages import InboundMessage
from hermes.store import codec, inbox
from hermes.store.db import Database
from hermes.store.inbox import InboxState, Incoming
from hermes.store.sqlite.connection import SqliteConnection
from hermes.store.sqlite.database import SqliteDatabase

EVERY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Span:
    began: float
    seconds: float

    def overlap(self, other: Span) -> float:
        end = min(self.began + self.seconds, other.began + other.seconds)
        return max(0.0, end - max(self.began, other.began))


@dataclass(slots=True)
class Waits:
    """Of messages: how long each took, and how long of that the writer did something else."""

    messages: list[Span]
    held: list[Span] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        return [each.seconds for each in self.messages]

    @property
    def longest_held(self) -> float:
        """The longest part of a message's wait; the writer does one thing at a time, so no two spans overlap."""
        starts = [span.began for span in self.held]
        longest = 0.0
        for message in self.messages:
            first = max(0, bisect.bisect(starts, message.began) - 1)
            last = bisect.bisect(starts, message.began + message.seconds)
            longest = max(longest, sum(message.overlap(span) for span in self.held[first:last]))
        return longest


async def until_done(db: Database, work: asyncio.Task[Any]) -> list[Span]:
    """Store a message every 10 ms until the task is done."""
    spans = []
    number = 0
    while not work.done():
        began = time.monotonic()
        number += 1
        await db.write(inbox.accept, [incoming(number, time.time())], now=time.time())
        spans.append(Span(began, time.monotonic() - began))
        await asyncio.sleep(EVERY_SECONDS)
    return spans


def incoming(number: int, now: float) -> Incoming:
    key = SessionKey.parse(f"agent:main:telegram:dm:{number % 50}")
    event_id = f"ev_new_{number}_{now}"
    said = InboundMessage((event_id,), key, "7", "hello " * 20, datetime.fromtimestamp(now, UTC))
    return Incoming(
        event_id, (event_id,), str(key), "telegram", "main", "message", "7", codec.dump(said), InboxState.QUEUED, now
    )


@contextmanager
def holds(spans: list[Span]) -> Iterator[None]:
    """Note when the writer is busy with what is no message: jobs of other kinds, and all checkpoints."""

    def timed(run: Callable[..., Any], is_noted: Callable[..., bool]) -> Callable[..., Any]:
        def call(self: object, *args: Any) -> Any:
            began = time.monotonic()
            try:
                return run(self, *args)
            finally:
                if is_noted(*args):
                    spans.append(Span(began, time.monotonic() - began))

        return call

    others = timed(SqliteDatabase._settle, lambda group: group[0].kind != "write")
    checkpoints = timed(SqliteConnection.checkpoint, lambda: True)
    with patch.object(SqliteDatabase, "_settle", others), patch.object(SqliteConnection, "checkpoint", checkpoints):
        yield


@asynccontextmanager
async def control(path: Path) -> AsyncIterator[Callable[[], Any]]:
    """Run the bare file beside; call what this gives once, for the seconds each of its commits took."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.waits", str(path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def ended() -> list[float]:
        said, _ = await process.communicate(b"")
        return [float(word) for word in said.split()]

    try:
        yield ended
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def told(seconds: Sequence[float]) -> str:
    median, late = (milliseconds(value) for value in (statistics.median(seconds), percentile(seconds, 99)))
    return f"median {median:.2f} ms, 99% {late:.1f} ms, longest {milliseconds(max(seconds)):.1f} ms"


def commit_until_told(path: Path) -> list[float]:
    seconds = []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = wal")
        db.execute("PRAGMA synchronous = full")
        db.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, text TEXT)")
        while not select.select([0], [], [], EVERY_SECONDS)[0]:
            began = time.monotonic()
            db.execute("INSERT INTO rows (text) VALUES (?)", ["x" * 800])
            seconds.append(time.monotonic() - began)
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    print(*commit_until_told(parser.parse_args().file))
