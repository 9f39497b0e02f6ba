"""A backup under load: how long the store keeps a message waiting while ``hermes backup create`` copies it."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from bench import machine, waits
from bench.measures.retention import HELD_UP_MILLISECONDS, seed
from bench.rig import BenchError, folder
from bench.rows import Plan, Row, Rows, milliseconds
from hermes.store.db import Database
from hermes.store.home import make_home
from hermes.store.open import open_database


async def measure(plan: Plan) -> Rows:
    async with folder() as place:
        home = place / "home"
        make_home(home)
        await (await open_database(home / "state.db")).close()
        await asyncio.to_thread(seed, home / "state.db", plan.count(200_000, 2_000))
        db = await open_database(home / "state.db")
        await asyncio.to_thread(os.sync)  # the system is still writing what was stored
        try:
            return await _measure(plan, db, home)
        finally:
            await db.close()


async def _measure(plan: Plan, db: Database, home: Path) -> Rows:
    size = (home / "state.db").stat().st_size / machine.MEGABYTE
    quiet = await waits.until_done(db, asyncio.create_task(asyncio.sleep(plan.count(20, 1))))
    held: list[waits.Span] = []
    async with waits.control(home.parent / "bare.db") as ended:
        with waits.holds(held):
            began = time.monotonic()
            work = asyncio.create_task(_back_up(home))
            beside = waits.Waits(await waits.until_done(db, work), held)
            seconds = time.monotonic() - began
        bare = await ended()
    await work
    return [
        Row("a backup while messages are stored", seconds, "s", None, f"{size:.0f} MB in state.db"),
        Row(
            "storing a message while a backup is made, longest",
            milliseconds(max(beside.seconds)),
            "ms",
            HELD_UP_MILLISECONDS,
            f"{waits.told(beside.seconds)}; without a backup: {waits.told([each.seconds for each in quiet])}",
        ),
        Row("a commit to a bare SQLite file beside it, longest", milliseconds(max(bare)), "ms", None, waits.told(bare)),
        Row("of one message's wait, the part for checkpoints, longest", milliseconds(beside.longest_held), "ms"),
    ]


async def _back_up(home: Path) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-P", "-m", "hermes", "backup", "create", "--hourly", "--json"),
        env={**os.environ, "HERMES_HOME": str(home)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await child.communicate()
    if child.returncode:
        raise BenchError(f"the backup failed: {said.decode()[-500:]}")
