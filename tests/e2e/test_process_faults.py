"""Faults of the process, produced for real: `status` and `doctor` name each and say what to type."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hermes.hosting import heartbeat, locks, paths, processes
from hermes.hosting.control import client as control
from tests.chaos.world import Victim, opened
from tests.e2e.keeping import until
from tests.e2e.terminal import COMMAND_SECONDS, ROOT, Terminal

Run = Callable[..., subprocess.CompletedProcess[str]]
TOKEN = {
    "TELEGRAM_BOT_TOKEN": "123456:abcdefghijklmnopqrstuvwxyz1234567",
    "TELEGRAM_BASE_URL": "http://127.0.0.1:9",
    "TELEGRAM_ALLOWED_USERS": "7",
    "GATEWAY_OWNERS": "local",
}

FRAGILE = """
import asyncio, os
from hermes.core.manifest import Manifest, Setting
from hermes.core.messages import Capabilities, Receipt


class Fragile:
    capabilities = Capabilities(text_limit=1000)
    identity = "fragile"

    def __init__(self, parts):
        self._alive, self._bad = parts.alive, parts.values["bad"]

    async def run(self, emit):
        if os.path.exists(self._bad):
            os._exit(3)  # as a library does that is broken
        while True:
            self._alive()
            await asyncio.sleep(1)

    async def send(self, message):
        return Receipt("1")


MANIFEST = Manifest(
    id="fragile", title="Fragile", settings=(Setting("bad", "FRAGILE_BAD", required=True),), build=Fragile
)
"""


def add_platform(folder: Path) -> str:
    """What an installed package leaves behind; the Python path that finds it."""
    (folder / "fragile.py").write_text(FRAGILE)
    info = folder / "fragile-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[hermes.platforms]\nfragile = fragile:MANIFEST\n")
    return f"{ROOT / 'src'}:{ROOT}:{folder}"


def state_of(terminal: Terminal, account: str) -> str:
    platforms = control.call(terminal.home, "status")["platforms"]
    return str(next(platform["state"] for platform in platforms if platform["account"] == account))


def service(terminal: Terminal, run: Run = Terminal.here) -> dict[str, Any]:
    """What the doctor says of the process."""
    findings = json.loads(run(terminal, "doctor", "--json").stdout)["findings"]
    found = next(finding for finding in findings if finding["name"] == "service")
    return {**found, "all": " ".join([found["text"], *found["more"]])}


# After failed starts


@pytest.mark.timeout(240)
def test_platforms_paused_after_failed_starts_say_until_when_and_are_resumed_by_a_word_or_a_restart(
    tmp_path: Path,
) -> None:
    bad = tmp_path / "bad"
    bad.touch()
    with Terminal(tmp_path, PYTHONPATH=add_platform(tmp_path), FRAGILE_BAD=str(bad)) as terminal:
        terminal.start_gateway()
        shown = terminal.hermes("status")
        assert shown.returncode == 1
        first = shown.stdout.splitlines()[0]
        assert re.search(r"platforms are paused until \d\d:\d\d:\d\d, since 3 starts in a row went wrong", first)
        assert "ended with exit code 3" in first
        assert re.search(
            r"paused +try the platforms now → \S*hermes gateway restart, or /platform resume", shown.stdout
        )
        found = service(terminal, Terminal.hermes)
        assert found["level"] == "trouble"
        assert "platforms are paused until" in found["all"]
        assert "gateway restart" in found["all"]

        bad.unlink()
        asked = terminal.hermes("-z", "/platform resume fragile")
        assert asked.stdout == "fragile is switched on.\n"
        until(lambda: state_of(terminal, "fragile") == "connected")
        assert "platforms are paused" not in terminal.hermes("status").stdout

        restarted = terminal.hermes("gateway", "restart")
        assert "✓ Gateway restarted: it finished what it was doing" in restarted.stdout
        until(lambda: state_of(terminal, "fragile") == "connected")
        shown = terminal.hermes("status")
        assert (shown.returncode, "restarted" in shown.stdout) == (0, False), "a repaired fault leaves the list"


@pytest.mark.timeout(240)
def test_a_restart_ends_the_pause_between_two_starts_and_commands_say_when_the_next_one_is(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        (terminal.home / "run").mkdir(parents=True, mode=0o700)
        environ = {**terminal.environ, "HERMES_HOME": str(terminal.home)}
        stand_in = str(Path(__file__).parent / "workers" / "stand_in.py")
        command = [*terminal.command("supervisor", "--"), terminal.command()[0], stand_in, "crash-if=bad"]
        (terminal.home / "bad").touch()
        with subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL) as supervisor:
            try:
                record = Path(paths.last_exit(str(terminal.home)))
                until(lambda: _seconds_to_next_start(record) > 12, 90)  # the seventh start in a row
                shown = terminal.here("gateway", "status")
                assert shown.returncode == 1
                assert re.search(
                    r"started again at \d\d:\d\d:\d\d, in \d+ s; now: \S*hermes gateway restart", shown.stdout
                )
                found = service(terminal)
                assert found["level"] == "trouble"
                assert re.search(
                    r"started again at \d\d:\d\d:\d\d, in \d+ s; now: \S*hermes gateway restart", found["text"]
                )
                assert "hermes logs --level warning" in found["all"]
                began = time.monotonic()
                asked = terminal.hermes("-z", "hello")
                assert time.monotonic() - began < 20, "two seconds are promised"
                assert asked.returncode == 1
                assert "The gateway could not start (ended with exit code 1) and tries again at" in asked.stderr
                (terminal.home / "bad").unlink()
                restarted = terminal.hermes("gateway", "restart")
                assert (restarted.returncode, "✓ Gateway restarted" in restarted.stdout) == (0, True)
                assert (terminal.home / "lives").read_text().splitlines()[-1].split()[1:] == [], "nothing is paused"
            finally:
                supervisor.terminate()
                supervisor.wait(20)


def _seconds_to_next_start(record: Path) -> float:
    return float(json.loads(record.read_text())["next_start_at"]) - time.time() if record.exists() else 0.0


@pytest.mark.timeout(240)
def test_nine_crashes_in_a_row_are_shown_until_a_person_restarts_it(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.start_gateway()
        holder = locks.holder(paths.parent_lock(str(terminal.home)))
        assert holder is not None
        killed: list[int] = []
        while len(killed) < 9:
            killed.append(until(lambda: _worker_of(holder.pid, killed)))
            os.kill(killed[-1], signal.SIGKILL)
        until(lambda: _is_ready(terminal.home), 60)
        shown = terminal.here("status")
        words = "restarted 9 times in the last hour, last: killed by signal 9"
        assert (shown.returncode, words in shown.stdout.splitlines()[0]) == (1, True)
        found = service(terminal)
        assert (found["level"], words in found["all"]) == ("trouble", True)
        assert "hermes logs --level warning" in found["all"]
        assert terminal.hermes("gateway", "restart").returncode == 0
        shown = terminal.here("status")
        assert (shown.returncode, "restarted" in shown.stdout) == (0, False)


def _worker_of(supervisor: int, killed: list[int]) -> int:
    """A child that was not killed already; 0 while there is none."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return next((int(pid) for pid in children if int(pid) not in killed), 0)


def _is_ready(home: Path) -> bool:
    seen = heartbeat.read(paths.heartbeat(str(home)))
    return seen is not None and seen.ready_at > 0 and processes.is_alive(seen.pid, "")


@pytest.mark.timeout(240)
def test_a_dead_gateway_whose_platforms_nobody_hears_is_trouble_and_one_that_was_stopped_is_not_running(
    tmp_path: Path,
) -> None:
    with Terminal(tmp_path, **TOKEN) as terminal:
        terminal.start_gateway()
        worker = control.call(terminal.home, "ping")["pid"]
        holder = locks.holder(paths.parent_lock(str(terminal.home)))
        assert holder is not None
        for pid in (holder.pid, worker):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not control.is_running(terminal.home))
        for words in (("status",), ("gateway", "status")):
            shown = terminal.here(*words)
            assert shown.returncode == 1, shown.stdout
            assert "✗ Gateway is not running: killed" in shown.stdout
            assert "Start it: " in shown.stdout
            assert "Until then no message is received on telegram." in shown.stdout
        found = service(terminal)
        assert found["level"] == "trouble"
        assert re.search(r"No message arrives from telegram → \S*hermes gateway start", found["text"])

        terminal.start_gateway()
        assert terminal.hermes("gateway", "stop").returncode == 0
        shown = terminal.here("status")
        assert (shown.returncode, "as asked" in shown.stdout) == (3, True)


@pytest.mark.timeout(240)
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed: apt-get install git")
def test_code_that_was_pulled_under_a_running_gateway_is_named_with_the_cure(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "src", clone / "src", ignore=shutil.ignore_patterns("__pycache__"))
    _git(clone, "init", "-q")
    _commit(clone)
    with Terminal(tmp_path, PYTHONPATH=f"{clone / 'src'}:{ROOT}") as terminal:
        terminal.start_gateway()
        assert "is installed" not in terminal.hermes("status").stdout
        _commit(clone)
        shown = terminal.hermes("status")
        told = r"it runs Hermes \S+ \(commit \w{8}\), and \S+ \(commit \w{8}\) is installed → .*hermes gateway restart"
        assert re.search(rf"version +{told}", shown.stdout), shown.stdout
        assert re.search(told, service(terminal, Terminal.hermes)["all"])
        assert terminal.hermes("gateway", "restart").returncode == 0
        assert "is installed" not in terminal.hermes("status").stdout


def _commit(clone: Path) -> None:
    _git(clone, "add", "-A")
    _git(clone, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "x")


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, timeout=60, capture_output=True)


# Nothing waits in silence


@pytest.mark.timeout(240)
def test_a_question_to_a_gateway_that_cannot_open_its_store_is_answered_with_the_reason(tmp_path: Path) -> None:
    with (
        Terminal(tmp_path, HERMES_DATABASE_URL="postgresql://a:b@127.0.0.1:9/x") as terminal,
        subprocess.Popen(
            terminal.command("gateway", "run"), env=terminal.environ, stdout=subprocess.DEVNULL
        ) as gateway,
    ):
        try:
            until(lambda: (seen := heartbeat.read(paths.heartbeat(str(terminal.home)))) and seen.doing, 60)
            began = time.monotonic()
            asked = terminal.hermes("-z", "hello")
            assert time.monotonic() - began < 20, "two seconds are promised"
            assert asked.returncode == 1
            assert "The gateway cannot start: PostgreSQL cannot be reached" in asked.stderr
            shown = terminal.here("status")
            assert shown.returncode == 1
            assert "it is starting: PostgreSQL cannot be reached" in shown.stdout
            assert "start that server, or correct HERMES_DATABASE_URL" in shown.stdout
            found = service(terminal)
            assert found["level"] == "trouble"
            assert "start that server, or correct HERMES_DATABASE_URL" in found["text"]
        finally:
            gateway.terminate()
            gateway.wait(30)


@pytest.mark.timeout(240)
def test_a_question_alone_with_a_store_that_is_locked_is_answered_with_the_reason(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        assert terminal.hermes("-z", "hello").stdout == "echo: hello\n"
        with closing(sqlite3.connect(terminal.home / "state.db", isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            asked = terminal.hermes("-z", "hello")
            assert time.monotonic() - began < 20, "two seconds are promised"
            holder = f"(process {os.getpid()})"  # this very test holds the lock
            for screen in (asked.stderr, terminal.hermes("status").stdout, terminal.hermes("doctor").stdout):
                assert "state.db is locked by " in screen
                assert holder in screen
            assert asked.returncode == 1
        assert terminal.hermes("-z", "hello").stdout == "echo: hello\n"


@contextmanager
def lone_chat(terminal: Terminal) -> Iterator[subprocess.Popen[str]]:
    """A chat that is open with no gateway, after it has answered once."""
    chat = subprocess.Popen(
        terminal.command("chat"), env=terminal.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdout.readline()
        chat.stdin.write("one\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "echo: one\n"
        yield chat
        chat.stdin.write("two\n")
        chat.stdin.close()
        assert chat.stdout.read() == "echo: two\n"
        assert chat.wait(COMMAND_SECONDS) == 0
    finally:
        chat.kill()
        chat.wait(20)
        for pipe in (chat.stdin, chat.stdout):
            if pipe is not None:
                pipe.close()


@pytest.mark.timeout(240)
def test_beside_an_open_lone_chat_every_other_command_answers(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal, lone_chat(terminal) as chat:
        began = time.monotonic()
        asked = json.loads(terminal.hermes("-z", "hello", "--json").stdout)
        assert asked["answer"] == "echo: hello"
        assert "agent:main:local:dm:cli" in terminal.here("sessions", "list").stdout
        assert "answered" in terminal.hermes("trace", asked["event"]).stdout
        shown = terminal.here("status")
        assert shown.returncode == 3
        assert f"in use     by another hermes (process {chat.pid}: chat)" in shown.stdout
        stores = next(
            f for f in json.loads(terminal.here("doctor", "--json").stdout)["findings"] if f["name"] == "stores"
        )
        assert stores["level"] == "good"
        assert terminal.here("pairing", "list").returncode == 0
        assert time.monotonic() - began < 120, "six commands, none of which waits half a minute"
        sent = terminal.hermes("send", "telegram:42", "hi")
        assert (sent.returncode, "The gateway is not running" in sent.stderr) == (3, True)


@pytest.mark.timeout(240)
def test_a_lone_chat_that_is_stopped_is_named_at_once_with_its_pid_and_what_to_type(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal, lone_chat(terminal) as chat:
        os.kill(chat.pid, signal.SIGSTOP)
        try:
            until(lambda: processes.is_stopped(chat.pid))
            words = f"nother hermes (process {chat.pid}: chat)"
            began = time.monotonic()
            asked = terminal.hermes("-z", "hello")
            assert time.monotonic() - began < 20, "at once is promised"
            assert asked.returncode == 1
            assert f"A{words} holds this home and is stopped." in asked.stderr
            assert f"kill -9 {chat.pid}" in asked.stderr
            shown = terminal.here("status").stdout
            assert f"in use     by a{words}, which is stopped → `fg` where it was started, or kill -9" in shown
            assert f"A{words} holds this home and is stopped." in terminal.here("doctor").stdout
        finally:
            os.kill(chat.pid, signal.SIGCONT)


@pytest.mark.timeout(240)
def test_a_gateway_that_waits_for_a_stopped_chat_says_for_whom(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal, lone_chat(terminal) as chat:
        os.kill(chat.pid, signal.SIGSTOP)
        try:
            with subprocess.Popen(
                terminal.command("gateway", "run"), env=terminal.environ, stdout=subprocess.DEVNULL
            ) as gateway:
                until(lambda: (seen := heartbeat.read(paths.heartbeat(str(terminal.home)))) and seen.doing, 60)
                shown = terminal.here("gateway", "status")
                found = service(terminal)
                gateway.terminate()
                gateway.wait(30)
            assert shown.returncode == 1
            words = (
                f"it is starting: another hermes (process {chat.pid}: chat) holds the home; "
                f"end it → `fg` where it was started, or kill -9 {chat.pid}"
            )
            assert words in shown.stdout
            assert (found["level"], words in found["text"]) == ("trouble", True)
        finally:
            os.kill(chat.pid, signal.SIGCONT)


@pytest.mark.timeout(240)
def test_a_second_gateway_says_at_once_that_one_is_running_and_which(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.start_gateway()
        holder = locks.holder(paths.parent_lock(str(terminal.home)))
        assert holder is not None
        began = time.monotonic()
        second = terminal.hermes("gateway", "run")
        assert time.monotonic() - began < 10, "at once is promised"
        assert second.returncode == 1
        assert f"✗ A gateway is already running for {terminal.home} (pid {holder.pid})." in second.stderr
        assert "gateway run --replace" in second.stderr


# What is claimed is so


@pytest.mark.timeout(240)
def test_a_restart_that_interrupts_a_turn_says_so(tmp_path: Path) -> None:
    with Terminal(tmp_path, "--mode", "stream", "--tokens", "160", "--rate", "10") as terminal:
        terminal.start_gateway()
        with subprocess.Popen(
            terminal.command("-z", "count"),
            env=terminal.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as asking:
            until(lambda: control.call(terminal.home, "status")["running"])
            restarted = terminal.hermes("gateway", "restart")
            assert "1 turn did not end in time and goes on now" in restarted.stdout
            assert "finished what it was doing" not in restarted.stdout
            until(lambda: control.call(terminal.home, "status")["running"])
            stopped = terminal.hermes("gateway", "stop")
            assert "Nothing is lost: 1 turn goes on after the next start." in stopped.stdout
            terminal.start_gateway()
            answer, notes = asking.communicate(timeout=90)
        assert answer.split()[-1:] == ["w159"], notes


@pytest.mark.timeout(240)
async def test_counts_of_today_survive_a_restart_and_a_crash(tmp_path: Path) -> None:
    async with opened(tmp_path / "world", seed=5) as world:
        telegram, gateway = world.telegram, world.gateway

        def counts() -> tuple[int, int]:
            platform = gateway.status()["platforms"][0]
            return platform["in_today"], platform["out_today"]

        for text in ("one", "two", "three"):
            telegram.user_says(text)
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: three"), 20.0)
        await telegram.wait_for(lambda: counts()[0] == 3, 20.0)
        before = counts()
        worker = gateway.worker()
        await asyncio.to_thread(control.call, gateway.home, "restart")
        await _next_worker(gateway, worker)
        assert counts() == before
        await gateway.kill(Victim.WORKER)
        await gateway.ready()
        assert counts() == before
        telegram.user_says("once more")
        await telegram.wait_for(lambda: telegram.has_answered(7, "echo: once more"), 20.0)
        await telegram.wait_for(lambda: counts()[0] == 4, 20.0)


async def _next_worker(gateway: Any, before: int) -> None:
    async with asyncio.timeout(30):
        while gateway.worker() in (0, before):  # noqa: ASYNC110 - another process does not set our events
            await asyncio.sleep(0.02)
    await gateway.ready()


@pytest.mark.timeout(240)
def test_a_hang_up_reloads_a_detached_gateway_and_does_not_end_it(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.start_gateway()
        worker = control.call(terminal.home, "ping")["pid"]
        holder = locks.holder(paths.parent_lock(str(terminal.home)))
        assert holder is not None
        log = Path(paths.log(str(terminal.home)))
        os.kill(holder.pid, signal.SIGHUP)
        until(lambda: log.read_text().count("Configuration read again") == 1)
        os.kill(worker, signal.SIGHUP)
        until(lambda: log.read_text().count("Configuration read again") == 2)
        assert control.call(terminal.home, "ping")["pid"] == worker
        assert terminal.here("status").returncode == 0


@pytest.mark.timeout(240)
def test_the_terminals_own_platform_is_never_said_to_hear_nothing(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        terminal.home.mkdir(mode=0o700)
        (terminal.home / "config.yaml").write_text("platforms: {local: {home_channel: cli, dm_policy: allowlist}}\n")
        chat = terminal.hermes("chat", typed="one\n")
        assert chat.stdout.splitlines()[1:] == ["echo: one"]
        assert "heard" not in terminal.here("status").stdout
        people = next(
            f for f in json.loads(terminal.here("doctor", "--json").stdout)["findings"] if f["name"] == "people"
        )
        assert (people["level"], "local" in people["text"]) == ("good", False)
        terminal.start_gateway()
        shown = terminal.here("status")
        assert (shown.returncode, "heard" in shown.stdout) == (0, False)
