"""`hermes gateway status|stop|restart`, typed as a person types them, on a real supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from hermes.hosting import heartbeat, paths
from tests.e2e.keeping import ROOT, Kept, until


def gateway(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-P", "-m", "hermes", "gateway", *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_status_says_running_and_that_nobody_keeps_it_up(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        kept.worker()
        told = gateway(tmp_path, "status")
        assert told.returncode == 0
        assert told.stdout.startswith("✓ Gateway is running: up ")
        assert "unsupervised" in told.stdout


def test_status_of_a_stopped_process_is_stalled(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        os.kill(worker, signal.SIGSTOP)
        path = paths.heartbeat(str(tmp_path))
        until(lambda: (seen := heartbeat.read(path)) and seen.age(0, time.monotonic()) > 4.1, 8)
        told = gateway(tmp_path, "status")
        assert told.returncode == 1
        assert "✗ Gateway is stalled: the process lives, its heart stopped" in told.stdout
        os.kill(worker, signal.SIGCONT)


def test_status_after_both_were_killed(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        kept.process.kill()
        os.kill(worker, signal.SIGKILL)
        kept.process.wait(20)
        told = gateway(tmp_path, "status")
        assert told.returncode == 3
        assert "✗ Gateway is not running: killed " in told.stdout
        assert "nothing kept it up" in told.stdout


def test_stop_then_status_then_stop_again(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        kept.worker()
        told = gateway(tmp_path, "stop")
        assert told.returncode == 0
        assert "✓ Gateway stopped as asked" in told.stdout
        assert kept.process.wait(20) == 0
    told = gateway(tmp_path, "status")
    assert told.returncode == 3
    assert "as asked" in told.stdout
    assert gateway(tmp_path, "stop").returncode == 3
    assert gateway(tmp_path, "restart").returncode == 3


def test_restart_drains_and_is_ready_again(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        first = kept.worker()
        told = gateway(tmp_path, "restart")
        assert told.returncode == 0
        assert "✓ Gateway restarted: what it could not finish goes on, and it is ready again after" in told.stdout
        assert "it finished" not in told.stdout, "a worker that wrote nothing down may have been cut off"
        assert kept.worker() != first


def test_restart_of_a_stalled_gateway_kills_its_worker(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        first = kept.worker()
        os.kill(first, signal.SIGSTOP)
        told = gateway(tmp_path, "restart")
        assert told.returncode == 0
        assert "did not answer, was killed" in told.stdout
        assert kept.worker(other_than=first)


def test_a_foreign_home_is_refused_untouched(tmp_path: Path) -> None:
    home = tmp_path / "theirs"
    home.mkdir()
    (home / "state.db").write_bytes(b"not ours")
    for verb in ("run", "start"):
        told = gateway(home, verb)
        assert told.returncode == 78
        assert "I have changed nothing there" in told.stderr
    assert [entry.name for entry in home.iterdir()] == ["state.db"]


def test_help_names_the_verbs_that_exist(tmp_path: Path) -> None:
    told = gateway(tmp_path, "--help")
    assert told.returncode == 0
    assert "run|start|stop|restart|status|install|uninstall" in told.stdout
    assert "worker" not in told.stdout
