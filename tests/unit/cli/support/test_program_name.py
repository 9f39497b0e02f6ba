"""Commands on a screen can be typed as they stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.cli.support.program_name import as_typed, command_name

CLONE = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def _nothing_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()


def test_in_the_clone_the_script_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLONE)
    assert command_name() == "./scripts/hermes"


def test_elsewhere_the_script_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_name() == str(CLONE / "scripts" / "hermes")


def test_a_link_to_us_on_the_path_makes_it_short(tmp_path: Path) -> None:
    (tmp_path / "bin" / "hermes").symlink_to(CLONE / "scripts" / "hermes")
    assert command_name() == "hermes"


def test_another_programs_hermes_on_the_path_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "bin" / "hermes"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.chdir(CLONE)
    assert command_name() == "./scripts/hermes"


def test_only_the_command_is_rewritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CLONE)
    told = "~/.hermes is hermes-agent's; another hermes command says: hermes doctor, or `hermes setup`"
    here = (
        "~/.hermes is hermes-agent's; another hermes command says: ./scripts/hermes doctor, or `./scripts/hermes setup`"
    )
    assert as_typed(told) == as_typed(here) == here


def test_a_command_that_names_its_python_is_not_rewritten_again() -> None:
    here = "Restart it: /opt/venv/bin/python -m hermes gateway restart"
    assert as_typed(here) == here
