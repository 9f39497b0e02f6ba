"""A full disk, missing rights, a lock and a log that cannot be written: status and doctor name each with its cure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.core.errors import GatewayError
from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal

SMALL = "size=12m,mode=0700"

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


class Limited(Terminal):
    """The real `hermes` without root's right to read and write whatever it likes."""

    def command(self, *words: str) -> list[str]:
        if os.geteuid() != 0:
            return super().command(*words)
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is needed to take root's rights away")
        return ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", *super().command(*words)]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Limited(tmp_path, HOME=str(tmp_path)) as terminal:
        terminal.home.mkdir(mode=0o700)
        yield terminal


@pytest.fixture(scope="module")
def used_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which one question was answered."""
    with Limited(tmp_path_factory.mktemp("used")) as terminal:
        terminal.home.mkdir(mode=0o700)
        assert terminal.hermes("-z", "hello").stdout == "echo: hello\n"
        return terminal.home


@pytest.fixture
def used(terminal: Terminal, used_home: Path) -> Terminal:
    """The terminal with a home of its own that was used before."""
    shutil.copytree(used_home, terminal.home, symlinks=True, dirs_exist_ok=True)
    return terminal


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A folder that is a disk of its own, of a few megabytes; the file that fills it, not yet there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", SMALL, "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("mount is not installed")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder / "ballast.tmp"
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast: Path) -> None:
    """Write until nothing more fits beside it."""
    with ballast.open("wb", buffering=0) as file:
        ballast.chmod(0o600)
        for size in (1 << 16, 512, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


def is_well(terminal: Terminal) -> bool:
    return terminal.hermes("status").returncode == 0


# A full disk


def test_a_full_disk_is_named_by_status_and_doctor_while_no_gateway_runs(terminal: Terminal, used_home: Path) -> None:
    with small_disk(terminal.home) as ballast:
        shutil.copytree(used_home, terminal.home, symlinks=True, dirs_exist_ok=True)
        fill(ballast)
        words = "The disk of ~/hermes-home is full → free some space; nothing else is needed"
        status, doctor = terminal.hermes("status"), terminal.hermes("doctor")
        assert (status.returncode, status.stderr) == (3, "")
        assert f"  trouble    {words}\n" in status.stdout
        assert (doctor.returncode, doctor.stderr) == (1, "")
        assert f" 1 ✗ home       {words}\n" in doctor.stdout
        ballast.unlink()
        assert "-home is full" not in terminal.hermes("status").stdout + terminal.hermes("doctor").stdout


def test_a_disk_that_fills_under_the_gateway_is_named_and_leaves_the_list_when_it_has_room(terminal: Terminal) -> None:
    with small_disk(terminal.home) as ballast:
        terminal.start_gateway()
        assert is_well(terminal)
        fill(ballast)
        status, doctor = terminal.hermes("status"), terminal.hermes("doctor")
        assert status.returncode == doctor.returncode == 1
        assert status.stdout.startswith("! Gateway is degraded: The disk of ~/hermes-home is full")
        assert "The disk of ~/hermes-home is full" in doctor.stdout
        log = (terminal.home / "logs" / "gateway.log").read_text(encoding="utf-8")
        assert "works again" not in log
        ballast.unlink()
        until(lambda: is_well(terminal))
        terminal.hermes("gateway", "stop")


def test_a_start_on_a_full_disk_waits_and_status_says_why(terminal: Terminal) -> None:
    with small_disk(terminal.home) as ballast:
        terminal.start_gateway()
        terminal.hermes("gateway", "stop")
        fill(ballast)
        starting = subprocess.Popen(
            terminal.command("gateway", "run"), env=terminal.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            until(
                lambda: "is starting: The disk of ~/hermes-home is full" in terminal.hermes("gateway", "status").stdout
            )
            ballast.unlink()
            until(lambda: is_well(terminal))
            assert starting.poll() is None
        finally:
            starting.terminate()
            starting.communicate(timeout=20)


# Rights


@pytest.mark.parametrize(
    "name, cure",
    [
        ("state.db", "chmod 600 ~/hermes-home/state.db"),
        (".env", "chmod 600 ~/hermes-home/.env"),
        ("run", "chmod 700 ~/hermes-home/run"),
        ("logs", "chmod 700 ~/hermes-home/logs"),
        ("logs/gateway.log", "chmod 600 ~/hermes-home/logs/gateway.log"),
        ("sessions", "chmod 700 ~/hermes-home/sessions"),
    ],
)
def test_what_cannot_be_used_is_named_with_the_chmod_to_type(used: Terminal, name: str, cure: str) -> None:
    path = used.home / name
    path.parent.mkdir(exist_ok=True)
    if name == ".env":
        path.touch(0o600)
    before = path.stat().st_mode
    path.chmod(0)
    status, doctor = used.hermes("status"), used.hermes("doctor")
    path.chmod(before)
    assert (status.returncode, doctor.returncode) == (3, 1), status.stdout + status.stderr
    assert f"→ {cure}\n" in status.stdout
    assert f"→ {cure}\n" in doctor.stdout
    assert cure not in used.hermes("status").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_belongs_to_somebody_else_is_named_with_the_chown_to_type(used: Terminal) -> None:
    os.chown(used.home / "state.db", 65534, 65534)
    words = (
        "~/hermes-home/state.db belongs to nobody and cannot be used by root → sudo chown root ~/hermes-home/state.db"
    )
    assert words in used.hermes("status").stdout
    assert words in used.hermes("doctor").stdout
    refused = used.hermes("sessions", "list")
    assert (refused.returncode, words in refused.stderr) == (1, True)


def test_a_home_that_cannot_be_entered_is_named_with_the_chmod_to_type(terminal: Terminal) -> None:
    terminal.home.chmod(0)
    refused = terminal.hermes("doctor")
    terminal.home.chmod(0o700)
    assert refused.returncode == 78
    assert f"{terminal.home} is not yours to write to → chmod 700 {terminal.home}\n" in refused.stderr


# A lock


@contextmanager
def locked(database: Path) -> Iterator[int]:
    """Another process is in the middle of a write; its number."""
    command = [sys.executable, "-I", "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder.pid
        holder.communicate("\n", timeout=20)


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="only Linux lists who holds a lock")
def test_a_lock_is_named_with_its_holder_while_no_gateway_runs(used: Terminal) -> None:
    with locked(used.home / "state.db") as pid:
        words = rf"state\.db is locked by python\S* \(process {pid}\) → let it finish, or end it: kill {pid}\n"
        assert re.search(words, used.hermes("doctor").stdout)
        assert re.search(words, used.hermes("status").stdout)
    assert "is locked" not in used.hermes("doctor").stdout


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="only Linux lists who holds a lock")
def test_a_lock_under_the_gateway_is_named_with_its_holder_and_leaves_the_list(terminal: Terminal) -> None:
    terminal.start_gateway()
    with locked(terminal.home / "state.db") as pid:
        # Stored at the latest when the lock is gone; it is the store's trouble that is asked about.
        asking = subprocess.Popen(
            terminal.command("-z", "hello"), env=terminal.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(lambda: f"(process {pid})" in terminal.hermes("status").stdout, 30)
        status, doctor = terminal.hermes("status"), terminal.hermes("doctor")
    asking.kill()
    asking.communicate(timeout=20)
    words = rf"state\.db is locked by python\S* \(process {pid}\) → let it finish, or end it: kill {pid}"
    assert re.match(rf"! Gateway is degraded: {words}", status.stdout)
    assert re.search(words, doctor.stdout)
    until(lambda: is_well(terminal), 30)


# The log


def test_a_full_disk_of_the_logs_is_noticed_and_the_gateway_goes_on(terminal: Terminal) -> None:
    logs = terminal.home / "logs"
    with small_disk(logs) as ballast:
        terminal.start_gateway()
        fill(ballast)
        control.call(terminal.home, "config.reload")
        (terminal.home / "config.yaml").write_text("agent: {max_iterations: nonsense}\n")  # a line for the log
        until(lambda: ".log cannot be written" in terminal.hermes("status").stdout)
        status, doctor = terminal.hermes("status"), terminal.hermes("doctor")
        assert status.returncode == doctor.returncode == 1
        for told in (status.stdout, doctor.stdout):
            assert "The disk of ~/hermes-home/logs is full → free some space; nothing else is needed" in told
            assert re.search(r"\w+\.log cannot be written \(No space left on device\), so the log has gaps", told)
        assert terminal.hermes("-z", "hello").stdout == "echo: hello\n"
        ballast.unlink()
        (terminal.home / "config.yaml").write_text("agent: {max_iterations: -1}\n")
        until(lambda: "Log lines lost lines=" in (logs / "errors.log").read_text(encoding="utf-8"))
        (terminal.home / "config.yaml").unlink()
        until(lambda: is_well(terminal))
        terminal.hermes("gateway", "stop")


def test_a_log_that_cannot_be_written_is_noticed_and_the_gateway_starts_all_the_same(used: Terminal) -> None:
    log = used.home / "logs" / "gateway.log"
    log.chmod(0)
    used.start_gateway()
    status, doctor = used.hermes("status"), used.hermes("doctor")
    assert status.returncode == doctor.returncode == 1
    for told in (status.stdout, doctor.stdout):
        assert "→ chmod 600 ~/hermes-home/logs/gateway.log" in told
    assert "gateway.log cannot be written (Permission denied), so the log has gaps" in status.stdout
    assert used.hermes("-z", "hello").stdout == "echo: hello\n"
    log.chmod(0o600)
    (used.home / "config.yaml").write_text("agent: {max_iterations: nonsense}\n")
    until(lambda: "max_iterations" in log.read_text(encoding="utf-8"))
    (used.home / "config.yaml").unlink()
    until(lambda: is_well(used))


LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d (DEBUG|INFO|WARNING|ERROR|CRITICAL) \S.*")


def pid_of(terminal: Terminal) -> int:
    """The worker that answers; 0 while none does."""
    try:
        return int(control.call(terminal.home, "ping")["pid"])
    except GatewayError:
        return 0


def test_the_log_of_a_gateway_in_the_background_has_one_format(terminal: Terminal) -> None:
    terminal.start_gateway()
    assert terminal.hermes("-z", "hello").returncode == 0
    seen = pid_of(terminal)
    os.kill(seen, 9)
    until(lambda: pid_of(terminal) not in (0, seen), 30)
    terminal.hermes("gateway", "stop")
    for name in ("gateway.log", "errors.log"):
        rows = (terminal.home / "logs" / name).read_text(encoding="utf-8").splitlines()
        assert rows
        assert [row for row in rows if not LINE.fullmatch(row) and not row.startswith("  ")] == []
    assert "Hermes Gateway Starting" in (terminal.home / "logs" / "console.log").read_text(encoding="utf-8")
