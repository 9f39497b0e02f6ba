"""Which home a profile has, and what it is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.cli.support.program_name import command_name
from hermes.hosting import profiles
from hermes.store.home import Whose, inspect_home, make_home
from tests.fixtures.homes import snapshot, unpack_hermes_agent_home


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HERMES_HOME", raising=False)
    monkeypatch.delenv("HERMES_PROFILE", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "environ, home",
    [
        ({}, "~/.hermes"),
        ({"HERMES_PROFILE": ""}, "~/.hermes"),
        ({"HERMES_PROFILE": "work"}, "~/.hermes/profiles/work"),
        ({"HERMES_PROFILE": "default"}, "~/.hermes"),
        ({"HERMES_HOME": "/data", "HERMES_PROFILE": "work"}, "/data/profiles/work"),
        # As a gateway hands it on to its own processes:
        ({"HERMES_HOME": "/data/profiles/work", "HERMES_PROFILE": "work"}, "/data/profiles/work"),
        ({"HERMES_HOME": "~/.hermes/profiles/work", "HERMES_PROFILE": "play"}, "~/.hermes/profiles/play"),
        ({"HERMES_HOME": "~/.hermes/profiles/work", "HERMES_PROFILE": "default"}, "~/.hermes"),
        ({"HERMES_PROFILE": "../../etc"}, "~/.hermes"),
    ],
)
def test_home_and_profile_name_one_folder(user: Path, environ: dict[str, str], home: str) -> None:
    assert profiles.home_of(environ) == str(Path(home.replace("~", str(user))))


@pytest.mark.parametrize("name", ["", "..", "a/b", "-p", "Work", "é", "a" * 33, "a b", "a\n", ".x"])
def test_a_name_that_could_be_a_path_or_an_option_is_refused(
    user: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert profiles.why_no_name(name)
    assert main(["-p", name, "status"]) == 2
    assert "Invalid profile name" in capsys.readouterr().err
    assert not (user / ".hermes").exists()


def test_a_profile_that_is_not_there_is_not_made_by_a_typing_error(
    user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-p", "wrok", "status"]) == 78
    told = capsys.readouterr().err
    assert "There is no profile wrok. Create it: " in told
    assert "profile create wrok" in told
    assert not (user / ".hermes").exists()


def test_a_unit_is_called_after_its_profile(user: Path) -> None:
    root = user / ".hermes"
    assert profiles.unit_name(str(root)) == "hermes-gateway"
    assert profiles.unit_name(str(root / "profiles" / "work")) == "hermes-gateway-work"
    # A folder of somebody who calls it so is no profile.
    assert profiles.profile_of(str(user / "profiles" / "bob")) == ""
    make_home(user / "other")
    assert profiles.profile_of(str(user / "other" / "profiles" / "bob")) == "bob"


def test_a_profile_in_the_home_of_another_program_is_refused_and_changes_nothing(
    user: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = unpack_hermes_agent_home(user / ".hermes")
    before = snapshot(home)
    assert inspect_home(home / "profiles" / "work").whose is Whose.FOREIGN
    assert main(["profile", "create", "work"]) == 78
    assert "belongs to hermes-agent" in capsys.readouterr().err
    assert snapshot(home) == before


def test_a_home_leaves_the_modes_of_its_profiles_alone(user: Path) -> None:
    root = user / ".hermes"
    make_home(root)
    make_home(root / "profiles" / "work")
    skill = root / "profiles" / "work" / "skills" / "run.sh"
    skill.parent.mkdir()
    skill.write_text("#!/bin/sh\n")
    skill.chmod(0o755)
    make_home(root)
    assert skill.stat().st_mode & 0o777 == 0o755


def test_hints_of_a_service_name_the_profile_of_its_home(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not command_name().endswith("-p work")
    monkeypatch.setenv("HERMES_HOME", str(user / ".hermes" / "profiles" / "work"))
    assert command_name().endswith(" -p work")


def test_a_tool_of_an_agent_makes_and_removes_no_profiles(user: Path) -> None:
    make_home(user / ".hermes")
    make_home(user / ".hermes" / "profiles" / "work")
    code = (
        "import os, sys; from hermes.hosting import tool_processes as t; t.mark_children(); t.mark_children(); "
        "from hermes.cli.main import main; sys.exit(main(['profile', 'remove', 'work', '--yes']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "The agent cannot" in done.stderr
    assert (user / ".hermes" / "profiles" / "work").exists()
