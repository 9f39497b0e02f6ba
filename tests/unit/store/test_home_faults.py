"""A fault of the home is named with the command that cures it, and a sound home has none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.store import home_faults
from hermes.store.home import make_home

HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.execute("CREATE TABLE IF NOT EXISTS notes (text)")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_home(tmp_path / "hermes")
    return tmp_path / "hermes"


def test_a_sound_home_has_no_fault_and_the_look_leaves_nothing_behind(home: Path) -> None:
    before = sorted(home.iterdir())
    assert home_faults.find_faults(home) == []
    assert sorted(home.iterdir()) == before


def test_a_home_that_is_not_there_yet_has_no_fault(tmp_path: Path) -> None:
    assert home_faults.find_faults(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "number, words",
    [
        (errno.ENOSPC, "is full → free some space; nothing else is needed"),
        (errno.EDQUOT, "is full: your quota is used up → delete some files of yours there"),
        (errno.EROFS, "is read-only → sudo mount -o remount,rw "),
        (errno.EIO, "fails (input/output error) → copy what matters away; then: dmesg"),
    ],
)
def test_what_the_disk_refuses_is_named_with_its_cure(home: Path, number: int, words: str) -> None:
    fault = home_faults.fault_of_disk(OSError(number, os.strerror(number)), home)
    assert str(fault).startswith(f"The disk of {home_faults.display_path(home)} {words}")


def test_an_error_that_is_no_fault_of_the_disk_stays_what_it_is(home: Path) -> None:
    assert home_faults.fault_of_disk(OSError(errno.ENOENT, "gone"), home) is None


def test_nobody_is_told_to_change_the_rights_of_a_folder_outside_the_home(home: Path) -> None:
    refused = PermissionError(errno.EACCES, "denied", "/etc/shadow")
    assert home_faults.fault_behind(refused, home) is None


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="only Linux lists who holds a lock")
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_the_process_that_holds_a_lock_is_named_with_its_end(tmp_path: Path, journal: str) -> None:
    database = tmp_path / "state.db"
    command = [sys.executable, "-I", "-c", HOLD, str(database), journal]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        fault = home_faults.lock_fault(database)
        holder.communicate("\n", timeout=20)
    assert fault is not None
    assert fault.text.startswith("state.db is locked by python")
    assert f"(process {holder.pid})" in fault.text
    assert fault.cure == f"let it finish, or end it: kill {holder.pid}"
    assert home_faults.lock_fault(database) is None


@pytest.mark.parametrize(
    "path, text",
    [("~/.hermes/run", "~/.hermes/run"), ("/srv/a b/run", "'/srv/a b/run'"), ("/srv/hermes", "/srv/hermes")],
)
def test_a_path_is_shown_as_a_shell_takes_it(path: str, text: str) -> None:
    assert home_faults.typed(Path(os.path.expanduser(path))) == text
