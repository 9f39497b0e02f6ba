"""A home with a thousand planted rows, what may happen to its state.db, and N-08 in full length on a real process.

Accidents happen in another process: a plain open() and close in the gateway's own would drop its locks on the file.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes.core.keys import ChatKind, SessionKey, Target
from hermes.core.messages import ChatMessage, InboundMessage, OutboundMessage, Role
from hermes.store import codec, inbox, outbox, outbox_sending, people
from hermes.store.db import Tx
from hermes.store.home import make_home
from hermes.store.inbox import InboxState, Incoming
from hermes.store.open import open_database
from hermes.store.outbox import OutboxKind, Outgoing
from hermes.store.sessions import sessions, transcripts
from tests.chaos.world import Victim, World, opened, until
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
            outbox_sending.record_sent(tx, f"ob_{chat}", message_id="1", note="", now=now)


def _plant_person(tx: Tx, user: str, now: float) -> None:
    people.ensure(tx, f"p_telegram_{user}", platform="telegram", user_id=user, name="Ana", role="user", now=now)


def _plant_session(tx: Tx, number: int, now: float) -> None:
    sessions.start(tx, f"s_{number}", str(SessionKey("telegram", ChatKind.DM, str(number))), now=now)
    said = [ChatMessage(Role.USER, f"question {number} " + "x" * 300), ChatMessage(Role.ASSISTANT, "answer " * 40)]
    transcripts.append(tx, f"s_{number}", f"t_{number}", said * 2, now=now)


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


@asynccontextmanager
async def small_disk(folder: Path) -> AsyncIterator[str]:
    """Mount a disk of a few megabytes at a folder. Yields why that cannot be done, or ''."""
    await asyncio.to_thread(folder.mkdir, parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0700", "tmpfs", str(folder)]
    done = await asyncio.to_thread(subprocess.run, mount, capture_output=True, text=True, check=False)
    try:
        yield done.stderr.strip()
    finally:
        if done.returncode == 0:
            await asyncio.to_thread(subprocess.run, ["umount", "-l", str(folder)], check=True)


# The long form

LOCK_SECONDS = 35.0
FULL_SECONDS = 35.0  # longer than a silent worker is suffered
PATIENCE_SECONDS = 60.0
HOME_CHANNEL = 99


@dataclass(frozen=True, slots=True)
class Accident:
    """``words`` are what the home channel must hear. Some come before the start, the others while messages wait."""

    name: str
    words: str
    act: Callable[[World, Path], Awaitable[None]]
    is_before_start: bool = False
    needs_small_disk: bool = False
    loses_records: bool = False  # so that an answer that was sent may be sent again


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    words: str
    is_good: bool


async def play_all(folder: Path) -> list[Outcome]:
    return [await _play_on_its_disk(accident, folder / str(number)) for number, accident in enumerate(ACCIDENTS)]


async def _play_on_its_disk(accident: Accident, folder: Path) -> Outcome:
    if not accident.needs_small_disk:
        return await _play(accident, folder)
    async with small_disk(folder / "home") as trouble:
        if trouble:
            return Outcome(accident.name, f"not played: {trouble}", is_good=True)
        return await _play(accident, folder)


async def _play(accident: Accident, folder: Path) -> Outcome:
    async with opened(folder, 1, TELEGRAM_HOME_CHANNEL=str(HOME_CHANNEL)) as world:
        await world.gateway.stop()
        state = world.gateway.home / "state.db"
        planted = await plant(world.gateway.home, world.telegram)
        await elsewhere("shutil.copy(sys.argv[1], sys.argv[2])", state, folder / "older.db")
        if accident.is_before_start:
            await accident.act(world, state)
        world.model.hold()
        world.gateway.start()
        worker = await world.gateway.ready()
        if not accident.is_before_start:
            await until(lambda: len(world.gateway.status()["running"]) == len(PENDING), PATIENCE_SECONDS)
            await accident.act(world, state)
        world.model.release()
        missing = await _missing_answers(world.telegram)
        is_told = await _is_heard(world.telegram, accident.words)
        is_up = accident.loses_records or world.gateway.worker() == worker  # one that lost records was killed
        await world.gateway.stop()
        back = planted.back(await _rows_in(state))
    doubled = _doubled(world.telegram, planted, PENDING if accident.loses_records else (*PENDING, *READY))
    words = f"{back} of {planted.count} rows, {missing} lost, {doubled} doubled"
    words += ", told" * is_told + ", stayed up" * (is_up and not accident.loses_records)
    return Outcome(
        accident.name, words, back >= 0.99 * planted.count and not missing and not doubled and is_told and is_up
    )


async def _missing_answers(telegram: FakeTelegram) -> int:
    wanted = expected_answers().keys()
    with suppress(TimeoutError):
        await telegram.wait_for(lambda: heard(telegram).keys() == wanted, PATIENCE_SECONDS)
    telegram.user_says("and now?", chat=7)
    with suppress(TimeoutError):
        await telegram.wait_for(lambda: "echo: and now?" in telegram.texts(7), PATIENCE_SECONDS)
    return len(wanted - heard(telegram).keys()) + ("echo: and now?" not in telegram.texts(7))


async def _is_heard(telegram: FakeTelegram, words: str) -> bool:
    with suppress(TimeoutError):
        await telegram.wait_for(lambda: any(words in text for text in telegram.texts(HOME_CHANNEL)), PATIENCE_SECONDS)
    return any(words in text for text in telegram.texts(HOME_CHANNEL))


def _doubled(telegram: FakeTelegram, planted: Planted, chats: Sequence[int]) -> int:
    again = telegram.texts(int(planted.answered.chat))
    return len(again) + sum(len(telegram.texts(chat)) > 1 for chat in chats)


async def _rows_in(state: Path) -> Rows:
    database = await open_database(state)
    try:
        return await database.read(rows_of)
    finally:
        await database.close()


async def _zero_header(_: World, state: Path) -> None:
    await zero_header(state)


async def _flip_page(_: World, state: Path) -> None:
    await flip_page_in_the_middle(state)


async def _cut_log(world: World, state: Path) -> None:
    await world.gateway.kill(Victim.BOTH)
    await elsewhere("os.truncate(sys.argv[1], os.stat(sys.argv[1]).st_size * 2 // 3)", f"{state}-wal")
    world.model.release()
    world.gateway.start()
    await world.gateway.ready()


async def _drop_column(_: World, state: Path) -> None:
    await run_sql(state, "ALTER TABLE outbox DROP COLUMN reason")


async def _put_older(world: World, state: Path) -> None:
    await elsewhere("os.replace(*sys.argv[1:])", world.gateway.home.parent / "older.db", state)


async def _copy_older(world: World, state: Path) -> None:
    await elsewhere("shutil.copyfile(*sys.argv[1:])", world.gateway.home.parent / "older.db", state)


async def _put_empty(world: World, state: Path) -> None:
    empty = world.gateway.home.parent / "empty.db"
    await elsewhere("open(sys.argv[1], 'w').close()\nos.replace(*sys.argv[1:])", empty, state)


async def _delete(_: World, state: Path) -> None:
    await elsewhere("os.unlink(sys.argv[1])", state)


async def _hold_lock(world: World, state: Path) -> None:
    async with holding_the_lock(state):
        world.model.release()
        await asyncio.sleep(LOCK_SECONDS)


async def _fill(world: World, state: Path) -> None:
    ballast = state.with_name("ballast")
    await fill_disk(ballast)
    world.model.release()
    await asyncio.sleep(FULL_SECONDS)
    await elsewhere("os.unlink(sys.argv[1])", ballast)


ACCIDENTS = (
    Accident("header zeroed while it was down", "state.db was damaged", _zero_header, is_before_start=True),
    Accident("header zeroed while it runs", "Another program wrote into state.db", _zero_header),
    Accident("page flipped while it was down", "state.db was damaged", _flip_page, is_before_start=True),
    Accident("page flipped while it runs", "state.db was damaged", _flip_page),
    Accident("log cut after kill -9", "its write-ahead log is damaged", _cut_log, loses_records=True),
    Accident("column missing at the start", "lacked column outbox.reason", _drop_column, is_before_start=True),
    Accident("column lost while it runs", "lacked column outbox.reason", _drop_column),
    Accident("replaced by an older copy", "state.db was replaced while in use", _put_older),
    Accident("overwritten by an older copy", "Another program wrote into state.db", _copy_older),
    Accident("replaced by an empty file", "state.db was damaged (the file is empty)", _put_empty),
    Accident("deleted while it runs", "I have put it back, whole", _delete),
    Accident(f"locked for {LOCK_SECONDS:.0f} s", "state.db is locked by python", _hold_lock),
    Accident(f"disk full for {FULL_SECONDS:.0f} s", "is full, so state.db cannot grow", _fill, needs_small_disk=True),
)
