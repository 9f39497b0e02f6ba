"""`hermes kanban` on the real command line, without a gateway and with one that is stopped."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.e2e.keeping import until
from tests.e2e.terminal import Terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with Terminal(tmp_path_factory.mktemp("kanban")) as terminal:
        yield terminal


def test_the_board_is_used_without_a_gateway(terminal: Terminal) -> None:
    assert "nothing was changed" not in terminal.here("kanban", "init").stdout
    assert "nothing was changed" in terminal.here("kanban", "init").stdout
    assert terminal.here("kanban", "create", "Bake", "--priority", "3").stdout == "✓ #1 !3 Bake (todo)\n"
    made = terminal.here("kanban", "create", "Eat", "--needs", "1", "--agent")
    assert made.stdout.startswith("✓ #2 Eat (blocked, dependency, agent)")
    assert "todo (1)\n  #1 !3 Bake (todo)" in terminal.here("kanban", "list").stdout
    shown = json.loads(terminal.here("kanban", "show", "2", "--json").stdout)
    assert [needed["id"] for needed in shown["needs"]] == [1]
    assert "off, since no gateway runs" in terminal.here("kanban", "stats").stdout


def test_a_mistake_is_said_in_a_sentence(terminal: Terminal) -> None:
    done = terminal.here("kanban", "show", "99")
    assert done.returncode == 1
    assert "There is no task #99." in done.stderr
    assert "no number of a task" in terminal.here("kanban", "show", "soon").stderr


def test_stats_tell_the_truth_while_the_worker_is_stopped(terminal: Terminal) -> None:
    terminal.start_gateway()
    until(lambda: "Task runner: idle" in terminal.here("kanban", "stats").stdout)
    worker = terminal.told("status")["snapshot"]["pid"]
    os.kill(worker, signal.SIGSTOP)
    try:
        hung = terminal.here("kanban", "stats")
        assert hung.returncode == 1
        assert "stalled" in hung.stderr
        assert "Task runner" not in hung.stdout
    finally:
        os.kill(worker, signal.SIGCONT)
    until(lambda: "Task runner: idle" in terminal.here("kanban", "stats").stdout)
