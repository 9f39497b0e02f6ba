"""A home with a thousand planted rows, and what may happen to its state.db.

Accidents happen in another process: a plain open() and close in the gateway's own would drop its locks on the file.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes.core.keys import ChatKind, SessionKey, Target
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role
from hermes.store import codec, inbox, outbox, people, sessions
from hermes.store.db import Tx, open_database
from hermes.store.home import make_home
from hermes.store.inbox import InboxState, Incoming
from hermes.store.outbox import OutboxKind, Outgoing
from tests.fakes.server import Said
from tests.fakes.telegram import FakeTelegram

PAGE = 4096
SESSIONS = 100
PENDING = range(1000, 1020)  # chats with a message that is stored and not answered
READY = range(2000, 2010)  # chats with an answer that is stored and not sent
HOUR = 3600.0

KEYS = {
    "people": "id",
    "person_accounts": "user_id",
    "dedupe": "key",
    "inbox": "id",
    "sessions": "id",
    "transcript": "session_id || ' ' || seq",
    "outbox": "id",
}

Rows = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Planted:
    """What the file held. ``answered`` is a message that Telegram offers once more, and that was answered long ago."""

    rows: Rows
    answered: Said

    @property
    def count(self) -> int:
        return sum(len(keys) for keys in self.rows.values())

    def back(self, now: Rows) -> int:
        """How many of the planted rows are among these."""
        return sum(len(keys & now[table]) for table, keys in self.rows.items())


async def plant(home: Path, telegram: FakeTelegram) -> Planted:
    """Fill the home's state.db as a busy gateway would have, which then was stopped."""
    make_home(home)
    telegram.any_chat = True
    answered = telegram.user_says("answered long ago", chat=SESSIONS + 1)
    database = await open_database(home / "state.db")
    try:
        await database.write(_plant, telegram.identity, answered, now=time.time())
        return Planted(await database.read(rows_of), answered)
    finally:
        await database.close()


def rows_of(tx: Tx) -> Rows:
    return {table: frozenset(tx.all(f"SELECT {key} FROM {table}", str)) for table, key in KEYS.items()}


def _plant(tx: Tx, bot: str, answered: Said, *, now: float) -> None:
    for number in range(SESSIONS):
        _plant_person(tx, str(number), now)
        _plant_session(tx, number, now)
        _plant_message(tx, f"telegram/{bot}/msg:{number}:1", number, f"old {number}", now, is_answered=True)
    _plant_message(tx, f"telegram/{bot}/{answered.key}", int(answered.chat), "answered long ago", now, is_answered=True)
    for chat in PENDING:
        _plant_person(tx, str(chat), now)
        _plant_message(tx, f"telegram/{bot}/msg:{chat}:1", chat, f"pending {chat}", now, is_answered=False)
    for chat in range(READY.start - SESSIONS, READY.stop):
        target = Target("telegram", str(chat))
        body = codec.dump(OutboundMessage(target, f"ready {chat}"))
        outbox.enqueue(
            tx, [Outgoing(f"ob_{chat}", str(target), f"ob_{chat}", 0, OutboxKind.REPLY, body, now + 6 * HOUR)], now=now
        )
        if chat not in READY:
            outbox.record_sent(tx, f"ob_{chat}", message_id="1", note="", now=now)


def _plant_person(tx: Tx, user: str, now: float) -> None:
    people.ensure(tx, f"p_telegram_{user}", platform="telegram", user_id=user, name="Ana", role="user", now=now)


def _plant_session(tx: Tx, number: int, now: float) -> None:
    sessions.start(tx, f"s_{number}", str(SessionKey("telegram", ChatKind.DM, str(number))), now=now)
    said = [ChatMessage(Role.USER, f"question {number} " + "x" * 300), ChatMessage(Role.ASSISTANT, "answer " * 40)]
    sessions.append(tx, f"s_{number}", f"t_{number}", said * 2, now=now)


def _plant_message(tx: Tx, key: str, chat: int, text: str, now: float, *, is_answered: bool) -> None:
    session_key = SessionKey("telegram", ChatKind.DM, str(chat))
    message = InboundMessage((key,), session_key, str(chat), text, datetime.fromtimestamp(now, UTC), message_id="1")
    row = Incoming(
        f"ev_{chat}", (key,), str(session_key), "telegram", "main", "message", str(chat), codec.dump(message),
        InboxState.QUEUED, now,
    )  # fmt: skip
    inbox.accept(tx, [row], now=now)
    if is_answered:
        inbox.settle(tx, row.id, state=InboxState.ANSWERED, now=now)


def expected_answers() -> dict[str, list[str]]:
    """What each chat must have heard in the end: every pending message answered, every ready answer sent, once."""
    return {
        **{str(chat): [f"echo: pending {chat}"] for chat in PENDING},
        **{str(chat): [f"ready {chat}"] for chat in READY},
    }


def heard(telegram: FakeTelegram) -> dict[str, list[str]]:
    """What the chats of ``expected_answers`` have heard so far."""
    found: dict[str, list[str]] = {}
    for sent in telegram.sent:
        if int(sent.chat) in PENDING or int(sent.chat) in READY:
            found.setdefault(sent.chat, []).append(sent.text)
    return found


# Accidents


async def elsewhere(code: str, *args: object) -> None:
    """Run a few lines of Python in another process; ``args`` are its ``sys.argv[1:]``."""
    command = [sys.executable, "-I", "-c", f"import sys, os, shutil, sqlite3\n{code}", *map(str, args)]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=20)


async def overwrite(path: Path, at: int, data: bytes) -> None:
    await elsewhere(
        "with open(sys.argv[1], 'r+b') as file:\n    file.seek(int(sys.argv[2]))\n"
        "    file.write(bytes.fromhex(sys.argv[3]))",
        path,
        at,
        data.hex(),
    )


async def zero_header(path: Path) -> None:
    await overwrite(path, 0, bytes(100))


async def flip_page_in_the_middle(path: Path) -> None:
    await overwrite(path, page_in_the_middle(path) * PAGE, b"\xa5" * PAGE)


def page_in_the_middle(path: Path) -> int:
    return path.stat().st_size // PAGE // 2


async def run_sql(path: Path, sql: str) -> None:
    await elsewhere(
        "connection = sqlite3.connect(sys.argv[1])\nconnection.executescript(sys.argv[2])\nconnection.close()",
        path,
        sql,
    )


_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


@asynccontextmanager
async def holding_the_lock(path: Path) -> AsyncIterator[Callable[[], None]]:
    """Another process is in the middle of a write until it is told to let go, at the latest at the block's end."""
    pipe = asyncio.subprocess.PIPE
    holder = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", _HOLD, str(path), stdin=pipe, stdout=pipe)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        async with asyncio.timeout(10):
            assert await holder.stdout.readline() == b"held\n"
        yield holder.stdin.close
    finally:
        holder.stdin.close()
        await holder.wait()


async def fill_disk(ballast: Path) -> None:
    """Write a file until nothing more fits beside it."""
    await elsewhere(
        "with open(sys.argv[1], 'wb', buffering=0) as file:\n"
        "    for size in (1 << 16, 512, 1):\n"
        "        try:\n"
        "            while file.write(bytes(size)) == size: pass\n"
        "        except OSError: pass",
        ballast,
    )
