"""The supervisor and its worker, as real processes: who dies with whom, who is started again, and how."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from hermes.hosting import heartbeat, locks, paths, processes
from hermes.hosting.control import client as control
from tests.e2e.keeping import Kept, until


def test_a_killed_worker_is_back_at_once(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        first = kept.worker()
        started = time.monotonic()
        os.kill(first, signal.SIGKILL)
        second = kept.worker(other_than=first)
        assert time.monotonic() - started < 20, "two seconds are promised"
        assert second != first
        told = json.loads((tmp_path / "run" / "last_exit.json").read_text())
        assert told["kind"] == "killed"
        assert told["restarted"] is True


def test_a_system_that_lets_no_process_start_is_waited_for(tmp_path: Path) -> None:
    python, log = tmp_path / "python", tmp_path / "logs" / "gateway.log"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    with Kept(tmp_path, "steady", python=str(python)) as kept:
        first = kept.worker()
        python.rename(tmp_path / "being-replaced")
        os.kill(first, signal.SIGKILL)
        until(lambda: "Worker cannot be started" in log.read_text())
        (tmp_path / "being-replaced").rename(python)
        assert kept.worker(other_than=first)
        assert log.read_text().count("Worker cannot be started") == 1, "said once, not at every try"
        python.unlink()
        os.kill(kept.worker(), signal.SIGKILL)
        until(lambda: log.read_text().count("Worker cannot be started") == 2)
        kept.process.terminate()
        assert kept.process.wait(20) == 0


def test_a_worker_dies_with_its_parent_and_frees_the_home(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        kept.process.kill()
        assert processes.wait_until_gone(worker, processes.start_mark(worker), 10.0)
        kept.process.wait(10)
        # A process is told to be gone when its first thread is; its locks go with the last one.
        assert processes.wait_until(lambda: not control.is_running(tmp_path), 10.0)


def test_after_both_were_killed_the_next_start_is_ready_within_two_seconds(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        kept.process.kill()
        os.kill(worker, signal.SIGKILL)
        started = time.monotonic()
        with Kept(tmp_path, "steady") as again:
            assert again.worker(other_than=worker)
            assert time.monotonic() - started < 20, "two seconds are promised; ./scripts/chaos counts them"


def test_an_orphan_that_cannot_die_is_ended_by_the_next_supervisor(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        os.kill(worker, signal.SIGSTOP)
        kept.process.kill()
        with Kept(tmp_path, "steady") as again:
            assert again.worker(other_than=worker)
            assert not processes.is_alive(worker, "")


def test_three_bad_starts_lead_to_a_start_with_platforms_paused(tmp_path: Path) -> None:
    with Kept(tmp_path, "crash") as kept:
        kept.worker()
        lives = kept.lives()
        assert len(lives) == 4
        assert "3 starts in a row went wrong" in lives[3]
        assert "platforms paused" in (tmp_path / "logs" / "errors.log").read_text()


def test_kills_from_outside_never_count_as_bad_starts(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = 0
        for _ in range(4):
            worker = kept.worker(other_than=worker)
            os.kill(worker, signal.SIGKILL)
        kept.worker(other_than=worker)
        assert all(life.split()[1:] == [] for life in kept.lives())


def test_exit_code_75_starts_anew(tmp_path: Path) -> None:
    with Kept(tmp_path, "exit=75") as kept:
        until(lambda: len(kept.lives()) == 2)
        assert kept.process.poll() is None


def test_exit_code_78_ends_the_whole_and_says_why(tmp_path: Path) -> None:
    with Kept(tmp_path, "config") as kept:
        assert kept.process.wait(20) == 78
        assert "placeholder" in kept.output()
        assert len(kept.lives()) == 1


def test_exit_code_0_ends_the_whole(tmp_path: Path) -> None:
    with Kept(tmp_path, "exit=0") as kept:
        assert kept.process.wait(20) == 0


def test_a_stopped_heart_is_started_again(tmp_path: Path) -> None:
    with Kept(tmp_path, "hang", options=("--stall-seconds", "1.5")) as kept:
        first = kept.worker()
        assert kept.worker(other_than=first)
        told = json.loads((tmp_path / "run" / "last_exit.json").read_text())
        assert told["kind"] == "stalled"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_supervisor_drains_the_worker(tmp_path: Path, number: signal.Signals) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        kept.process.send_signal(number)
        assert kept.process.wait(20) == 0
        assert not processes.is_alive(worker, "")
        assert json.loads((tmp_path / "run" / "last_exit.json").read_text())["kind"] == "asked"


def test_a_worker_that_does_not_end_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    with Kept(tmp_path, "stubborn", options=("--drain-seconds", "0.5")) as kept:
        kept.worker()
        kept.process.terminate()
        assert kept.process.wait(20) == 0


def test_ctrl_c_twice_kills(tmp_path: Path) -> None:
    with Kept(tmp_path, "stubborn") as kept:
        worker = kept.worker()
        kept.process.send_signal(signal.SIGINT)
        time.sleep(0.2)  # two that arrive together are one to the system
        kept.process.send_signal(signal.SIGINT)
        assert kept.process.wait(20) == 0
        assert not processes.is_alive(worker, "")


def test_a_hang_up_without_a_terminal_is_passed_on_and_ends_nobody(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady", options=("--detached",)) as kept:
        worker = kept.worker()
        kept.process.send_signal(signal.SIGHUP)
        until(lambda: "hang-up" in (tmp_path / "lives").read_text())
        assert kept.call("ping") == {"pid": worker, "home": str(tmp_path)}
        assert kept.process.poll() is None


def test_a_second_supervisor_says_at_once_that_one_is_running(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        with Kept(tmp_path, "steady", options=("--lock-seconds", "60")) as second:
            assert second.process.wait(20) == 1, "it waits for the lock of one that is stopping, and of no other"
            assert f"already running for {tmp_path} (pid {kept.process.pid})" in second.output()
        assert processes.is_alive(worker, "")


def test_a_second_supervisor_waits_for_one_that_is_stopping_and_says_so(tmp_path: Path) -> None:
    with Kept(tmp_path, "stubborn", options=("--drain-seconds", "3")) as kept:
        kept.worker()
        kept.process.terminate()
        until(lambda: (holder := locks.holder(paths.parent_lock(str(tmp_path)))) and holder.is_stopping)
        with Kept(tmp_path, "config") as second:
            assert second.process.wait(20) == 78
            told = second.output()
        assert f"The gateway (pid {kept.process.pid}) is stopping. This one starts as soon as it has ended." in told


def test_a_worker_that_drains_by_request_is_waited_for_too(tmp_path: Path) -> None:
    with Kept(tmp_path, "slow-end") as kept:
        kept.worker()
        kept.call("stop")
        until(lambda: (seen := kept.beat()) and seen.doing == heartbeat.STOPPING)
        with Kept(tmp_path, "config") as second:
            assert second.process.wait(20) == 78
            assert "is stopping. This one starts as soon as it has ended." in second.output()


def test_a_restart_that_a_person_asks_for_ends_the_pause_and_the_memory_of_bad_starts(tmp_path: Path) -> None:
    with Kept(tmp_path, "crash-if=bad") as kept:
        (tmp_path / "bad").touch()
        until(lambda: len(kept.lives()) >= 3)
        (tmp_path / "bad").unlink()
        holder = locks.holder(paths.parent_lock(str(tmp_path)))
        assert holder is not None
        assert processes.send_signal(holder.pid, holder.mark, holder.restart_signal)
        kept.worker()
        assert kept.lives()[-1].split()[1:] == [], "with all its platforms"
        assert json.loads((tmp_path / "run" / "last_exit.json").read_text())["kind"] in ("crashed", "restart")


def test_a_start_that_settled_clears_the_memory_of_bad_starts(tmp_path: Path) -> None:
    with Kept(tmp_path, "crash", "settles") as kept:
        paused = kept.worker()
        assert "3 starts in a row went wrong" in kept.lives()[-1]
        (tmp_path / "resume").touch()
        until(lambda: (seen := kept.beat()) and not seen.safe and seen.settled)
        os.kill(paused, signal.SIGKILL)
        until(lambda: len(kept.lives()) == 5)
        assert kept.lives()[-1].split()[1:] == [], "not with platforms paused again"


def test_a_supervisor_started_while_the_old_one_ends_takes_over(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        with Kept(tmp_path, "steady") as second:
            kept.process.terminate()
            assert second.worker(other_than=worker)


def test_replace_stops_the_holder_of_our_lock_and_takes_over(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        with Kept(tmp_path, "steady", options=("--replace",)) as second:
            assert second.worker(other_than=worker)
            assert kept.process.wait(20) == 0
            holder = locks.holder(paths.parent_lock(str(tmp_path)))
            assert holder is not None
            assert holder.pid == second.process.pid


def test_command_lines_and_names_are_those_that_people_look_for(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        supervisor = Path(f"/proc/{kept.process.pid}/cmdline").read_bytes().replace(b"\0", b" ")
        assert b"hermes supervisor" in supervisor
        assert b"hermes gateway" not in supervisor
        assert Path(f"/proc/{worker}/comm").read_text().strip() == "hermes"


def test_the_supervisor_stays_small(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        kept.worker()
        assert processes.resident_bytes(kept.process.pid) < 14_000_000


def test_stop_and_restart_by_the_control_socket(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        first = kept.worker()
        kept.call("restart")
        kept.worker(other_than=first)
        kept.call("stop")
        assert kept.process.wait(20) == 0


def test_with_the_socket_gone_a_request_file_is_answered(tmp_path: Path) -> None:
    with Kept(tmp_path, "deaf") as kept:
        worker = kept.worker()
        assert kept.call("ping") == {"pid": worker, "home": str(tmp_path)}
        assert list((tmp_path / "run" / "requests").iterdir()) == []


def test_a_stopped_process_is_stalled_not_down(tmp_path: Path) -> None:
    with Kept(tmp_path, "steady") as kept:
        worker = kept.worker()
        os.kill(worker, signal.SIGSTOP)
        with pytest.raises(control.GatewayIsStalledError, match="stalled"):
            kept.call("ping", timeout=0.5)
        os.kill(worker, signal.SIGCONT)
        until(lambda: kept.call("ping"))
