"""A restore happens whole or not at all, keeps what was there, and can be taken back."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.errors import GatewayError
from hermes.store.backup import restore, shelf
from hermes.store.backup.create import BackupRequest, copy_store, create
from hermes.store.backup.shelf import DAY_SECONDS, ShelfEntry, choose_old
from tests.fakes.started_home import copy_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    copy_home(home)
    note(home, "old")
    return home


def note(home: Path, word: str) -> None:
    """Write a word into every kind of thing that a backup holds."""
    (home / "config.yaml").write_text(f"# {word}\n")
    (home / "SOUL.md").write_text(word)
    (home / "skills/mine").mkdir(parents=True, exist_ok=True)
    (home / "skills/mine/SKILL.md").write_text(word)
    with sqlite3.connect(home / "state.db") as connection:
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('word', ?)", [word])
    connection.close()


def words(home: Path) -> set[str]:
    """Every word that the home's things hold: one, unless old and new are mixed."""
    with sqlite3.connect(home / "state.db") as connection:
        found = {connection.execute("SELECT value FROM meta WHERE key = 'word'").fetchone()[0]}
    connection.close()
    found.add((home / "config.yaml").read_text()[2:].strip())
    return found | {(home / name).read_text() for name in ("SOUL.md", "skills/mine/SKILL.md")}


def test_a_sign_in_that_was_ended_does_not_come_back_with_a_restore(home: Path) -> None:
    def run(sql: str) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(home / "state.db", isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    columns = "id, hash, key_hash, address, agent, created_at, seen_at, expires_at"
    run(f"INSERT INTO dashboard_sign_ins ({columns}) VALUES ('si_1', 'stolen', '', '', '', 1, 1, 9e12)")
    run("INSERT INTO dashboard_codes (hash, created_at, expires_at) VALUES ('unused', 1, 9e12)")
    made = create(BackupRequest(home, "1.0")).path
    run("DELETE FROM dashboard_sign_ins")
    restore.decide(home, restore.prepare(home, made).names, 1.0)
    restore.finish(home)
    assert run("SELECT id FROM dashboard_sign_ins") == []
    assert run("SELECT hash FROM dashboard_codes") == []


def test_restore_brings_everything_back_and_undo_takes_it_back(home: Path) -> None:
    made = create(BackupRequest(home, "1.0")).path
    note(home, "new")
    (home / "MEMORY.md").write_text("made since")
    restore.decide(home, restore.prepare(home, made).names, 1.0)
    assert words(home) == {"new"}, "a plan alone changes nothing"
    aside = restore.finish(home)
    assert aside is not None
    assert words(home) == {"old"}
    assert not (home / "MEMORY.md").exists()
    assert (aside / "MEMORY.md").read_text() == "made since"
    restore.undo(home, 2.0)
    restore.finish(home)
    assert words(home) == {"new"}
    assert (home / "MEMORY.md").exists()
    restore.undo(home, 3.0)
    restore.finish(home)
    assert words(home) == {"old"}


def test_restore_never_follows_a_link_out_of_the_home(home: Path, tmp_path: Path) -> None:
    made = create(BackupRequest(home, "1.0")).path
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("mine")
    (home / "skills").rename(tmp_path / "gone")
    (home / "skills").symlink_to(outside)
    (home / "config.yaml").unlink()
    (home / "config.yaml").symlink_to(outside / "keep")
    (home / ".restore").symlink_to(outside)
    restore.decide(home, restore.prepare(home, made).names, 1.0)
    restore.finish(home)
    assert [path.name for path in outside.iterdir()] == ["keep"]
    assert (outside / "keep").read_text() == "mine"
    assert words(home) == {"old"}
    assert not (home / "skills").is_symlink()


def test_restore_works_where_files_cannot_be_renamed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create(BackupRequest(home, "1.0")).path
    note(home, "new")
    restore.decide(home, restore.prepare(home, made).names, 1.0)
    rename = os.rename

    def refuse_other_folders(source: Path, target: Path) -> None:
        """As if every folder were a disk of its own."""
        if Path(source).parent != Path(target).parent:
            raise OSError(errno.EXDEV, "another disk")
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse_other_folders)
    aside = restore.finish(home)
    assert aside is not None
    assert words(home) == {"old"}
    assert (aside / "SOUL.md").read_text() == "new"
    assert not (home / ".restore").exists()


KILLED = """
import os, sys
from pathlib import Path
from hermes.store.backup import restore
home, count = Path(sys.argv[1]), int(sys.argv[2])
renames = 0
def counted(event, args):
    global renames
    if event == "os.rename":
        renames += 1
        if renames > count:
            os._exit(9)
sys.addaudithook(counted)
restore.finish(home)
"""


def test_restore_that_is_killed_between_any_two_renames_is_finished_by_the_next_start(home: Path) -> None:
    made = create(BackupRequest(home, "1.0")).path
    kills = 0
    for count in range(0, 14, 3):
        note(home, f"new{count}")
        restore.decide(home, restore.prepare(home, made).names, float(count))
        died = subprocess.run([sys.executable, "-c", KILLED, str(home), str(count)], check=False, timeout=60)
        kills += died.returncode == 9
        restore.finish(home)
        assert words(home) == {"old"}, f"after {count} renames"
        assert not (home / ".restore").exists()
    assert kills >= 2


def test_restore_that_was_not_decided_leaves_nothing(home: Path) -> None:
    restore.prepare(home, create(BackupRequest(home, "1.0")).path)
    note(home, "new")
    assert restore.finish(home) is None
    assert words(home) == {"new"}
    assert not (home / ".restore").exists()
    with pytest.raises(GatewayError, match="nothing to take back"):
        restore.undo(home, 1.0)


def test_deliveries_that_waited_at_the_backup_are_sent_as_repetitions(home: Path) -> None:
    with sqlite3.connect(home / "state.db") as connection:
        columns = {
            name: (kind, has_default, key)
            for _, name, kind, _, has_default, key in connection.execute("PRAGMA table_info(outbox)")
        }
        row = {
            name: "" if kind == "TEXT" else 0 for name, (kind, has_default, _) in columns.items() if has_default is None
        }
        row |= {"id": "ob_1", "state": "ready"}
        connection.execute(
            f"INSERT INTO outbox ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values())
        )
    connection.close()
    restore.decide(home, restore.prepare(home, create(BackupRequest(home, "1.0")).path).names, 1.0)
    restore.finish(home)
    with sqlite3.connect(home / "state.db") as connection:
        assert connection.execute("SELECT state FROM outbox").fetchall() == [("unknown",)]
    connection.close()


def test_copy_of_a_store_is_one_moment_while_another_connection_writes(tmp_path: Path) -> None:
    source = tmp_path / "busy.db"
    writer = sqlite3.connect(source, isolation_level=None)
    writer.execute("PRAGMA journal_mode = wal")
    writer.execute("CREATE TABLE pairs (a, b)")
    for number in range(2000):
        writer.execute("INSERT INTO pairs VALUES (?, randomblob(2000))", [number])
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(source)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "writing\n"
    copy_store(source, tmp_path / "copy.db")
    said, _ = child.communicate("stop\n", timeout=60)
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        # Each transaction of the writer adds one to both: a copy of two moments would differ.
        first, second = copy.execute(
            "SELECT (SELECT n FROM counts WHERE k = 1), (SELECT n FROM counts WHERE k = 2)"
        ).fetchone()
        assert copy.execute("SELECT count(*) FROM pairs").fetchone()[0] == 2000
    copy.close()
    writer.close()
    assert first == second
    assert int(said) > first, "it went on writing"


WRITER = """
import select, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("CREATE TABLE counts (k, n, pad)")
db.execute("INSERT INTO counts VALUES (1, 0, randomblob(9000)), (2, 0, randomblob(9000))")
count = 0
print("writing", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    db.execute("BEGIN IMMEDIATE")
    db.execute("UPDATE counts SET n = n + 1 WHERE k = 1")
    db.execute("UPDATE counts SET n = n + 1 WHERE k = 2")
    db.execute("COMMIT")
    count += 1
print(count)
"""


def entry(age_days: float, reason: str = "hourly", size: int = 100) -> ShelfEntry:
    made_at = 100 * DAY_SECONDS - age_days * DAY_SECONDS
    return ShelfEntry(Path(f"{reason}-{age_days}"), size, made_at, reason)


def test_automatic_backups_go_by_age_and_size_and_those_of_a_person_stay() -> None:
    now = 100 * DAY_SECONDS
    found = [entry(0.01), entry(0.5), entry(0.9), entry(2.1), entry(2.2), entry(3.5, "manual"), entry(5.0), entry(20.0)]
    gone = choose_old(found, now, keep_days=14, keep_bytes=10_000)
    assert [round((now - each.made_at) / DAY_SECONDS, 2) for each in gone] == [2.2, 20.0]
    assert [each.reason for each in choose_old(found, now, keep_days=0.001, keep_bytes=10**9)] == ["hourly"] * 6
    small = choose_old(found, now, keep_days=14, keep_bytes=200)
    assert entry(0.01) not in small
    assert len(small) == 5


def test_backup_without_room_is_refused_before_anything_is_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs(home)
    usage = type("usage", (), {"free": 1000, "total": full.f_blocks, "used": 0})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(GatewayError, match="MB left"):
        create(BackupRequest(home, "1.0"))
    assert shelf.entries(shelf.default_folder(home)) == []
