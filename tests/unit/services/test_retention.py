"""Pruning as a service: how old what goes is, how much stays, and that messages do not wait for it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.measures.retention import HELD_UP_MILLISECONDS, seed
from bench.waits import incoming
from hermes.config.schema import Config, RetentionConfig
from hermes.services.deletion import SessionDeletion, blank_log, forget_typed
from hermes.services.retention import DAY, Retention, prune_files
from hermes.store import inbox
from hermes.store.db import Database, Tx
from hermes.store.open import open_database
from hermes.store.retention import pruning
from hermes.store.retention.deletion import DeletedSession
from tests.fakes.clock import FakeClock

LIMITS = RetentionConfig()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await open_database(tmp_path / "state.db")
    await opened.close()
    seed(tmp_path / "state.db", 2000)
    opened = await open_database(tmp_path / "state.db")
    yield opened
    await opened.close()


def service(database: Database, home: Path, limits: RetentionConfig = LIMITS) -> Retention:
    clock = FakeClock()
    clock.advance(time.time() - clock.now())
    sessions = SessionDeletion(database, home, clock)
    return Retention(database, home, clock, lambda: Config(home=home, retention=limits), sessions)


def settled(tx: Tx) -> int:
    return sum(int(tx.value(f"SELECT COUNT(*) FROM {table}")) for table in ("inbox", "outbox", "turns", "tool_calls"))


async def test_messages_are_stored_while_rows_are_pruned(database: Database, tmp_path: Path) -> None:
    work = asyncio.create_task(service(database, tmp_path).prune_rows())
    longest = stored = 0.0
    while not work.done():
        began = time.monotonic()
        stored += 1
        await database.write(inbox.accept, [incoming(int(stored), time.time())], now=time.time())
        longest = max(longest, time.monotonic() - began)
        await asyncio.sleep(0.01)
    assert sum((await work).values()) == 2000
    assert await database.read(settled) == stored, "what arrived meanwhile is there"
    assert longest * 1000 < 10 * HELD_UP_MILLISECONDS


async def test_a_store_that_is_too_large_prunes_before_its_time_and_keeps_two_days(
    database: Database, tmp_path: Path
) -> None:
    young = "UPDATE inbox SET received_at = :at WHERE id = 'ev_0_0'"
    await database.write(lambda tx: tx.run(young, at=time.time() - DAY))
    await service(database, tmp_path, RetentionConfig(days=3650)).prune_rows()
    assert await database.read(settled) == 2000, "nothing is too old, and nothing too large"
    await service(database, tmp_path, RetentionConfig(days=3650, max_mb=0)).prune_rows()
    assert await database.read(lambda tx: tx.all("SELECT id FROM inbox", str)) == ["ev_0_0"]


async def test_what_is_stored_is_told_in_bytes_and_since_when(database: Database) -> None:
    found = await database.read(pruning.stored)
    assert found["bytes"] > 1_000_000
    assert found["oldest"] is not None
    assert time.time() - found["oldest"] > 400 * DAY


def test_files_go_with_their_age_and_what_is_too_much_goes_oldest_first(tmp_path: Path) -> None:
    now = time.time()

    def put(name: str, days: float, size: int = 10) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        os.utime(path, (now - days * DAY, now - days * DAY))
        return path

    def damaged(days: float, suffix: str = "") -> Path:
        stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(now - days * DAY))
        return put(f"state.db.corrupt.{stamp}{suffix}", days=400)  # a file keeps the time of its last write

    gone = [put("outputs/p_1.log", 31), put("cron/output/j_1/a.md", 31), put("logs/gateway.log.3", 31)]
    gone += [damaged(31), damaged(31, "-wal")]
    stays = [put("outputs/p_2.log", 29), put("logs/gateway.log", 31), put("logs/errors.log.1", 3), damaged(29)]
    stays += [put("state.db", 400), put("kanban.db", 400)]
    assert prune_files(tmp_path, LIMITS, now) == len(gone)
    assert [path for path in gone if path.exists()] == []
    assert [path for path in stays if not path.exists()] == []
    large = [put(f"outputs/p_{number}.log", number, 6_000_000) for number in range(3, 7)]
    fresh = put("outputs/p_now.log", 0.1, 6_000_000)
    prune_files(tmp_path, RetentionConfig(files_max_mb=13), now)
    assert [path.name for path in large if path.exists()] == ["p_3.log"]
    assert fresh.exists()


def test_only_what_was_said_in_the_session_leaves_the_history_of_a_terminal(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.write_text("\n# 2026-01-01\n+one\n+two\n\n# 2026-01-02\n+one\n\n# 2026-01-03\n+/new\n")
    forget_typed(history, ["one\ntwo", "three"])
    assert history.read_text() == "\n# 2026-01-02\n+one\n\n# 2026-01-03\n+/new\n"
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "line",
    [
        'x DEBUG Chat completion asked session=s_9 label=- says="the \\"quince\\" 果酱"\n',
        "x DEBUG Chat completion asked session=s_9 says=quince\n",
        '{"level": "DEBUG", "session": "s_9", "says": "the \\"quince\\" here", "label": ""}\n',
    ],
)
def test_a_log_forgets_what_a_session_said_and_keeps_its_length(tmp_path: Path, line: str) -> None:
    path = tmp_path / "gateway.log"
    other = line.replace("s_9", "s_8")
    path.write_text(line + other)
    gone = DeletedSession("s_1", "agent:main:api:dm:s_9", 0, 0, 0, 0, "", 0)
    blank_log(path, gone)
    text = path.read_text()
    assert text.endswith(other)
    assert len(text.encode()) == len((line + other).encode())
    assert "quince" not in text[: -len(other)]
