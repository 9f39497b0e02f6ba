"""`hermes cron` and `hermes webhook`: without a gateway, beside one, and beside one that hangs."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("jobs")
    with Terminal(folder, TZ="Asia/Shanghai", WEBHOOK_PORT=free_port()) as terminal:
        yield terminal


def test_a_job_is_made_listed_changed_and_removed_without_a_gateway(terminal: Terminal) -> None:
    made = terminal.here("cron", "create", "weekdays at 8", "Say good morning", "--name", "morning")
    assert made.returncode == 0
    assert "08:00:00 CST" in made.stdout, "the TZ of the container counts"
    assert "Deliver: local" in made.stdout, "it says where it goes"
    assert "gateway start" in made.stdout
    [job] = terminal.told("cron", "list")
    assert (job["schedule"], job["state"]) == ("0 8 * * 1-5", "active")
    assert terminal.here("cron", "edit", "morning", "--schedule", "every 2h").returncode == 0
    assert terminal.here("cron", "remove", "morning").returncode == 0
    assert terminal.told("cron", "list") == []
    assert terminal.here("cron", "status").returncode == 3


def test_a_missing_script_and_a_wrong_schedule_are_refused_with_what_is_right(terminal: Terminal) -> None:
    scripts = terminal.home / "scripts"
    scripts.mkdir(exist_ok=True)
    (scripts / "disk.sh").write_text("echo full\n")
    script = terminal.here("cron", "create", "1h", "check", "--script", "check_and_send.sh")
    assert script.returncode == 1
    assert "Script not found: check_and_send.sh" in script.stderr
    assert "disk.sh" in script.stderr
    wrong = terminal.here("cron", "create", "evry 5 mins", "check")
    assert wrong.returncode == 1
    assert "every 5m" in wrong.stderr
    assert terminal.told("cron", "list") == []


def test_jobs_and_webhooks_beside_a_gateway_and_beside_one_that_hangs(terminal: Terminal) -> None:
    made_before = terminal.told("cron", "create", "2s", "made before the start", "--no-agent")
    terminal.start_gateway()
    status = terminal.here("cron", "status")
    assert (status.returncode, status.stdout[:14]) == (0, "✓ Jobs run: 1 ")
    job = terminal.told("cron", "create", "every 1h", "hello", "--deliver", "local")
    terminal.told("cron", "run", job["id"])

    def has_run(job_id: str) -> bool:
        slots = terminal.told("cron", "history", job_id)["slots"]
        return bool(slots) and slots[0]["outcome"] == "done"

    until(lambda: has_run(job["id"]))
    until(lambda: has_run(made_before["id"]))
    outputs = list((terminal.home / "cron" / "output" / job["id"]).glob("*.md"))
    assert len(outputs) == 1
    assert "echo: hello" in outputs[0].read_text("utf-8")

    route = terminal.told(
        "webhook", "subscribe", "hi", "--prompt", "{who} is here", "--deliver-only", "--deliver", "local"
    )
    assert route["secret"].startswith("whsec_")
    until(lambda: terminal.here("webhook", "test", "hi", "--payload", json.dumps({"who": "Ana"})).returncode == 0)
    assert terminal.here("webhook", "test", "hi").stdout.startswith("✓ 202 accepted")
    listed = terminal.here("webhook", "list").stdout
    assert "hi" in listed
    assert route["secret"] not in listed
    logs = "".join(path.read_text("utf-8", "replace") for path in (terminal.home / "logs").glob("*.log"))
    assert route["secret"] not in logs
    assert_private(terminal.home)

    worker = terminal.told("status")["snapshot"]["pid"]
    os.kill(worker, signal.SIGSTOP)
    try:
        hung = terminal.here("cron", "status")
        assert hung.returncode == 1
        assert hung.stderr.startswith("✗ Jobs do not run. Gateway is stalled")
        assert json.loads(terminal.here("cron", "status", "--json").stdout)["is_running"] is False
    finally:
        os.kill(worker, signal.SIGCONT)
    until(lambda: terminal.here("cron", "status").returncode == 0)


def assert_private(home: Path) -> None:
    open_to_others = [path for path in home.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
    assert [path.name for path in open_to_others if path.suffix in (".db", ".md", ".json")] == []
