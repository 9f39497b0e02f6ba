"""The real gateway from its command line: run, start, replace from the inside, and what `ps` shows of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.hosting import heartbeat, locks, paths, processes
from hermes.hosting.control import client as control
from hermes.store.home import make_home
from tests.e2e.keeping import ROOT, Kept, until


def free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A machine without a network: nothing is fetched, and everything is ended afterwards."""
    home = tmp_path / "hermes"
    given = {"HERMES_HOME": str(home), "API_SERVER_PORT": str(free_port()), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    yield {**os.environ, **given, **nowhere}
    holder = locks.holder(paths.parent_lock(str(home)))
    if holder:
        processes.send_signal(holder.pid, holder.mark, signal.SIGKILL)
        until(lambda: not control.is_running(home))


def hermes(environ: dict[str, str], *words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "hermes", *words]


def typed(environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(hermes(environ, *words), env=environ, capture_output=True, text=True, timeout=60, check=False)


def health(environ: dict[str, str]) -> object:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{environ['API_SERVER_PORT']}/health", timeout=60) as answer:
            return json.load(answer)
    except OSError:
        return None


def ready_worker(environ: dict[str, str]) -> int:
    seen = heartbeat.read(paths.heartbeat(environ["HERMES_HOME"]))
    return seen.pid if seen and seen.ready_at and processes.is_alive(seen.pid, "") else 0


def test_model_that_cannot_be_fetched_is_named_by_status_and_doctor_while_it_runs_and_after(
    environ: dict[str, str],
) -> None:
    reason = "The package server cannot be reached: check the network, or the proxy in HTTPS_PROXY"
    with subprocess.Popen(hermes(environ, "gateway"), env=environ, stdout=subprocess.DEVNULL) as gateway:
        try:
            until(lambda: f"the built-in model cannot answer: {reason}" in typed(environ, "status").stdout, 60)
            assert typed(environ, "status").returncode == 1
            assert reason in typed(environ, "doctor").stdout
        finally:
            gateway.terminate()
            gateway.wait(85)
    assert f"the last try failed: {reason}" in typed(environ, "status").stdout
    checked = typed(environ, "doctor")
    assert f"built-in, and it could not be fetched. {reason}" in checked.stdout
    assert checked.returncode == 1


def test_run_serves_until_it_is_told_to_stop(environ: dict[str, str]) -> None:
    with subprocess.Popen(hermes(environ, "gateway"), env=environ, stdout=subprocess.PIPE, text=True) as gateway:
        assert until(lambda: health(environ), 10) == {"status": "ok"}
        worker = until(lambda: ready_worker(environ))
        # What people look for: `pgrep -f "hermes gateway" | head -1` is the process that holds the sockets.
        assert b"hermes\0gateway\0worker" in Path(f"/proc/{worker}/cmdline").read_bytes()
        assert Path(f"/proc/{worker}/comm").read_text() == "hermes\n"
        supervisor = Path(f"/proc/{gateway.pid}/cmdline").read_bytes().replace(b"\0", b" ")
        assert b"hermes supervisor" in supervisor
        assert b"hermes gateway" not in supervisor
        assert typed(environ, "gateway", "status").returncode in (0, 1)
        began = time.monotonic()
        gateway.terminate()
        assert gateway.wait(85) == 0
        assert time.monotonic() - began < 80, "eight seconds are promised"
        assert gateway.stdout is not None
        screen = gateway.stdout.read()
    assert "Hermes Gateway Starting..." in screen
    assert "Gateway started in" in screen
    log = Path(paths.log(environ["HERMES_HOME"])).read_text()
    assert "INFO Gateway started" in log
    assert "INFO Gateway started" in screen  # no terminal: the journal has the log too


def test_start_runs_it_in_the_background_and_stop_ends_it(environ: dict[str, str]) -> None:
    told = typed(environ, "gateway", "start")
    assert told.returncode == 0, told.stderr
    assert "✓ Gateway started in" in told.stdout
    assert health(environ) == {"status": "ok"}
    again = typed(environ, "gateway", "start")
    assert again.returncode == 0
    assert "running already" in again.stdout
    assert typed(environ, "gateway", "stop").returncode == 0
    assert health(environ) is None


def test_a_new_gateway_replaces_the_one_whose_own_terminal_asked_for_it(environ: dict[str, str]) -> None:
    home = Path(environ["HERMES_HOME"])
    make_home(home)
    with Kept(home, "replaced-from-inside", environ=environ) as kept:
        old = kept.worker()
        assert kept.process.wait(12) == 0
        worker = until(lambda: ready_worker(environ), 10)
        assert worker != old
        assert health(environ) == {"status": "ok"}


def test_a_folder_that_was_removed_under_it_keeps_nobody_from_starting_again(
    environ: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "removed"
    folder.mkdir()
    with subprocess.Popen(hermes(environ, "gateway"), env=environ, cwd=folder, stdout=subprocess.DEVNULL) as gateway:
        worker = until(lambda: ready_worker(environ), 20)
        folder.rmdir()
        os.kill(worker, signal.SIGKILL)
        assert until(lambda: ready_worker(environ) not in (0, worker), 20)
        gateway.terminate()
        assert gateway.wait(85) == 0


def test_a_command_in_a_folder_that_was_removed_says_what_it_has_to_say(
    environ: dict[str, str], tmp_path: Path
) -> None:
    script = f'mkdir "{tmp_path}/gone" && cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && exec "$@"'
    for words, told in ((("gateway", "status"), "Gateway is not running"), (("config", "path"), "config.yaml")):
        command = ["sh", "-c", script, "sh", *hermes(environ, *words)]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert told in done.stdout, done.stderr
