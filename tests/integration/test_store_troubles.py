"""N-08: whatever happens to state.db, the gateway stays up, brings back what is there, answers, and says so."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes.services.gateway import Gateway
from hermes.store import people
from hermes.store.db import StoreLimits, Tx
from tests.chaos import store_troubles
from tests.chaos.store_troubles import Planted, heard, plant, rows_of
from tests.fakes.model import FakeModel
from tests.fakes.telegram import FakeTelegram
from tests.integration.conftest import Start

HOME_CHANNEL = 99
SETTINGS = {"TELEGRAM_ALLOW_ALL_USERS": "true", "TELEGRAM_HOME_CHANNEL": str(HOME_CHANNEL), "HERMES_BUSY_MODE": "queue"}
NEEDED = 990
QUICK = StoreLimits(busy_seconds=0.3)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state.db"


@pytest.fixture
async def planted(telegram: FakeTelegram, state: Path) -> Planted:
    return await plant(state.parent, telegram)


async def troubles(gateway: Gateway) -> str:
    return " ".join((await gateway.status())["troubles"])


async def check_everything_is_answered(telegram: FakeTelegram, seconds: float = 30.0) -> None:
    """Every pending message, every waiting answer, once; then also a new message, on Telegram."""
    wanted = store_troubles.expected_answers()
    await telegram.wait_for(lambda: heard(telegram).keys() == wanted.keys(), seconds)
    await is_answered(telegram, "and now?")
    assert heard(telegram) == wanted


async def is_answered(telegram: FakeTelegram, text: str, *, chat: int = 7, seconds: float = 30.0) -> None:
    telegram.user_says(text, chat=chat)
    await telegram.wait_for(lambda: f"echo: {text}" in telegram.texts(chat), seconds)


async def local_chat_is_answered(gateway: Gateway) -> None:
    async with asyncio.timeout(10), gateway.hub.listen("terminal") as letters:
        await gateway.hub.submit("terminal", "hello", f"key {gateway.clock.monotonic()}")
        assert (await letters.get()).text == "echo: hello"


async def home_channel_hears(telegram: FakeTelegram, words: str) -> None:
    await telegram.wait_for(lambda: any(words in text for text in telegram.texts(HOME_CHANNEL)), 10)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """What the log says of the store, in words."""
    return " ".join(str(vars(record).get("reason")) for record in caplog.records if record.levelno >= logging.WARNING)


def corrupt_files(state: Path) -> list[str]:
    return [entry.name for entry in state.parent.iterdir() if re.fullmatch(r"state\.db\.corrupt\.\d{14}", entry.name)]


def content_of(path: Path) -> bytes:
    return path.read_bytes()


def answered_again(telegram: FakeTelegram, planted: Planted) -> list[str]:
    return telegram.texts(int(planted.answered.chat))


@pytest.mark.parametrize("damage", [store_troubles.zero_header, store_troubles.flip_page_in_the_middle])
async def test_a_file_damaged_while_the_gateway_was_down_comes_back(
    start: Start,
    telegram: FakeTelegram,
    planted: Planted,
    state: Path,
    damage: Callable[[Path], Awaitable[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    await damage(state)
    async with start(**SETTINGS) as gateway:
        assert planted.count >= 1000
        assert planted.back(await gateway.db.read(rows_of)) >= (
            planted.count if damage is store_troubles.zero_header else NEEDED
        )
        assert "state.db was damaged" in await troubles(gateway)
        assert "Recovered" in await troubles(gateway)
        await home_channel_hears(telegram, "state.db was damaged")
        await check_everything_is_answered(telegram)
        await local_chat_is_answered(gateway)
        known = await gateway.db.read(everybody)
    assert len(corrupt_files(state)) == 1
    assert answered_again(telegram, planted) == []
    assert known >= 120
    assert "state.db was damaged" in logged(caplog)


def everybody(tx: Tx) -> int:
    users = [str(number) for number in (*range(store_troubles.SESSIONS), *store_troubles.PENDING)]
    return sum(people.find(tx, "telegram", user) is not None for user in users)


@pytest.mark.parametrize(
    "damage, words",
    [
        # SQLite goes on with the first page as it knows it, and writes it back.
        (store_troubles.zero_header, "Another program wrote into state.db"),
        (store_troubles.flip_page_in_the_middle, "state.db was damaged"),
    ],
    ids=["header", "page"],
)
async def test_a_file_damaged_while_the_gateway_runs_comes_back(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    planted: Planted,
    state: Path,
    damage: Callable[[Path], Awaitable[None]],
    words: str,
) -> None:
    model.hold()
    async with start(**SETTINGS) as gateway:
        await model.is_holding()
        await damage(state)
        model.release()
        await check_everything_is_answered(telegram)
        await local_chat_is_answered(gateway)
        assert words in await troubles(gateway)
        await home_channel_hears(telegram, words)
        assert planted.back(await gateway.db.read(rows_of)) >= NEEDED
    async with start(**SETTINGS) as gateway:
        assert planted.back(await gateway.db.read(rows_of)) >= NEEDED
        assert await troubles(gateway) == ""
        await is_answered(telegram, "after a restart")
    assert heard(telegram) == store_troubles.expected_answers()
    assert answered_again(telegram, planted) == []


@pytest.mark.parametrize("column", ["outbox.reason", "lanes.busy_mode"])
@pytest.mark.parametrize("when", ["at start", "while running"])
async def test_a_missing_column_is_added_and_told(
    start: Start,
    telegram: FakeTelegram,
    planted: Planted,
    state: Path,
    column: str,
    when: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    table, name = column.split(".")
    drop = f"ALTER TABLE {table} DROP COLUMN {name}"
    if when == "at start":
        await store_troubles.run_sql(state, drop)
    async with start(**SETTINGS) as gateway:
        if when == "while running":
            await is_answered(telegram, "before")
            await store_troubles.run_sql(state, drop)
        await check_everything_is_answered(telegram)
        await local_chat_is_answered(gateway)
        assert f"state.db lacked column {column}" in await troubles(gateway)
        await home_channel_hears(telegram, "state.db lacked")
        assert planted.back(await gateway.db.read(rows_of)) == planted.count
    assert f"no such column: {column}" in logged(caplog)


async def test_the_file_overwritten_in_place_by_an_older_copy_is_read_anew(
    start: Start, telegram: FakeTelegram, planted: Planted, state: Path
) -> None:
    """As `cp` does it: the file keeps its identity, so that only its time and size tell."""
    older = state.with_name("older.db")
    shutil.copy(state, older)
    async with start(**SETTINGS) as gateway:
        await check_everything_is_answered(telegram)
        await store_troubles.elsewhere("shutil.copyfile(sys.argv[1], sys.argv[2])", older, state)
        await is_answered(telegram, "after that")
        await local_chat_is_answered(gateway)
        assert "Another program wrote into state.db" in await troubles(gateway)
        await home_channel_hears(telegram, "Another program wrote into state.db")
        assert planted.back(await gateway.db.read(rows_of)) >= NEEDED
    async with start(**SETTINGS) as gateway:
        assert planted.back(await gateway.db.read(rows_of)) >= NEEDED
        await is_answered(telegram, "after a restart")
    assert answered_again(telegram, planted) == []


async def replace_by_older(state: Path) -> None:
    await store_troubles.elsewhere("os.replace(sys.argv[1], sys.argv[2])", state.with_name("older.db"), state)


async def replace_by_empty(state: Path) -> None:
    await store_troubles.elsewhere(
        "open(sys.argv[1], 'w').close()\nos.replace(sys.argv[1], sys.argv[2])", state.with_name("empty.db"), state
    )


async def empty_it(state: Path) -> None:
    await store_troubles.elsewhere("os.truncate(sys.argv[1], 0)", state)


async def delete(state: Path) -> None:
    await store_troubles.elsewhere("[os.unlink(sys.argv[1] + end) for end in ('', '-wal', '-shm')]", state)


@pytest.mark.parametrize(
    "accident, words",
    [
        (replace_by_older, "state.db was replaced while in use. I work with the new file"),
        (replace_by_empty, "state.db was damaged (the file is empty). Recovered"),
        (delete, "state.db was deleted while in use. I have put it back, whole."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_whoever_replaces_the_file_while_it_runs_no_message_is_lost_or_answered_twice(
    start: Start,
    telegram: FakeTelegram,
    model: FakeModel,
    planted: Planted,
    state: Path,
    accident: Callable[[Path], Awaitable[None]],
    words: str,
) -> None:
    shutil.copy(state, state.with_name("older.db"))
    async with start(**SETTINGS) as gateway:
        await check_everything_is_answered(telegram)
        model.hold()
        for chat in range(3000, 3005):  # stored, confirmed to Telegram, and not answered yet
            telegram.user_says("meanwhile", chat=chat)
        await model.is_holding()
        await telegram.wait_for(lambda: telegram.unconfirmed == 0)
        await accident(state)
        model.release()
        await is_answered(telegram, "after that")
        await telegram.wait_for(lambda: telegram.texts().count("echo: meanwhile") >= 5, 15)
        await local_chat_is_answered(gateway)
        assert words in await troubles(gateway)
        await home_channel_hears(telegram, words)
        assert planted.back(await gateway.db.read(rows_of)) >= NEEDED
        assert await gateway.db.read(everybody) == 120
    async with start(**SETTINGS):
        await is_answered(telegram, "after a restart")
    assert heard(telegram) == store_troubles.expected_answers()
    assert [telegram.texts(chat) for chat in range(3000, 3005)] == [["echo: meanwhile"]] * 5
    assert answered_again(telegram, planted) == []


async def test_a_file_emptied_in_place_costs_what_was_in_it_and_nothing_stops(
    start: Start, telegram: FakeTelegram, planted: Planted, state: Path
) -> None:
    """Its content is truly gone; transcripts and people are written elsewhere too."""
    async with start(**SETTINGS) as gateway:
        await check_everything_is_answered(telegram)
        await store_troubles.elsewhere("os.truncate(sys.argv[1], 0)", state)
        await is_answered(telegram, "after that")
        await local_chat_is_answered(gateway)
        assert "state.db was damaged" in await troubles(gateway)
        await home_channel_hears(telegram, "state.db was damaged")
        back = await gateway.db.read(rows_of)
        for table in ("people", "person_accounts", "sessions", "transcript"):
            assert planted.rows[table] <= back[table]
        assert await gateway.db.read(everybody) == 120


# A store that cannot be written for a while


async def test_messages_that_come_while_the_disk_is_full_stay_with_telegram_and_are_answered_later(
    start: Start, telegram: FakeTelegram, planted: Planted
) -> None:
    long = "a long story " * 300  # what needs no new page is still stored
    async with start(**SETTINGS) as gateway:
        await check_everything_is_answered(telegram)
        free = await gateway.db.write(lambda tx: tx.value("PRAGMA freelist_count"))
        fill = (
            "INSERT INTO meta (key, value) VALUES ('filler', :text)"  # a page that is free inside the file is room too
        )
        await gateway.db.write(lambda tx: tx.run(fill, text="x" * 4096 * free))
        pages = await gateway.db.write(lambda tx: tx.value("PRAGMA page_count"))
        await gateway.db.alone(lambda tx: tx.value(f"PRAGMA max_page_count = {pages}"))
        for chat in range(3000, 3020):
            telegram.user_says(f"{long}{chat}", chat=chat)
        async with asyncio.timeout(10):
            # Often: a write that is small enough goes through in between, and is told as the end of it.
            while "is full, so state.db cannot grow" not in await troubles(gateway):  # noqa: ASYNC110 - status is asked, as people ask it
                await asyncio.sleep(0.002)
        assert telegram.unconfirmed > 0
        assert not [text for text in telegram.texts() if "long story" in text]
        await gateway.db.alone(lambda tx: tx.value("PRAGMA max_page_count = 1073741823"))
        await telegram.wait_for(lambda: sum("long story" in text for text in telegram.texts()) >= 20, 15)
        await is_answered(telegram, "and now?", chat=8)
        assert await troubles(gateway) == ""
        await home_channel_hears(telegram, "state.db works again. (It was: The disk of ")
    assert [len(telegram.texts(chat)) for chat in range(3000, 3020)] == [1] * 20
    assert len(telegram.texts(HOME_CHANNEL)) <= 2  # though what is small enough went through now and then
    assert telegram.unconfirmed == 0


async def test_a_lock_held_by_another_process_is_told_and_what_came_meanwhile_is_answered(
    start: Start, telegram: FakeTelegram, planted: Planted, state: Path
) -> None:
    async with start(**SETTINGS, limits=QUICK) as gateway:
        await check_everything_is_answered(telegram)
        async with store_troubles.holding_the_lock(state):
            for chat in range(3000, 3005):
                telegram.user_says("locked?", chat=chat)
            async with asyncio.timeout(10):
                while "state.db is locked by python" not in await troubles(gateway):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)
            assert telegram.unconfirmed > 0
            assert planted.back(await gateway.db.read(rows_of)) == planted.count  # reading goes on
        await telegram.wait_for(lambda: telegram.texts().count("echo: locked?") >= 5, 15)
        await local_chat_is_answered(gateway)
        assert await troubles(gateway) == ""
        await home_channel_hears(telegram, "state.db works again. (It was: state.db is locked by python")
    assert [telegram.texts(chat) for chat in range(3000, 3005)] == [["echo: locked?"]] * 5


async def test_turns_in_hand_when_the_lock_is_taken_are_answered_once(
    start: Start, telegram: FakeTelegram, model: FakeModel, state: Path, planted: Planted
) -> None:
    model.hold()
    async with start(**SETTINGS, limits=QUICK) as gateway:
        await model.is_holding()
        async with store_troubles.holding_the_lock(state):
            model.release()
            async with asyncio.timeout(10):
                while "state.db is locked by python" not in await troubles(gateway):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)
        await check_everything_is_answered(telegram, 20)


async def test_a_refused_log_is_told_once_with_its_reason_and_all_works(
    start: Start, telegram: FakeTelegram, planted: Planted, state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    where = {"HERMES_DATABASE_URL": f"sqlite:///{state}?vfs=unix-dotfile"}
    async with start(**SETTINGS, **where) as gateway:
        await check_everything_is_answered(telegram)
        await local_chat_is_answered(gateway)
        told = await troubles(gateway)
        assert "write-ahead logging was refused" in told
        assert "network filesystem (NFS, SMB, FUSE, WSL1)" in told
        await home_channel_hears(telegram, "write-ahead logging was refused")
        assert planted.back(await gateway.db.read(rows_of)) == planted.count
    assert logged(caplog).count("write-ahead logging was refused") == 1
    assert answered_again(telegram, planted) == []


async def test_while_another_programs_file_is_in_our_place_status_says_so_and_all_goes_on_when_ours_is_back(
    start: Start, telegram: FakeTelegram, planted: Planted, state: Path
) -> None:
    kept, foreign = state.with_name("kept.db"), state.with_name("foreign.db")
    await store_troubles.run_sql(foreign, "CREATE TABLE invoices (id)")
    before = content_of(foreign)
    async with start(**SETTINGS) as gateway:
        await check_everything_is_answered(telegram)
        await store_troubles.elsewhere(
            "os.rename(sys.argv[2], sys.argv[3])\nos.rename(*sys.argv[1:3])", foreign, state, kept
        )
        telegram.user_says("who is there?", chat=3000)
        async with asyncio.timeout(10):
            while "is a database of another program" not in await troubles(gateway):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
        assert telegram.unconfirmed == 1
        assert content_of(state) == before
        await store_troubles.elsewhere("os.replace(*sys.argv[1:])", kept, state)
        await telegram.wait_for(lambda: telegram.texts(3000) == ["echo: who is there?"], 10)
        assert planted.back(await gateway.db.read(rows_of)) == planted.count
        assert "another program" not in await troubles(gateway)
    assert heard(telegram) == store_troubles.expected_answers()
