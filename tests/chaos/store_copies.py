"""``hermes store copy`` killed in the middle and run again, between SQLite and PostgreSQL, both ways."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from hermes.core.errors import GatewayError
from hermes.store.api import responses
from hermes.store.copy.copy import StorePlace, open_snapshot
from hermes.store.copy.snapshot import digest
from hermes.store.kanban import open as kanban
from hermes.store.kanban.open import open_board
from hermes.store.open import open_database
from tests.contract.store.servers import postgres_for_tests
from tests.fakes.rows import all_tables, fill, kanban_tables, main_tables, response_tables

ROWS = 40
SESSIONS = 10_000
LONG = {"sessions": SESSIONS, "transcript": 100_000, "inbox": 30_000, "outbox": 30_000, "turns": 30_000}
COPY_SECONDS = 600.0


async def seeded(place: StorePlace, count: int = ROWS, **counts: int) -> None:
    """Make a store with rows in every table."""
    db = await open_database(place.address)
    try:
        folder = place.path.parent
        async with responses.open_store(db, folder) as of_responses, open_board(db, folder) as board:
            await db.alone(fill, main_tables(), count, **counts)
            await of_responses.alone(fill, response_tables(), count, **counts)
            await board.alone(fill, kanban_tables(), count, **counts)
    finally:
        await db.close()


def digests(place: StorePlace) -> dict[str, tuple[int, str]]:
    found = {}
    addresses = [(place.address, all_tables())]
    if not place.is_postgres:
        addresses = [
            (place.address, main_tables()),
            (str(place.beside(responses.FILE)), response_tables()),
            (str(place.beside(kanban.FILE)), kanban_tables()),
        ]
    for address, tables in addresses:
        snapshot = open_snapshot(address)
        try:
            for table in tables:
                told = digest(snapshot.rows(table))
                found[table.name] = (told.rows, told.checksum)
        finally:
            snapshot.close()
    return found


def copy_command(source: StorePlace, destination: StorePlace, **environ: str) -> subprocess.Popen[str]:
    def written(place: StorePlace) -> str:
        return place.address if place.is_postgres else f"sqlite:///{place.address}"

    argv = [sys.executable, "-m", "hermes", "store", "copy", "--from", written(source), "--to", written(destination)]
    return subprocess.Popen(
        argv, env={**os.environ, **environ}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def rows_arrived(place: StorePlace, table: str) -> int:
    try:
        snapshot = open_snapshot(place.address)
    except (GatewayError, sqlite3.Error, psycopg.Error, OSError):  # not there yet
        return 0
    try:
        return int(snapshot.tx().value(f"SELECT COUNT(*) FROM {table}")) if snapshot.has(table) else 0
    finally:
        snapshot.close()


async def killed_and_gone_on_with(source: StorePlace, destination: StorePlace, pause: str) -> str:
    """Kill -9 the command when sessions have arrived, run it again, return what it says."""
    command = copy_command(source, destination, HERMES_TEST_PAUSE=pause)
    deadline = time.monotonic() + 120
    while not rows_arrived(destination, "sessions"):
        assert time.monotonic() < deadline
        assert command.poll() is None, command.communicate()
        await asyncio.sleep(0.02)
    os.kill(command.pid, signal.SIGKILL)
    command.communicate()
    assert not rows_arrived(destination, "api_keys")  # it was in the middle
    again = copy_command(source, destination)
    said, complaint = again.communicate(timeout=COPY_SECONDS)
    assert again.returncode == 0, complaint
    assert digests(destination) == digests(source)
    return said


async def play(folder: Path) -> dict[str, tuple[int, str]]:
    """10,000 sessions to PostgreSQL and back, each way through a kill; returns rows and checksum of each table."""
    places = [StorePlace(str(folder / name / "state.db")) for name in ("from", "back")]
    for place in places:
        await asyncio.to_thread(place.path.parent.mkdir, parents=True)
    with postgres_for_tests() as server, server.schema() as url:
        await seeded(places[0], 2_000, **LONG)
        await killed_and_gone_on_with(places[0], StorePlace(url), "")
        await killed_and_gone_on_with(StorePlace(url), places[1], "")
    return digests(places[1])
