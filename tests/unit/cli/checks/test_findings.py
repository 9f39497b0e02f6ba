"""Checks judge facts: every hint and every trouble has a reason and a command."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.checks.audit import audit
from hermes.cli.checks.finding import Finding
from hermes.cli.checks.growth import DiskUse, growth_check
from hermes.cli.checks.home import clock_check, leftovers
from hermes.cli.checks.jobs import jobs_check
from hermes.cli.checks.model import live_check, model_check
from hermes.cli.checks.network import clock_difference, network_check
from hermes.cli.checks.people import unanswered_check
from hermes.cli.checks.ports import port_holder, ports_check
from hermes.cli.checks.stores import Store, StoreFile, look_at_file, side_stores, stores_check
from hermes.cli.support.connectivity import Reached, clock_ahead
from hermes.cli.support.home import load_config
from hermes.hosting.status import Facts
from hermes.store.home import make_home
from hermes.store.open import open_database

NOW = 1_800_000_000.0
JOB = {"id": "job_1", "name": "news", "state": "active", "reason": "", "failures": 0, "undelivered": 0}


def work(**more: Any) -> dict[str, Any]:
    return {"now": NOW, "messages": [], "answers": [], "approvals": 0, "jobs": [], **more}


def only(found: list[Finding]) -> Finding:
    (finding,) = found
    return finding


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    make_home(home)
    return home


# Who waits, and jobs


def test_a_message_that_nobody_works_on_is_named_with_its_chat_and_a_running_turn_is_not() -> None:
    old = {"lane": "agent:main:telegram:dm:7", "count": 2, "since": NOW - 1200, "turn": ""}
    found = only(unanswered_check(work(messages=[old]), "hermes", is_running=True))
    assert (found.level, found.command) == ("hint", "hermes trace")
    assert "2 messages of agent:main:telegram:dm:7 since 20 min" in found.text
    asking = {**old, "turn": "waiting"}
    assert only(unanswered_check(work(messages=[asking]), "hermes", is_running=True)).level == "good"
    fresh = {**old, "since": NOW - 5}
    assert only(unanswered_check(work(messages=[fresh]), "hermes", is_running=True)).level == "good"
    assert only(unanswered_check(work(messages=[fresh]), "hermes", is_running=False)).command == "hermes gateway run"


def test_an_answer_that_is_not_sent_is_named_with_its_reason() -> None:
    late = {"target": "qq:1", "count": 1, "since": NOW - 3600, "reason": "QQ did not answer."}
    found = only(unanswered_check(work(answers=[late]), "hermes", is_running=True))
    assert found.text == "1 answer to qq:1 since 1 h (QQ did not answer) → hermes gateway status"
    assert unanswered_check(None, "hermes", is_running=True) == []


@pytest.mark.parametrize(
    "change, words",
    [
        ({"failures": 3}, "news failed 3 times in a row → hermes cron history job_1"),
        ({"undelivered": 1}, "its answer could not be delivered → hermes cron history job_1"),
        (
            {"state": "paused", "reason": "It failed too often."},
            "paused: It failed too often → hermes cron resume job_1",
        ),
        ({"next_at": NOW - 3600}, "was due 1 h ago and did not run → hermes cron status"),
    ],
)
def test_a_job_that_does_not_do_its_work_is_named(change: dict[str, Any], words: str) -> None:
    found = only(jobs_check(work(jobs=[{**JOB, "next_at": None, **change}]), "hermes", is_running=True))
    assert (found.level, words in found.text, bool(found.why)) == ("hint", True, True)


def test_jobs_that_do_their_work_are_counted_and_none_are_not_mentioned() -> None:
    found = only(jobs_check(work(jobs=[{**JOB, "next_at": NOW + 60}]), "hermes", is_running=True))
    assert (found.level, found.text) == ("good", "1 job, the next in 1 min")
    assert jobs_check(work(), "hermes", is_running=True) == []


# The clock, the disk, the ports


@pytest.mark.parametrize("ahead, level", [(0.0, "good"), (90.0, "good"), (600.0, "trouble"), (-600.0, "trouble")])
def test_a_clock_that_differs_from_the_servers_is_trouble(home: Path, ahead: float, level: str) -> None:
    found = clock_check(home, ahead, time.time())
    assert (found.level, found.command) == (level, "timedatectl set-ntp true" if level == "trouble" else "")


def test_a_clock_that_was_set_back_is_known_by_the_files(home: Path) -> None:
    (home / ".env").write_text("")
    assert clock_check(home, None, time.time() - 86400).level == "trouble"


def test_the_difference_of_the_clock_is_read_from_the_answers() -> None:
    date = "Mon, 16 Nov 2026 03:00:00 GMT"
    assert clock_ahead(date, 1794798000.0 + 5) == 5
    assert (clock_ahead("", NOW), clock_ahead("yesterday", NOW)) == (None, None)
    reached = {str(n): Reached("h", "", clock_ahead=ahead) for n, ahead in enumerate((None, 1.0, 900.0, 2.0))}
    assert clock_difference(reached) == 2.0


def test_a_disk_that_gets_full_is_a_hint_with_what_takes_the_room() -> None:
    parts = {"logs": 800_000_000, "state.db": 300_000_000, ".env": 10}
    assert growth_check(DiskUse(50_000_000_000, 100_000_000_000, parts), "hermes").level == "good"
    found = growth_check(DiskUse(1_000_000_000, 100_000_000_000, parts), "hermes")
    assert (found.level, "logs 0.8 GB" in found.text or "logs 800 MB" in found.text) == ("hint", True)


def test_a_disk_that_will_be_full_soon_is_a_hint_and_what_was_installed_does_not_count() -> None:
    disk = 100_000_000_000
    fast = DiskUse(8_000_000_000, disk, {"state.db": 10_000_000_000}, days=10.0)
    found = growth_check(fast, "hermes")
    assert (found.level, found.text.startswith("the disk is full in 8 days at this pace")) == ("hint", True)
    assert found.command == "keep less: hermes config set retention.days 30"
    assert growth_check(DiskUse(8_000_000_000, disk, {"models": 10_000_000_000}, days=10.0), "hermes").level == "good"
    assert growth_check(DiskUse(8_000_000_000, disk, {"state.db": 10_000_000_000}, days=0.2), "hermes").level == "good"


def test_a_port_that_another_program_holds_is_named_with_its_process(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (home / ".env").write_text(f"API_SERVER_PORT={port}\n")
        found = only(ports_check(load_config(home).config.api, Facts(0.0, 0.0)))
        assert (found.level, f"config set api.port {port + 1}" in found.command) == ("trouble", True)
        assert only(ports_check(load_config(home).config.api, Facts(0.0, 0.0, is_held=True))).level == "good"
    assert port_holder("127.0.0.1", port) is None


# Addresses that changed, and live calls


def test_an_address_that_moved_is_named_with_the_setting(home: Path) -> None:
    (home / ".env").write_text("OPENAI_API_KEY=sk-0123456789abcx7Q\n")
    moved = Reached(
        "api.example", "https://api.example/v1/models", status=308, moved_to="https://new.example/v1/models"
    )
    found = model_check(home, load_config(home), moved, "hermes")
    assert (found.level, found.command) == ("trouble", "correct providers.openai.base_url")
    assert "to https://new.example/v1/models" in found.text
    found = network_check({"telegram@main base_url": moved})
    assert (found.level, found.command) == ("hint", "correct platforms.telegram.base_url")
    asked = Reached("api.telegram.org", "https://api.telegram.org/", status=302, moved_to="https://core.telegram.org/")
    assert network_check({"telegram@main base_url": asked}).level == "good", "Telegram sends everybody to its docs"


def test_a_live_call_that_fails_comes_first_with_its_cure() -> None:
    good = {"ok": True, "provider": "a", "model": "m", "seconds": 0.4}
    bad = {"ok": False, "provider": "b", "model": "n", "failed": "quota", "text": "No credit.", "advice": "Top up at b"}
    found = live_check([good, bad])
    assert (found.level, found.text) == ("hint", "b / n: the quota. No credit. → Top up at b")
    assert live_check([bad, good]).level == "trouble"
    assert live_check([good]).text == "a / m answered a test call in 0.4 s"


# The stores


def make_store(path: Path, steps: str) -> None:
    async def make() -> None:
        db = await open_database(path, migrations=steps)
        await db.close()

    asyncio.run(make())


def test_a_store_is_looked_at_without_a_trace_and_its_fault_is_named(home: Path) -> None:
    path, steps = home / "kanban.db", side_stores()["kanban.db"]
    make_store(path, steps)
    before = sorted(file.name for file in home.iterdir())
    assert look_at_file(path, steps).is_sound
    assert sorted(file.name for file in home.iterdir()) == before
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE tasks DROP COLUMN session_id")
    found = look_at_file(path, steps)
    assert found.missing == ("column tasks.session_id",)
    assert stores_check(Store(is_empty=True), files=[found]).text == (
        "kanban.db lacks column tasks.session_id → hermes doctor --fix"
    )
    path.write_bytes(b"\xa5" * path.stat().st_size)
    found = look_at_file(path, steps)
    assert found.complaint == "file is not a database"
    finding = stores_check(Store(is_empty=True), files=[found])
    assert (finding.level, finding.fix, finding.command) == ("trouble", "stores", "hermes doctor --fix")


def test_another_programs_board_is_named_as_such(home: Path) -> None:
    with closing(sqlite3.connect(home / "kanban.db")) as file:
        file.execute("CREATE TABLE tasks (id)")
    assert look_at_file(home / "kanban.db", side_stores()["kanban.db"]).complaint == "another program made it"


def test_leftovers_of_a_home_in_use_are_only_old_temporary_files(home: Path) -> None:
    (home / "kanban.db.rebuilding").write_text("")
    assert leftovers(home, is_used=True, now=time.time()) == []
    assert leftovers(home, is_used=False, now=time.time()) == [home / "kanban.db.rebuilding"]


def test_json_has_the_sentence_the_reason_and_the_command() -> None:
    shown = Finding("ports", "trouble", "8642 is used → end it", fix="x").to_dict(3)
    assert (shown["number"], shown["sentence"], shown["command"]) == (3, "8642 is used", "end it")
    assert (shown["reason"], shown["can_fix"]) == ("Everybody who can reach the port can try keys on it.", True)
    assert StoreFile("a").is_sound


# The audit


@pytest.mark.parametrize(
    "settings, name, level",
    [
        ("", "", ""),
        ("TELEGRAM_BOT_TOKEN=1:a\nTELEGRAM_ALLOW_ALL_USERS=true", "people", "trouble"),
        ("TELEGRAM_BOT_TOKEN=1:a\nTELEGRAM_ALLOWED_USERS=*", "people", "trouble"),
        ("TELEGRAM_BOT_TOKEN=1:a\nTELEGRAM_GROUP_POLICY=open", "people", "trouble"),
        ("GATEWAY_ALLOW_ALL_USERS=true", "people", "trouble"),
        ("API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=short", "api", "trouble"),
        ("API_SERVER_HOST=0.0.0.0\nAPI_SERVER_KEY=k-0123456789abcdef0123456789abcdef", "api", "hint"),
        ("API_SERVER_CORS_ORIGINS=*", "api", "trouble"),
        ("API_SERVER_ALLOWED_HOSTS=*", "api", "trouble"),
        ("GATEWAY_OWNERS=telegram:1,telegram:2", "owners", "hint"),
        ("OPENAI_API_KEY=sk-1\nOPENAI_BASE_URL=http://model.example/v1", "addresses", "trouble"),
        ("OPENAI_API_KEY=sk-1\nOPENAI_BASE_URL=http://127.0.0.1:9/v1", "", ""),
    ],
)
def test_what_is_open_to_others_is_named_with_its_cure(home: Path, settings: str, name: str, level: str) -> None:
    (home / ".env").write_text(f"{settings}\n")
    (home / ".env").chmod(0o600)
    found = [one for one in audit(home, load_config(home), "hermes") if one.level != "good" and one.name != "account"]
    assert [(one.name, one.level) for one in found] == ([(name, level)] if name else [])
    assert all(one.command and one.why for one in found)


def test_the_audit_names_files_keys_approvals_and_what_commands_can_read(home: Path) -> None:
    (home / "config.yaml").write_text(
        "approvals: {mode: 'off'}\nproviders: {openai: {api_key: sk-0123456789}}\n"
        "terminal: {env_passthrough: [OPENAI_API_KEY]}\n"
    )
    (home / "config.yaml").chmod(0o644)
    found = {one.name: one for one in audit(home, load_config(home), "hermes")}
    assert {name for name, one in found.items() if one.level == "trouble"} == {"files", "approvals", "commands"}
    assert found["secrets"].command == "hermes config set OPENAI_API_KEY -"
    assert "sk-0123456789" not in str(found)
