"""Damaged and hostile homes: each odd file is a line of the report, the rest comes, and nothing leaves the home."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.config import load
from hermes.hosting.importers import hermes_agent_home, openclaw_home
from hermes.hosting.importers.found import FoundHome
from hermes.hosting.importers.report import ImportReport
from hermes.hosting.importers.source import MAX_FILE_BYTES, SourceHome, UnreadableError
from hermes.hosting.importers.write_files import import_files, import_skills
from hermes.hosting.importers.write_settings import import_settings
from hermes.services.adapters.registry import find_platforms
from tests.fixtures.homes import snapshot, unpack_used_home

SKILL = "---\nname: {name}\ndescription: Something.\n---\n\nDo it.\n"


@pytest.fixture
def source(tmp_path: Path) -> SourceHome:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return SourceHome(unpack_used_home(tmp_path / "old"), scratch)


def read(source: SourceHome) -> tuple[FoundHome, list[str]]:
    found = hermes_agent_home.read_home(source)
    sessions = [session.id for session in found.sessions()]
    return found, sessions


def reasons(found: FoundHome) -> str:
    return "\n".join(f"{left.part} {left.name}: {left.reason}" for left in found.left_out)


def test_reading_changes_nothing_and_leaves_no_copy_behind(source: SourceHome, tmp_path: Path) -> None:
    before = snapshot(source.path)
    found, sessions = read(source)
    assert (len(sessions), len(found.pairings), len(found.jobs), len(found.tasks)) == (3, 3, 3, 3)
    assert snapshot(source.path) == before
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_only_the_journal_of_a_database_holds_is_read(source: SourceHome) -> None:
    connection = sqlite3.connect(source.path / "state.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("INSERT INTO sessions (id, source, started_at) VALUES ('late', 'cli', 1782896400)")
    connection.execute(
        "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('late', 'user', 'hi', 1782896400)"
    )
    before = {name: (source.path / name).read_bytes() for name in ("state.db", "state.db-wal")}
    assert before["state.db-wal"]
    assert len(read(source)[1]) == 4
    assert {name: (source.path / name).read_bytes() for name in before} == before
    connection.close()


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda home: (home / "state.db").write_bytes(b"not a database" * 100), "sessions state.db: it is damaged"),
        (lambda home: _truncate(home / "state.db"), "sessions "),
        (lambda home: (home / "kanban.db").write_bytes(b""), ""),
        (lambda home: (home / "cron" / "jobs.json").write_text("[" * 100_000), "jobs cron/jobs.json: it is not JSON"),
        (lambda home: (home / "cron" / "jobs.json").write_text('{"jobs": [7, {"id": 1}]}'), "it is not a job"),
        (lambda home: (home / "config.yaml").write_text("a: [\n b: }"), "settings config.yaml: "),
        (lambda home: (home / "config.yaml").write_bytes(b"\xff" * 2_000_000), "settings config.yaml: "),
        (lambda home: _link(home / ".env", "/etc/passwd"), ""),
        (lambda home: _link(home / "state.db", "/etc/passwd"), ""),
        (lambda home: _link(home / "skills" / "devops" / "evil", "/etc"), "skills evil: it is a link"),
        (lambda home: os.mkfifo(_gone(home / "SOUL.md")), ""),
        (lambda home: (_pairing(home)).write_text('["5150"]'), "people telegram-approved.json: it holds no list"),
        (lambda home: (_pairing(home)).write_text('{"5150": 7, "": {}, "\\u0000": null}'), ""),
        (lambda home: _huge(home / "cron" / "jobs.json"), "jobs cron/jobs.json: it is too large"),
        (lambda home: (home / "SOUL.md").write_bytes(b"\xff\xfe\x00 bytes"), ""),
    ],
)  # fmt: skip
def test_a_damaged_part_is_told_and_the_rest_comes(
    source: SourceHome, damage: Callable[[Path], object], said: str
) -> None:
    damage(source.path)
    found, sessions = read(source)
    assert said in reasons(found)
    parts = (sessions, found.pairings, found.jobs, found.tasks, found.skills, found.settings.entries)
    assert sum(map(bool, parts)) >= 5, "one bad file takes nothing else with it"


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20_000])


def _gone(path: Path) -> Path:
    path.unlink()
    return path


def _link(path: Path, to: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def _huge(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(MAX_FILE_BYTES + 1)


def _pairing(home: Path) -> Path:
    return home / "platforms" / "pairing" / "telegram-approved.json"


def test_a_view_in_place_of_a_table_is_not_run(source: SourceHome) -> None:
    connection = sqlite3.connect(source.path / "state.db")
    connection.executescript(
        """
        PRAGMA writable_schema = 0; DROP TABLE messages;
        CREATE VIEW messages AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
            SELECT i AS id, 'x' AS session_id, 'user' AS role, 'y' AS content, i AS timestamp FROM n;
        """
    )
    connection.close()
    assert read(source)[1] == []


def test_rows_of_odd_types_are_left_out_or_made_plain(source: SourceHome) -> None:
    connection = sqlite3.connect(source.path / "state.db", isolation_level=None)
    connection.execute("UPDATE messages SET content = x'fffe00', timestamp = 'soon', tool_calls = '[[[' WHERE id = 1")
    connection.execute("UPDATE sessions SET origin_json = '{\"platform\": 7}', started_at = -1e300")
    connection.execute("UPDATE sessions SET title = x'00' WHERE source = 'discord'")
    connection.execute("UPDATE messages SET role = 'narrator' WHERE id = 2")
    connection.close()
    found, sessions = read(source)
    assert len(sessions) == 3
    assert "says nothing; left out" in reasons(found)


def test_names_that_lead_elsewhere_are_refused(source: SourceHome) -> None:
    for name in ("..", "../old", "a/b", "", "a\x00b"):
        with pytest.raises(UnreadableError):
            source.read(name)
    (source.path.parent / "outside.json").write_text("{}")
    (source.path / "inside").symlink_to(source.path.parent)
    with pytest.raises(UnreadableError, match="link"):
        source.read("inside", "outside.json")


@pytest.mark.parametrize("name", ["../../evil", "/etc/evil", "..", "a\\b", "é" * 80, "new"])
def test_a_skill_whose_name_leads_elsewhere_is_not_installed(tmp_path: Path, source: SourceHome, name: str) -> None:
    folder = source.path / "skills" / "tricks" / "one"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=json.dumps(name)))
    (folder / "out").symlink_to("/etc/passwd")
    ours, report = tmp_path / "ours" / "skills", ImportReport("hermes-agent", "")
    found, _ = read(source)
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(ours)}
    import_skills(found, ours, {"new"}, report, now=1.0, is_dry=False)
    assert report.counts["skills"]["left_out"] >= 1
    assert report.counts["skills"]["came"] == 1, "the good one comes"
    assert {path for path in tmp_path.rglob("*") if not path.is_relative_to(ours)} - before <= {ours.parent}
    assert not list(ours.rglob("evil*"))


def test_a_home_makes_nobody_the_owner_and_names_no_program_to_run(tmp_path: Path, source: SourceHome) -> None:
    (source.path / "config.yaml").write_text(
        "owners: ['telegram:666']\nagent:\n  workspace: /\n  max_turns: 40\ntts:\n  command: sh -c evil\n"
        "dashboard:\n  trusted_proxies: 0.0.0.0/0\nweb:\n  allow_private_hosts: 169.254.169.254\n"
    )
    (source.path / ".env").write_text("GATEWAY_OWNERS=telegram:666\nSTT_COMMAND=sh -c evil\n")
    home = tmp_path / "ours"
    home.mkdir()
    loaded = load(home, {}, home, tuple(find_platforms().manifests.values()))
    report = ImportReport("hermes-agent", str(source.path), is_dry=False)
    import_settings(hermes_agent_home.read_home(source), loaded, report, is_dry=False)
    written = "".join(path.read_text() for path in home.iterdir())
    assert "max_iterations: 40" in written
    assert not [word for word in ("666", "evil", "workspace", "0.0.0.0", "169.254") if word in written]
    assert {"owners", "agent.workspace", "tts.command", "STT_COMMAND"} <= {note.name for note in report.notes}


def test_texts_are_not_written_through_a_link(tmp_path: Path, source: SourceHome) -> None:
    home = tmp_path / "ours"
    home.mkdir()
    (home / "SOUL.md").symlink_to(tmp_path / "elsewhere.md")
    found, _ = read(source)
    report = ImportReport("hermes-agent", "")
    import_files(found, home, report, is_dry=False)
    assert not (tmp_path / "elsewhere.md").exists()
    assert report.counts["files"] == {"kept": 1, "came": 2}


@pytest.mark.parametrize(
    "config",
    [
        '{"channels": 7, "agents": []}',
        "{",
        "[1,2]",
        '{"a": ' * 5000,
        "// only\n",
        "{channels: {telegram: {allowFrom: 4}}}",
    ],
)
def test_an_odd_config_of_openclaw_is_no_end(tmp_path: Path, config: str) -> None:
    home = tmp_path / "claw"
    (home / "cron").mkdir(parents=True)
    (home / "openclaw.json").write_text(config)
    (home / "cron" / "jobs.json").write_text('{"jobs": [{"id": "1", "schedule": 5, "payload": []}, null]}')
    found = openclaw_home.read_home(SourceHome(home, tmp_path))
    assert found.jobs == []
    assert list(found.sessions()) == []
