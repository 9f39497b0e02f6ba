"""A command that finds the store damaged says so: how many rows came back, which are gone, where the old file is."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.hosting import paths
from tests.e2e.terminal import Terminal

PAGE = 4096


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal(tmp_path) as terminal:
        assert terminal.here("-z", "hello").stdout == "echo: hello\n"
        yield terminal


def only(home: Path, sql: str) -> str:
    with contextlib.closing(sqlite3.connect(f"file:{home / 'state.db'}?mode=ro&immutable=1", uri=True)) as file:
        return str(file.execute(sql).fetchone()[0])


def lose(home: Path, table: str) -> None:
    root = int(only(home, f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'"))
    with (home / "state.db").open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xa5" * PAGE)


def kept_file(home: Path) -> Path:
    (kept,) = [entry for entry in home.iterdir() if entry.name.startswith("state.db.corrupt.")]
    return kept


def test_a_lone_command_that_repairs_the_store_says_what_came_back_and_logs_it(terminal: Terminal) -> None:
    people = terminal.here("people", "list").stdout
    lose(terminal.home, "inbox")
    done = terminal.here("people", "list")
    assert (done.returncode, done.stdout) == (0, people)
    assert done.stderr.startswith("! state.db was damaged (")
    assert "; lost: 1 row of inbox" in done.stderr
    assert f"The damaged file is kept as {kept_file(terminal.home)}." in done.stderr
    log = Path(paths.log(str(terminal.home))).read_text(encoding="utf-8")
    assert "Store trouble" in log
    assert "; lost: 1 row of inbox" in log
    assert terminal.here("people", "list").stderr == ""


def test_an_answer_asked_for_beside_a_repair_is_given_alone_on_its_channel(terminal: Terminal) -> None:
    lose(terminal.home, "outbox")
    done = terminal.here("-z", "still there?")
    assert done.stdout == "echo: still there?\n"
    assert "! state.db was damaged (" in done.stderr


def test_doctor_says_what_it_repaired_and_afterwards_that_it_was(terminal: Terminal) -> None:
    lose(terminal.home, "inbox")
    found = stores(terminal)
    assert found["level"] == "hint"
    assert "; lost: 1 row of inbox" in found["text"]
    assert str(kept_file(terminal.home)) in found["text"]
    later = stores(terminal)
    assert later["level"] == "good"
    assert "; lost: 1 row of inbox" in later["more"][0]


def stores(terminal: Terminal) -> dict[str, Any]:
    told = json.loads(terminal.here("doctor", "--json").stdout)
    (found,) = [finding for finding in told["findings"] if finding["name"] == "stores"]
    assert isinstance(found, dict)
    return found


def test_trace_says_of_an_id_it_does_not_know_that_rows_of_its_time_were_lost(terminal: Terminal) -> None:
    name = only(terminal.home, "SELECT id FROM inbox")
    lose(terminal.home, "inbox")
    terminal.here("people", "list")
    done = terminal.here("trace", name)
    assert done.returncode == 1
    assert (
        f"There is no message, turn or delivery '{name}' in this home. Lost when state.db was recovered on"
        in done.stderr
    )
    assert "1 row of inbox" in done.stderr
    assert kept_file(terminal.home).name in done.stderr
