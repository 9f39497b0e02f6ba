"""Homes of hermes-agent and OpenClaw come over: counts equal, the source untouched, a second time nothing."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.store.servers import PostgresForTests
from tests.e2e.terminal import ROOT, Terminal
from tests.fixtures.homes import snapshot, unpack_used_home
from tests.fixtures.openclaw import MADE, make_openclaw_home, unpack_openclaw_home

PARTS = ("sessions", "people", "jobs", "tasks", "skills")
USED = {"sessions": 3, "people": 3, "jobs": 3, "tasks": 3, "skills": 1}
CACHED = ROOT / ".venv" / "hermes-agent"
INSTALL_SECONDS = 600


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(tmp_path) as terminal:
        yield terminal


def came(answer: Any, fate: str = "came") -> dict[str, int]:
    return {part: answer["parts"][part][fate] for part in PARTS}


def test_a_home_of_the_real_hermes_agent_comes_over_whole(terminal: Terminal, tmp_path: Path) -> None:
    old = unpack_used_home(tmp_path / "old")
    before = snapshot(old)
    dry = terminal.told("import", "hermes-agent", str(old), "--dry-run")
    assert came(dry) == USED
    assert not terminal.home.exists(), "a dry run makes not even the home"
    done = terminal.told("import", "hermes-agent", str(old))
    assert came(done) == USED
    assert done["lines"] == 8
    again = terminal.told("import", "hermes-agent", str(old))
    assert came(again) == dict.fromkeys(PARTS, 0)
    assert came(again, "same") == USED
    ours = snapshot(terminal.home)
    dry = terminal.told("import", "hermes-agent", str(old), "--dry-run")
    assert came(dry, "same") == USED
    assert snapshot(terminal.home) == ours, "a dry run changes nothing"
    assert snapshot(old) == before, "the source is byte for byte the same, times and modes too"

    sessions = {one["key"]: one for one in terminal.told("sessions", "list")}
    uptime = sessions["agent:main:telegram:dm:4242"]
    assert (uptime["title"], uptime["seq"], uptime["ended_at"]) == ("Server uptime", 4, None)
    lines = terminal.told("sessions", "show", uptime["id"])["lines"]
    assert [line["message"]["role"] for line in lines] == ["user", "assistant", "tool", "assistant"]
    assert lines[-1]["message"]["text"] == "Twelve days. 十二天。"
    jobs = {one["name"]: one for one in terminal.told("cron", "list")}
    assert jobs["morning news"]["deliver"] == "telegram:4242", "origin is the chat where the job was made"
    assert jobs["plants"]["state"] == "paused"
    people = {one["id"]: one["role"] for one in terminal.told("people", "list")}
    assert people["p_telegram_5150"] == "user", "nobody becomes the owner"
    tasks = {one["title"]: one for one in terminal.told("kanban", "list")}
    assert tasks["Write the report"]["state"] == "ready"
    assert tasks["Send the report"]["state"] == "todo"
    env = (terminal.home / ".env").read_text()
    assert "TELEGRAM_BOT_TOKEN=1234567:" in env
    assert "HONCHO" not in env
    assert (terminal.home / "SOUL.md").read_text().startswith("You are Heron")
    assert (terminal.home / ".env").stat().st_mode & 0o077 == 0
    assert terminal.here("config", "check").returncode == 0


def test_a_running_gateway_uses_what_came_at_once(terminal: Terminal, tmp_path: Path) -> None:
    old = unpack_used_home(tmp_path / "old")
    (old / ".env").unlink()  # no bot: nothing is to be reached from here
    (old / "config.yaml").write_text("agent:\n  max_turns: 40\n")
    terminal.start_gateway()
    assert came(terminal.told("import", "hermes-agent", str(old), "--dry-run")) == USED
    assert terminal.told("sessions", "list") == []
    assert came(terminal.told("import", "hermes-agent", str(old))) == USED
    assert len(terminal.told("sessions", "list")) == 3
    assert {one["user"] for one in terminal.told("pairing", "list")["decided"]} == {"5150", "99", "OPENID1"}
    assert came(terminal.told("import", "hermes-agent", str(old)), "same") == USED


def test_what_is_set_here_stays(terminal: Terminal, tmp_path: Path) -> None:
    old = unpack_used_home(tmp_path / "old")
    assert terminal.here("config", "set", "agent.max_iterations", "7").returncode == 0
    (terminal.home / "SOUL.md").write_text("You are Wren.\n")
    answer = terminal.told("import", "hermes-agent", str(old))
    assert terminal.told("config", "get", "agent.max_iterations")["value"] == "7"
    assert (terminal.home / "SOUL.md").read_text() == "You are Wren.\n"
    told = {(one["part"], one["name"]) for one in answer["notes"]}
    assert {("settings", "agent.max_iterations"), ("files", "SOUL.md")} <= told


def test_an_import_on_postgresql_is_the_same(tmp_path: Path, postgres: PostgresForTests) -> None:
    old = unpack_used_home(tmp_path / "old")
    with postgres.schema() as url, Terminal(tmp_path, HERMES_DATABASE_URL=url) as terminal:
        assert came(terminal.told("import", "hermes-agent", str(old), "--dry-run")) == USED
        assert came(terminal.told("import", "hermes-agent", str(old))) == USED
        assert came(terminal.told("import", "hermes-agent", str(old)), "same") == USED
        assert len(terminal.told("sessions", "list")) == 3


@pytest.mark.parametrize("make", [make_openclaw_home, unpack_openclaw_home])
def test_a_home_of_openclaw_comes_over_from_its_files_and_from_its_databases(
    terminal: Terminal, tmp_path: Path, make: Any
) -> None:
    claw = make(tmp_path / "claw")
    before = snapshot(claw)
    expected = {**{part: MADE.get(part, 0) for part in PARTS}}
    assert came(terminal.told("import", "openclaw", str(claw), "--dry-run")) == expected
    assert not terminal.home.exists()
    done = terminal.told("import", "openclaw", str(claw))
    assert came(done) == expected
    assert done["lines"] == MADE["lines"]
    assert came(terminal.told("import", "openclaw", str(claw)), "same") == expected
    assert snapshot(claw) == before
    keys = {one["key"]: one["seq"] for one in terminal.told("sessions", "list")}
    assert keys == {"agent:main:telegram:dm:4242": 4, "agent:main:telegram:group:-1001234:t=7": 2}
    assert "TELEGRAM_BOT_TOKEN=7654321:" in (terminal.home / ".env").read_text()
    assert terminal.told("config", "get", "model.default")["value"] == "claude-sonnet-4-6"
    jobs = {one["name"]: (one["deliver"], one["state"]) for one in terminal.told("cron", "list")}
    assert jobs["morning"] == ("telegram:4242", "active")
    assert jobs["tide"][1] == "paused"


def test_a_home_of_our_own_or_of_nobody_is_refused_in_a_sentence(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for words, said in (
        (("hermes-agent", str(tmp_path / "gone")), "There is no folder"),
        (("hermes-agent", str(tmp_path / "empty")), "is not a home of hermes-agent"),
        (("openclaw", str(tmp_path / "empty")), "is not a home of openclaw"),
    ):
        done = terminal.here("import", *words)
        assert done.returncode == 1
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_a_foreign_home_offers_the_import_and_exits_with_78(terminal: Terminal) -> None:
    unpack_used_home(terminal.home)
    before = snapshot(terminal.home)
    done = terminal.here("gateway", "start")
    assert done.returncode == 78
    assert f"import hermes-agent {terminal.home} --dry-run" in done.stderr
    assert terminal.here("import", "hermes-agent", str(terminal.home)).returncode == 78
    assert snapshot(terminal.home) == before


@pytest.mark.skipif(
    not (CACHED / "bin" / "python").exists() and not os.environ.get("HERMES_TEST_HERMES_AGENT"),
    reason="installs the package hermes-agent (100 MB): HERMES_TEST_HERMES_AGENT=1",
)
@pytest.mark.timeout(INSTALL_SECONDS + 120)
def test_a_home_that_the_installed_hermes_agent_makes_now_comes_over(terminal: Terminal, tmp_path: Path) -> None:
    python = CACHED / "bin" / "python"
    if not python.exists():
        venv.create(CACHED, with_pip=True)
        command = [str(python), "-m", "pip", "install", "-q", "hermes-agent==0.19.0"]
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
    old = tmp_path / "old"
    made = subprocess.run(
        [str(python), str(ROOT / "tests" / "fixtures" / "make_hermes_agent_home.py")],
        env={"HOME": str(tmp_path), "HERMES_HOME": str(old), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    counts = json.loads(made.stdout.splitlines()[-1])
    before = snapshot(old)
    done = terminal.told("import", "hermes-agent", str(old))
    assert came(done) == {
        "sessions": counts["sessions"],
        "people": counts["pairings"],
        "jobs": counts["jobs"],
        "tasks": counts["tasks"],
        "skills": counts["skills"],
    }
    assert snapshot(old) == before
