"""A command gets a cgroup of its own where the gateway may divide one; plain files stand for the kernel's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.agent.backends import cgroups
from hermes.agent.backends.limits import CommandLimits


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "cgroup.subtree_control").write_text("\n")
    (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return tmp_path


def test_our_processes_move_below_before_controllers_are_enabled(unit: Path) -> None:
    assert cgroups.divide(unit)
    assert (unit / "gateway" / "cgroup.procs").read_text() == str(os.getpid())
    assert (unit / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_what_is_divided_already_is_left_alone(unit: Path) -> None:
    (unit / "cgroup.subtree_control").write_text("memory pids\n")
    assert cgroups.divide(unit)
    assert not (unit / "gateway").exists()


def test_a_cgroup_with_other_peoples_processes_is_not_divided(unit: Path) -> None:
    nobody_of_ours = 2**22 + 1  # in a container even process 1 may be the shell that runs this
    (unit / "cgroup.procs").write_text(f"{nobody_of_ours}\n")
    assert not cgroups.divide(unit)


def test_a_cgroup_without_the_controllers_is_not_divided(unit: Path) -> None:
    (unit / "cgroup.controllers").write_text("hugetlb\n")
    assert not cgroups.divide(unit)


def test_limits_are_written_before_the_process_enters(unit: Path) -> None:
    group = cgroups.enter(unit, 4711, CommandLimits(processes=40, memory=1024))
    assert group is not None
    written = {path.name: path.read_text() for path in group.iterdir()}
    assert written["pids.max"] == "40"
    assert written["memory.max"] == "1024"
    assert written["cgroup.procs"] == "4711"


def test_a_cgroup_that_cannot_be_made_leaves_the_command_to_the_other_limits(tmp_path: Path) -> None:
    assert cgroups.enter(tmp_path / "gone", 4711, CommandLimits()) is None


def test_empty_cgroups_of_earlier_commands_are_removed(unit: Path) -> None:
    (unit / "command-c_1").mkdir()
    cgroups.sweep(unit)
    assert not (unit / "command-c_1").exists()
