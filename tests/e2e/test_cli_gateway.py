"""The command line beside a running gateway: everything goes through it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermes.cli.support import client as asking
from hermes.hosting.control import client as control
from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Terminal(tmp_path_factory.mktemp("beside")) as terminal:
        terminal.start_gateway()
        yield terminal


def test_asking_once_goes_through_the_gateway(terminal: Terminal) -> None:
    done = terminal.hermes("-z", "hello")
    assert (done.stdout, done.stderr, done.returncode) == ("echo: hello\n", "", 0)


def test_bytes_that_are_no_text_and_texts_without_end_are_clear_sentences(terminal: Terminal) -> None:
    assert terminal.here("-z", "caf\udce9").stdout == "echo: caf\ufffd\n"
    done = terminal.here("-z", "-", typed="a" * 5_000_001)
    assert done.returncode == 1
    assert "too long for one message" in done.stderr


def test_several_can_ask_at_the_same_time(terminal: Terminal) -> None:
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda number: terminal.hermes("-z", f"n{number}").stdout, range(3)))
    assert answers == ["echo: n0\n", "echo: n1\n", "echo: n2\n"]


def test_the_status_says_how_everything_is(terminal: Terminal) -> None:
    done = terminal.here("status")
    assert done.returncode == 0
    assert done.stdout.startswith("✓ Gateway is running: up ")
    told = terminal.told("status")
    assert told["state"] == "running"
    assert told["counts"]["people"] == {"owner": 1}


def test_a_trace_shows_the_whole_life_of_a_message(terminal: Terminal) -> None:
    asked = terminal.told("-z", "where am I?")
    shown = terminal.here("trace", asked["turn"]).stdout
    for word in ("in ", "turn ", "model ", "out ", "answered", "sent as message", "12 + 7 tokens"):
        assert word in shown


def test_a_message_to_a_chat_that_nobody_looks_at_waits_and_says_so(terminal: Terminal) -> None:
    done = terminal.here("send", "local:nobody", "hello", "--wait")
    assert done.returncode == 1
    assert "nobody is looking at local:nobody" in done.stdout


@pytest.mark.parametrize("target", ["telegram", "telegram:42", "nowhere:1"])
def test_a_target_that_cannot_be_reached_is_refused_in_words(terminal: Terminal, target: str) -> None:
    done = terminal.here("send", target, "hello")
    assert done.returncode == 1
    assert done.stderr.startswith("✗ ")


def test_the_doctor_asks_the_gateway_about_its_store(terminal: Terminal) -> None:
    told = terminal.told("doctor")
    levels = {finding["name"]: finding["level"] for finding in told["findings"]}
    assert levels["stores"] == "good"
    assert levels["service"] in {"good", "hint"}
    assert told["is_well"]


def test_a_link_to_the_dashboard_goes_into_a_pipe_only_where_that_was_asked_for(terminal: Terminal) -> None:
    printed = terminal.here("dashboard", "open", "--print")
    assert (printed.returncode, printed.stdout.count("\n")) == (0, 1)
    assert "#sign-in=" in printed.stdout
    withheld = terminal.here("dashboard", "--no-open")
    assert (withheld.returncode, withheld.stdout) == (1, "")
    assert "dashboard open --print" in withheld.stderr


def test_a_reader_that_has_seen_enough_is_no_trouble(terminal: Terminal) -> None:
    session = terminal.told("trace", terminal.told("-z", "long")["turn"])["turn"]["session_id"]
    done = subprocess.run(
        [
            "bash",
            "-c",
            '"$@" | head -c 1; echo " ${PIPESTATUS[0]}"',
            "-",
            *terminal.command("sessions", "export", session),
        ],
        env=terminal.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout in {"{ 141\n", "{ 0\n"}  # our output may have fitted into the pipe
    assert done.stderr == ""


def test_a_gateway_that_is_frozen_is_told_from_one_that_works(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_SECONDS", 0.5)
    worker = control.call(terminal.home, "ping")["pid"]
    os.kill(worker, signal.SIGSTOP)
    try:
        done = terminal.here("-z", "hello")
    finally:
        os.kill(worker, signal.SIGCONT)
    assert done.returncode == 1
    assert "The gateway is stalled" in done.stderr
    assert terminal.here("-z", "awake?").stdout == "echo: awake?\n"


def test_an_answer_goes_on_after_the_worker_was_killed_in_its_middle(tmp_path: Path) -> None:
    with Terminal(tmp_path, "--mode", "stream", "--tokens", "30", "--rate", "20") as terminal:
        terminal.start_gateway()
        asking = subprocess.Popen(
            terminal.command("chat"),
            env=terminal.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if asking.stdin is None or asking.stdout is None:
            raise AssertionError("no pipes")
        asking.stdin.write("count\n")
        asking.stdin.close()
        asking.stdout.readline()
        until(lambda: control.call(terminal.home, "status")["running"])  # a pipe is shown whole paragraphs
        os.kill(control.call(terminal.home, "ping")["pid"], signal.SIGKILL)
        shown = asking.stdout.read()
        asking.stdout.close()
        assert asking.wait(10) == 0
        assert "(the gateway was restarted; going on)" in shown
        last = shown.splitlines()[-1].strip()
        assert last.startswith("w0 w1 ")
        assert last.endswith("w28 w29")
        (turn,) = {line["turn"] for line in _lines(terminal)}
        assert terminal.told("trace", turn)["turn"]["attempts"] == 2


def _lines(terminal: Terminal) -> list[dict[str, str]]:
    session = terminal.told("sessions", "list")[0]["id"]
    lines = [json.loads(line) for line in terminal.here("sessions", "export", session).stdout.splitlines()]
    return [line for line in lines if line["seq"]]


def test_a_chat_that_worked_alone_makes_room_for_the_gateway(tmp_path: Path) -> None:
    with Terminal(tmp_path) as terminal:
        chat = subprocess.Popen(
            terminal.command("chat"), env=terminal.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if chat.stdin is None or chat.stdout is None:
            raise AssertionError("no pipes")
        chat.stdout.readline()
        chat.stdin.write("alone\n")
        chat.stdin.flush()
        assert chat.stdout.readline() == "echo: alone\n"
        terminal.start_gateway()
        chat.stdin.write("together\n")
        chat.stdin.close()
        assert chat.stdout.read() == "echo: together\n"
        chat.stdout.close()
        assert chat.wait(10) == 0
        assert terminal.told("sessions", "list")[0]["seq"] == 4
