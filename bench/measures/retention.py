"""Pruning a million settled rows: how long the store keeps a message waiting meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bench import machine, waits
from bench.rig import folder
from bench.rows import Plan, Row, Rows, milliseconds, percentile
from hermes.config.schema import Config
from hermes.services.clock import SystemClock
from hermes.services.deletion import SessionDeletion
from hermes.services.retention import DAY, Retention
from hermes.store.db import Database
from hermes.store.open import open_database

HELD_UP_MILLISECONDS = 50.0
WORDS = 120


async def measure(plan: Plan) -> Rows:
    count = plan.count(1_000_000, 5_000)
    async with folder() as place:
        home = place / "home"
        home.mkdir()
        db = await open_database(home / "state.db")
        await db.close()
        began = time.monotonic()
        await asyncio.to_thread(seed, home / "state.db", count)
        size = (home / "state.db").stat().st_size / machine.MEGABYTE
        plan.say(f"stored {count} settled rows, {size:.0f} MB, in {time.monotonic() - began:.0f} s")
        db = await open_database(home / "state.db")
        await asyncio.to_thread(os.sync)  # the system is still writing what was stored
        try:
            return await _measure(plan, db, home, count)
        finally:
            await db.close()


async def _measure(plan: Plan, db: Database, home: Path, count: int) -> Rows:
    clock = SystemClock()
    pruning = Retention(db, home, clock, lambda: Config(home=home), SessionDeletion(db, home, clock))
    quiet = await waits.until_done(db, asyncio.create_task(asyncio.sleep(plan.count(20, 1))))
    usual = waits.told([each.seconds for each in quiet])
    began = time.monotonic()
    held: list[waits.Span] = []
    async with waits.control(home.parent / "bare.db") as ended:
        with waits.holds(held):
            work = asyncio.create_task(pruning.prune_rows())
            beside = waits.Waits(await waits.until_done(db, work), held)
        bare = await ended()
    seconds = time.monotonic() - began
    pruned = sum((await work).values())
    assert pruned >= count * 0.99, f"only {pruned} of {count} rows were pruned"
    note = f"{pruned} rows in {seconds:.0f} s; {len(beside.messages)} messages stored meanwhile"
    name = "storing a message while rows are pruned"
    return [
        Row(name, milliseconds(statistics.median(beside.seconds)), "ms", None, note),
        Row(f"{name}, 99%", milliseconds(percentile(beside.seconds, 99)), "ms"),
        Row(f"{name}, longest", milliseconds(max(beside.seconds)), "ms", None, f"without pruning: {usual}"),
        Row("a commit to a bare SQLite file beside it, longest", milliseconds(max(bare)), "ms", None, waits.told(bare)),
        Row(
            "of one message's wait, the part for pruning and checkpoints, longest",
            milliseconds(beside.longest_held),
            "ms",
            HELD_UP_MILLISECONDS,
            f"single bites and checkpoints: {waits.told([each.seconds for each in held])}",
        ),
    ]


def seed(path: Path, count: int) -> None:
    """Settled rows of a year that ended a hundred days ago: of ten, 4 messages, 3 deliveries, 1 turn, 2 tool calls."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        rows = list(_turns(count // 10))
        db.executemany(
            "INSERT INTO turns (id, lane, session_id, state, created_at, ended_at) VALUES (?, ?, ?, 'done', ?, ?)",
            [(f"t_{n}", lane, f"s_gone_{n}", at, at + 5) for n, lane, at in rows],
        )
        body = '{"text":"' + "word " * WORDS + '"}'
        db.executemany(
            """
            INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, turn_id, received_at,
                               ready_at, settled_at)
            VALUES (?, ?, 1, 'telegram', 'main', 'message', '7', ?, 'answered', ?, ?, ?, ?)
            """,
            [(f"ev_{n}_{i}", lane, body, f"t_{n}", at, at, at + 5) for n, lane, at in rows for i in range(4)],
        )
        db.executemany(
            """
            INSERT INTO outbox (id, target, seq, turn_id, group_id, idx, kind, body, state, not_before, expires_at,
                                created_at, settled_at)
            VALUES (?, 'telegram:7', 1, ?, ?, 0, 'reply', ?, 'sent', ?, ?, ?, ?)
            """,
            [
                (f"ob_{n}_{i}", f"t_{n}", f"ob_{n}_{i}", body, at, at + 60, at + 1, at + 2)
                for n, _, at in rows
                for i in range(3)
            ],
        )
        db.executemany(
            """
            INSERT INTO tool_calls (id, turn_id, step, position, call_id, name, arguments, state, result, created_at)
            VALUES (?, ?, 1, ?, ?, 'terminal', '{}', 'done', ?, ?)
            """,
            [(f"t_{n}:1:{i}", f"t_{n}", i, f"call_{n}_{i}", body, at) for n, _, at in rows for i in range(2)],
        )
        db.execute("COMMIT")


def _turns(count: int) -> Iterator[tuple[int, str, float]]:
    chance = random.Random(1)
    end = time.time() - 100 * DAY
    for number in range(count):
        yield number, f"agent:main:telegram:dm:{chance.randrange(5000)}", end - 365 * DAY * (1 - number / count)
