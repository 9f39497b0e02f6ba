"""Installing and removing: shown first, nothing of others overwritten."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.cli.service import plan as planning
from hermes.hosting.service import services
from hermes.hosting.service.services import SystemdService
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope, UnitOrigin, inspect

FAKE_SYSTEMCTL = """#!/bin/sh
echo "$*" >> "{calls}"
case "$*" in *FragmentPath*) echo "{fragment}" ;; esac
exit {code}
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with systemd, whose `systemctl` writes down what it is asked and starts nothing."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(services, "SYSTEM_UNITS", str(tmp_path / "system"))
    monkeypatch.setattr(planning, "why_no_service", lambda _hermes: "")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    answer(tmp_path)
    return tmp_path / "calls"


def answer(folder: Path, *, code: int = 0, fragment: str = "") -> None:
    for name in ("systemctl", "loginctl"):
        program = folder / "bin" / name
        program.write_text(FAKE_SYSTEMCTL.format(calls=folder / "calls", code=code, fragment=fragment))
        program.chmod(0o755)


def unit() -> Path:
    return Path(SystemdService("hermes-gateway", ServiceScope.USER).path)


def test_a_dry_run_shows_the_unit_and_the_commands_and_writes_nothing(
    calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "install", "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert f"Unit file {unit()}:" in told
    assert f"  ExecStart={sys.executable} -P -m hermes supervisor\n" in told
    assert "  systemctl --user enable hermes-gateway\n" in told
    assert told.endswith("Nothing was written (--dry-run).\n")
    assert not unit().parent.exists()
    assert not Path(os.environ["HERMES_HOME"]).exists()
    assert not calls.exists(), "nobody was asked anything"


def test_the_unit_is_shown_written_and_started(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    told = capsys.readouterr().out
    text = unit().read_text()
    assert inspect(text) is UnitOrigin.OURS
    assert all(f"  {line}".rstrip() in told for line in text.splitlines())
    assert stat.S_IMODE(unit().stat().st_mode) == 0o644
    typed = calls.read_text().splitlines()
    assert typed[-4:-1] == [
        "--user daemon-reload",
        "--user enable hermes-gateway",
        "--user start --no-block --no-ask-password hermes-gateway",
    ]
    assert typed[-1].startswith("enable-linger ")
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0, "twice is as good as once"
    assert list(unit().parent.iterdir()) == [unit()]


def test_without_a_terminal_nobody_is_made_to_linger(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "install", "--watch", "0"]) == 0
    assert "enable-linger" not in calls.read_text()
    assert "→ loginctl enable-linger" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["file", "link", "masked"])
def test_a_foreign_unit_is_never_overwritten(
    calls: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    unit().parent.mkdir(parents=True)
    foreign = tmp_path / "foreign" if kind == "link" else unit()
    if kind != "masked":
        foreign.write_text("[Service]\nExecStart=/bin/true\n")
    if kind != "file":
        unit().symlink_to(foreign if kind == "link" else "/dev/null")
    for options in ([], ["--replace"]):
        assert main(["gateway", "install", "--yes", *options]) == 1
        assert "was not written by this command, so it stays as it is" in capsys.readouterr().err
    assert unit().is_symlink() is (kind != "file")
    assert kind == "masked" or foreign.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert main(["gateway", "uninstall", "--yes"]) == 3
    assert unit().is_symlink() or unit().exists()
    assert not calls.exists()


def test_a_unit_of_a_package_is_not_shadowed(calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(tmp_path, fragment="/usr/lib/systemd/user/hermes-gateway.service")
    assert main(["gateway", "install", "--yes"]) == 1
    assert "knows a unit hermes-gateway already, from /usr/lib/systemd" in capsys.readouterr().err
    assert not unit().exists()


def test_a_unit_that_was_changed_by_hand_is_kept(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    edited = unit().read_text().replace("WatchdogSec=60", "WatchdogSec=600")
    unit().write_text(edited)
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 1
    assert "was changed by hand" in capsys.readouterr().err
    assert main(["gateway", "install", "--yes", "--watch", "0", "--replace"]) == 0
    assert Path(f"{unit()}.old").read_text() == edited
    assert "WatchdogSec=60\n" in unit().read_text()
    unit().write_text(edited)
    assert main(["gateway", "uninstall", "--yes"]) == 0
    assert Path(f"{unit()}.old").read_text() == edited
    assert not unit().exists()


def test_a_service_of_another_home_is_not_taken_over(
    calls: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "other"))
    assert main(["gateway", "install", "--yes"]) == 1
    assert "serves another home" in capsys.readouterr().err
    monkeypatch.setenv("HERMES_HOME", os.path.expanduser("~/.hermes/profiles/work"))
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    assert unit().with_name("hermes-gateway-work.service").exists()


def test_a_manager_that_cannot_be_reached_is_named_before_anything_is_written(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(tmp_path, code=1)
    assert main(["gateway", "install", "--yes"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert not unit().exists()


def test_a_file_that_appears_at_the_last_moment_survives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "hermes-gateway.service"
    plan = ServicePlan("hermes-gateway", ServiceScope.USER, ("/bin/true",), "/h", "/", {})
    link = os.link

    def slow_link(source: str, target: str) -> None:
        Path(target).write_text("of another")
        link(source, target)

    monkeypatch.setattr(os, "link", slow_link)
    with pytest.raises(FileExistsError):
        services.write_unit(str(path), SystemdService("hermes-gateway", ServiceScope.USER, str(tmp_path)).render(plan))
    assert path.read_text() == "of another"
    assert not list(tmp_path.glob("*.new"))


def test_uninstall_stops_disables_and_removes_and_leaves_the_home(
    calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Path(os.environ["HERMES_HOME"])
    home.mkdir()
    (home / ".env").write_text("A=1\n")
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    calls.unlink()
    assert main(["gateway", "uninstall", "--dry-run"]) == 0
    assert unit().exists()
    assert main(["gateway", "uninstall"]) == 0
    assert calls.read_text().splitlines()[-3:] == [
        "--user stop --no-ask-password hermes-gateway",
        "--user disable hermes-gateway",
        "--user daemon-reload",
    ]
    assert not unit().exists()
    assert (home / ".env").read_text() == "A=1\n"
    assert "stays as it is" in capsys.readouterr().out


def test_stop_asks_the_manager_which_would_start_the_gateway_again(
    calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    assert main(["gateway", "stop"]) == 3, "nothing runs"
    assert calls.read_text().splitlines()[-1] == "--user stop --no-ask-password hermes-gateway"
    answer(tmp_path, code=1)
    capsys.readouterr()
    assert main(["gateway", "stop"]) == 1
    assert "Type: systemctl --user stop hermes-gateway" in capsys.readouterr().err
    assert main(["gateway", "start"]) == 1
    assert "did not start the gateway" in capsys.readouterr().err
