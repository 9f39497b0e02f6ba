"""A lock says who runs, and cannot outlive its process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from hermes.hosting import locks, processes


def test_a_free_lock_is_taken_and_tells_who_has_it(tmp_path: Path) -> None:
    path = str(tmp_path / "run" / "parent.lock")
    assert locks.holder(path) is None
    lock = locks.take(path, "supervisor")
    assert lock is not None
    holder = locks.holder(path)
    assert holder is not None
    assert (holder.pid, holder.what, holder.is_here()) == (os.getpid(), "supervisor", True)
    assert locks.take(path, "another") is None
    lock.release()
    assert locks.holder(path) is None


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    path = str(tmp_path / "parent.lock")
    lock = locks.take(path, "supervisor")
    assert lock is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        assert locks.holder(path) is None
        child.communicate(b"\n")


def test_what_a_dead_holder_left_written_means_nothing(tmp_path: Path) -> None:
    path = tmp_path / "parent.lock"
    path.write_text(json.dumps({"pid": os.getpid(), "start": "", "what": "supervisor"}))
    assert locks.holder(str(path)) is None


def test_a_pid_that_was_given_out_again_is_another_process() -> None:
    assert processes.is_alive(os.getpid(), processes.start_mark(os.getpid()))
    assert not processes.is_alive(os.getpid(), "1")
    assert not processes.send_signal(os.getpid(), "1", 15)


def test_ancestors_reach_up_to_whoever_started_us() -> None:
    assert os.getppid() in processes.ancestors(os.getpid())


def test_a_holder_that_is_about_to_end_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "parent.lock")
    lock = locks.take(path, "supervisor", restart_signal=10)
    assert lock is not None
    lock.stopping()
    holder = locks.holder(path)
    assert holder is not None
    assert (holder.pid, holder.restart_signal, holder.is_stopping) == (os.getpid(), 10, True)
    lock.release()
    again = locks.take(path, "supervisor")
    assert again is not None
    holder = locks.holder(path)
    assert holder is not None
    assert (holder.restart_signal, holder.is_stopping) == (0, False), "what another wrote is gone"
    again.release()


def test_a_holder_is_described_by_its_command_and_never_by_what_it_was_asked(tmp_path: Path) -> None:
    for typed, words in ((["-z", "a secret"], "-z"), (["sessions", "list", "--json"], "sessions list"), ([], "chat")):
        with subprocess.Popen(
            [sys.executable, "-c", "input()", "hermes", *typed], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert processes.wait_until(lambda pid=process.pid: bool(processes.hermes_command_of(pid)), 20.0)  # type: ignore[misc]
            assert locks.Holder(process.pid, "").describe() == f"another hermes (process {process.pid}: {words})"
            process.communicate(b"\n")
    assert locks.Holder().describe() == "another process"
