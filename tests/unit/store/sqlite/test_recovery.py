"""A damaged store: no row is invented, no role changes, and the report says what is missing."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from hermes.store import migrate, migrations
from hermes.store.api import api_keys
from hermes.store.db import Database, Trouble, Tx
from hermes.store.home import make_home
from hermes.store.ids import new_id
from hermes.store.open import open_database
from hermes.store.sqlite import losses, recovery
from hermes.store.sqlite.losses import Loss, Report
from hermes.store.sqlite.page_map import SUFFIX
from tests.fixtures.schemas import NEWEST, OLDER, older_migrations
from tests.unit.store.conftest import Store, count, fill, put
from tests.unit.store.test_sqlite_faults import PAGE, overwrite, watch_checks

PEOPLE = 200


class Home:
    """A home with people and their messages, and what its store told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "state.db"
        self.told: list[Trouble] = []

    async def open(self) -> Database:
        return await open_database(self.path, on_trouble=self.told.append)

    async def everything(self) -> dict[str, list[tuple[object, ...]]]:
        database = await self.open()
        try:
            return await database.read(everything)
        finally:
            await database.close()

    def root_of(self, table: str) -> int:
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro&immutable=1", uri=True)) as file:
            return int(file.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [table]).fetchone()[0])

    def forget_map(self) -> None:
        self.path.with_name(self.path.name + SUFFIX).unlink()

    @property
    def report(self) -> Report:
        return losses.read(self.folder)[-1]


def everything(tx: Tx) -> dict[str, list[tuple[object, ...]]]:
    names = tx.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'meta'", str)
    return {name: sorted(tx.all(f"SELECT * FROM {name}", lambda *row: row), key=repr) for name in names}


def live(tx: Tx) -> None:
    now = time.time() - 3600
    for number in range(PEOPLE):
        values = {"id": f"p_{number}", "name": f"Ana {number}", "role": ("user", "admin", "guest")[number % 3]}
        tx.run("INSERT INTO people (id, name, role, created_at) VALUES (:id, :name, :role, :at)", **values, at=now)
        tx.run(
            "INSERT INTO inbox (id, lane, seq, platform, account, kind, sender_id, body, state, received_at, ready_at)"
            " VALUES (:id, :lane, 1, 'telegram', 'main', 'message', '1', :body, 'answered', :at, :at)",
            id=new_id("ev"),
            lane=f"agent:main:telegram:dm:{number}",
            body='{"text": "hello there, how are you today?"}',
            at=now + number * 10,
        )


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    database = await home.open()
    await database.write(live)
    await database.close()
    return home


def place_of(path: Path, text: bytes) -> int:
    found = path.read_bytes().index(text)
    assert found > 0
    return found


async def test_a_byte_changed_in_a_text_costs_the_rows_of_its_page_and_is_told(home: Home) -> None:
    before = await home.everything()
    overwrite(home.path, place_of(home.path, b"hello there"), b"j")
    after = await home.everything()
    lost = len(before["inbox"]) - len(after["inbox"])
    assert 0 < lost < 40
    assert set(after["inbox"]) < set(before["inbox"])
    assert home.report.losses == [
        Loss("inbox", lost, since=home.report.losses[0].since, until=home.report.losses[0].until)
    ]
    assert f"lost: {lost} rows of inbox" in home.told[-1].text


@pytest.mark.parametrize("has_map", [True, False], ids=["with its map", "without"])
async def test_a_role_that_was_overwritten_in_the_file_is_as_it_was(home: Home, has_map: bool) -> None:
    before = await home.everything()
    overwrite(home.path, place_of(home.path, b"Ana 1admin") + 5, b"owner" if has_map else b"other")
    if not has_map:
        home.forget_map()
    assert (await home.everything())["people"] == before["people"]
    assert home.told[-1].kind == "damage"


@pytest.mark.parametrize("has_map", [True, False], ids=["with its map", "without"])
async def test_rows_of_the_schema_never_become_people(home: Home, has_map: bool) -> None:
    before = await home.everything()
    if not has_map:
        home.forget_map()
    overwrite(home.path, (home.root_of("people") - 1) * PAGE, b"\xa5" * PAGE * 3)
    after = await home.everything()
    assert after["people"] == before["people"]
    assert {table for table in after if set(after[table]) - set(before[table])} == set()


async def test_without_the_map_nobody_is_taken_from_pages_found_alone(home: Home) -> None:
    home.forget_map()
    (home.folder / "mirror.jsonl").unlink()
    overwrite(home.path, (home.root_of("people") - 1) * PAGE, bytes(PAGE))
    assert (await home.everything())["people"] == []
    assert [loss.table for loss in home.report.losses if loss.table == "people"] == ["people"]


async def test_an_id_of_a_lost_row_is_known_to_have_been_lost(home: Home) -> None:
    before = await home.everything()
    for page in range(home.root_of("inbox"), home.path.stat().st_size // PAGE):
        overwrite(home.path, page * PAGE, b"\xa5" * PAGE)
    after = await home.everything()
    gone = set(before["inbox"]) - set(after["inbox"])
    assert gone
    (told,) = losses.of_id(losses.read(home.folder), str(gone.pop()[0]))
    assert told.startswith("Lost when state.db was recovered on ")
    assert "of inbox" in told
    assert losses.of_id(losses.read(home.folder), "ap_" + new_id("x").partition("_")[2]) == []


async def test_an_empty_file_is_known_to_have_held_what_it_held(home: Home) -> None:
    home.path.unlink()
    after = await home.everything()
    assert after["inbox"] == []
    assert len(after["people"]) == PEOPLE
    assert [(loss.table, loss.rows, loss.is_exact) for loss in home.report.losses] == [("inbox", PEOPLE, True)]
    (told,) = losses.of_id(losses.read(home.folder), "")
    assert told.endswith(f": {home.report.losses[0]}.")


async def test_rows_added_with_another_program_while_nothing_ran_are_kept_and_told(home: Home) -> None:
    before = await home.everything()
    with contextlib.closing(sqlite3.connect(home.path)) as file, file:
        file.execute("INSERT INTO people (id, name, role, created_at) VALUES ('p_new', 'Eve', 'guest', 1780000000.0)")
    after = await home.everything()
    assert len(after["people"]) == len(before["people"]) + 1
    assert [trouble.kind for trouble in home.told] == ["replaced"]
    assert "Another program wrote into state.db while Hermes was not running" in home.told[0].text


async def test_what_sqlite_itself_copied_from_the_log_of_a_killed_process_is_no_damage(home: Home) -> None:
    database = await home.open()
    try:
        await database.write(lambda tx: tx.run("UPDATE people SET role = 'guest' WHERE id = 'p_1'"))
        left = home.folder.with_name("left")
        shutil.copytree(home.folder, left)
    finally:
        await database.close()
    killed = Home(left)
    with contextlib.closing(sqlite3.connect(killed.path)) as file:  # as when somebody looks into it
        assert file.execute("SELECT role FROM people WHERE id = 'p_1'").fetchone() == ("guest",)
    assert not killed.path.with_name("state.db-wal").exists()
    assert await killed.everything() == await home.everything()
    assert [trouble for trouble in killed.told if trouble.kind == "damage"] == []


async def test_a_damaged_map_is_made_anew_and_costs_nothing(home: Home) -> None:
    before = await home.everything()
    pages = home.path.with_name(home.path.name + SUFFIX)
    overwrite(pages, 200, b"\xa5" * 200)
    assert await home.everything() == before
    assert home.told == []
    overwrite(home.path, place_of(home.path, b"hello there"), b"j")
    await home.everything()
    assert home.told[-1].kind == "damage"


@pytest.mark.parametrize("has_map", [True, False], ids=["with its map", "without"])
async def test_a_damaged_file_of_an_older_release_goes_through_its_migrations(tmp_path: Path, has_map: bool) -> None:
    path, first = tmp_path / "state.db", tmp_path / "first"
    first.mkdir()
    shutil.copy(Path(migrations.__file__).parent / "0001_start.sql", first)
    (first / "0002_roles.sql").write_text("UPDATE people SET role = 'guest';\n")
    old = await open_database(path, migrations=first)
    await old.write(live)
    await old.close()
    (first / "0003_names.sql").write_text("UPDATE people SET name = upper(name);\n")
    overwrite(path, 0, bytes(PAGE))
    if not has_map:
        path.with_name(path.name + SUFFIX).unlink()
    told: list[Trouble] = []
    now = await open_database(path, migrations=first, on_trouble=told.append)
    try:
        assert await now.read(lambda tx: tx.value("SELECT count(*) FROM people WHERE name GLOB 'ANA *'")) == PEOPLE
        assert await now.read(lambda tx: tx.value("SELECT count(*) FROM people WHERE role = 'guest'")) < PEOPLE
    finally:
        await now.close()
    assert [trouble.kind for trouble in told] == ["damage"]


LANES = 100


def work(tx: Tx) -> None:
    now = time.time() - 3600
    for number in range(LANES):
        lane = f"agent:main:telegram:dm:{number}"
        tx.run("INSERT INTO lanes (key, seq, next_at) VALUES (:lane, 3, :at)", lane=lane, at=now + number)


def add_key(tx: Tx) -> None:
    tx.run(
        "INSERT INTO api_keys (name, hash, role, hint, created_at) VALUES ('phone', :hash, 'user', '…', :at)",
        hash="ab" * 32,
        at=time.time() - 3600,
    )


@pytest.mark.one_python
@pytest.mark.parametrize("kept", ["map and head", "head", "nothing"])
@pytest.mark.parametrize("version", OLDER)
async def test_a_damaged_file_of_every_older_schema_goes_through_its_migrations(
    tmp_path: Path, version: int, kept: str
) -> None:
    home = Home(tmp_path / "home")
    make_home(home.folder)
    old = await open_database(home.path, migrations=older_migrations(tmp_path / "older", version))
    await old.write(live)
    await old.write(work)
    if version > 1:
        await old.write(add_key)
    await old.close()
    overwrite(home.path, 0, bytes(PAGE))
    if kept != "map and head":
        home.forget_map()
    if kept == "nothing":
        home.path.with_name("state.db.head").unlink()
    now = await home.open()
    try:
        assert await now.read(migrate.version) == NEWEST
        assert await now.read(lambda tx: tx.value("SELECT COUNT(*) FROM lanes WHERE model = ''")) == LANES
        assert await now.read(lambda tx: tx.value("SELECT COUNT(*) FROM inbox")) == PEOPLE
        assert await now.read(lambda tx: tx.value("SELECT COUNT(*) FROM people WHERE language = ''")) == PEOPLE
        assert [key.id for key in await now.read(api_keys.listed)] == ["phone"] * (version > 1)
    finally:
        await now.close()
    assert [trouble.kind for trouble in home.told] == ["damage"]


async def test_a_report_says_when_the_lost_rows_were_written() -> None:
    at = 1_780_000_000.0
    day = losses.clock_time(at)
    report = Report("state.db", "why", at, "state.db.corrupt.1", 90)
    assert (
        str(report)
        == "state.db was damaged (why). Recovered all 90 rows. The damaged file is kept as state.db.corrupt.1."
    )
    report.losses = [Loss("outbox", 1, since=at, until=at), Loss("inbox", 9, until=at)]
    assert f"Recovered 90 of 100 rows; lost: 9 rows of inbox before {day} and 1 row of outbox of {day}." in str(report)
    report.losses = [Loss("turns", 0, is_exact=False, since=at)]
    assert f"Recovered 90 rows; lost: an unknown number of turns after {day}." in str(report)


async def test_a_checkpoint_keeps_the_map_of_pages_current(store: Store) -> None:
    async with store.open() as database:
        for number in range(250):
            await database.write(put, f"k{number}")
        await database.write(fill, 3000, "more")
        assert await database.read(count) == 3250
    async with store.open() as database:
        assert await database.read(count) == 3250
    assert store.troubles == []


async def test_a_map_left_by_a_store_that_was_deleted_is_not_that_of_the_next(home: Home) -> None:
    for entry in home.folder.iterdir():
        if entry.is_file() and not entry.name.endswith(SUFFIX):
            entry.unlink()
    database = await home.open()
    await database.write(live)
    await database.close()
    assert len((await home.everything())["people"]) == PEOPLE
    assert home.told == []


async def test_a_large_file_is_compared_only_if_it_changed_since_it_was_closed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.store.sqlite.connection.COMPARED_BYTES", 0)
    looked = watch_checks(monkeypatch)
    before = await home.everything()
    assert "compared" not in looked
    overwrite(home.path, place_of(home.path, b"hello there"), b"j")
    after = await home.everything()
    assert "compared" in looked
    assert set(after["inbox"]) < set(before["inbox"])
    assert home.told[-1].kind == "damage"


async def test_a_column_that_another_program_added_does_not_stop_a_recovery(home: Home) -> None:
    with contextlib.closing(sqlite3.connect(home.path)) as file, file:
        file.execute("ALTER TABLE people ADD COLUMN shoe_size TEXT")
    before = await home.everything()
    overwrite(home.path, (home.root_of("cursors") - 1) * PAGE, b"\xa5" * PAGE)
    after = await home.everything()
    assert home.told[-1].kind == "damage"
    assert [row[:5] for row in after["people"]] == [row[:5] for row in before["people"]]


async def test_a_recovery_that_was_killed_at_its_last_step_is_told_at_the_next_start(home: Home) -> None:
    overwrite(home.path, place_of(home.path, b"hello there"), b"j")
    recovery.rebuild(home.path, migrate.load("hermes.store.migrations"), 1_780_000_000.0, reason="why")
    home.path.rename(home.path.with_name("state.db.rebuilt"))
    await home.everything()
    assert [trouble.text.partition(";")[0] for trouble in home.told if trouble.kind == "damage"] == [
        f"state.db was damaged (why). Recovered {home.report.rows} of {2 * PEOPLE} rows"
    ]
    await home.everything()
    assert len(losses.read(home.folder)) == 1


@pytest.mark.parametrize("has_map", [True, False], ids=["with its map", "without"])
async def test_a_schema_that_is_no_text_any_more_is_damage(home: Home, has_map: bool) -> None:
    before = await home.everything()
    if not has_map:
        home.forget_map()
    overwrite(home.path, place_of(home.path, b"CREATE TABLE people"), b"CREATE TABLE \x9d\x9d\x9d(")
    assert (await home.everything())["people"] == before["people"]
    assert home.told[-1].kind == "damage"
