"""The agent on macOS, against a ``launchctl`` that answers as it is documented to. It was never run on a Mac."""

from __future__ import annotations

import json
import os
import plistlib
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.cli.service import plan as planning
from hermes.hosting import lifecycle
from hermes.hosting.service import service_manager, services
from hermes.hosting.service.services import LaunchdService
from hermes.hosting.service.unit_files import UnitOrigin

LABEL = "ai.hermes.gateway"
FAKE_LAUNCHCTL = (
    f"#!{sys.executable} -S\n"
    + '''
"""bootstrap, bootout, enable, disable and print of one gui domain; what is loaded stands in a file."""
import json, os, pathlib, plistlib, sys

store = pathlib.Path(__file__).with_name("launchd.json")
known = json.loads(store.read_text()) if store.exists() else {"loaded": {}, "disabled": [], "asked": []}
verb, *words = sys.argv[1:]
known["asked"].append([verb, *words])
domain = f"gui/{os.getuid()}"


def end(code, complaint=""):
    store.write_text(json.dumps(known))
    if complaint:
        print(complaint, file=sys.stderr)
    sys.exit(code)


if verb == "print" and words == [domain]:
    print(f"{domain} = {{ type = login }}")
    end(0)
if verb == "bootstrap":
    if words[0] != domain:
        end(125, "Bootstrap failed: 125: Domain does not support specified action")
    try:
        job = plistlib.loads(pathlib.Path(words[1]).read_bytes())
    except (OSError, plistlib.InvalidFileException):
        end(5, "Bootstrap failed: 5: Input/output error")
    if job["Label"] in known["loaded"] or job["Label"] in known["disabled"]:
        end(5, "Bootstrap failed: 5: Input/output error")
    known["loaded"][job["Label"]] = "running" if job.get("RunAtLoad") else "not running"
    end(0)
name = words[0].removeprefix(f"{domain}/")
if verb == "enable":
    known["disabled"] = [each for each in known["disabled"] if each != name]
    end(0)
if verb == "bootout":
    if known["loaded"].pop(name, None) is None:
        end(3, "Boot-out failed: 3: No such process")
    end(0)
if verb == "print":
    if name not in known["loaded"]:
        end(113, f'Could not find service "{name}" in domain for port')
    print(f"{words[0]} = {{\\n\\tactive count = 1\\n\\tstate = {known['loaded'][name]}\\n}}")
    end(0)
end(64, f"Unrecognized subcommand: {verb}")
'''
)

DOCUMENTED = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "WorkingDirectory": str,
    "RunAtLoad": bool,
    "KeepAlive": bool,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "ProcessType": str,
    "Umask": int,
    "StandardOutPath": str,
    "StandardErrorPath": str,
}
"""Keys of launchd.plist(5) that we use, with their types there."""


class Launchd:
    """The fake, and what it knows."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "launchd.json"
        program = folder / "launchctl"
        program.write_text(FAKE_LAUNCHCTL)
        program.chmod(0o755)

    @property
    def known(self) -> dict[str, object]:
        return dict(json.loads(self.store.read_text())) if self.store.exists() else {"loaded": {}, "asked": []}

    def state(self, state: str, *, disabled: bool = False) -> None:
        loaded = {LABEL: state} if state else {}
        known = {"loaded": loaded, "disabled": [LABEL] if disabled else [], "asked": []}
        self.store.write_text(json.dumps(known))


@pytest.fixture
def launchd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launchd:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(planning, "why_no_service", lambda _hermes: "")
    return Launchd(tmp_path / "bin")


def agent() -> Path:
    return Path(LaunchdService("hermes-gateway").path)


def test_the_agent_is_installed_once_or_twice_and_removed(launchd: Launchd, capsys: pytest.CaptureFixture[str]) -> None:
    launchd.state("", disabled=True)
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    assert services.read_unit(str(agent())).origin is UnitOrigin.OURS
    assert launchd.known["loaded"] == {LABEL: "running"}, "also one that somebody had disabled"
    assert "launchd starts it when you log in" in capsys.readouterr().out
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0, "twice is as good as once"
    found = services.find_installed(os.environ["HERMES_HOME"])
    assert found is not None
    assert found.name == LABEL
    assert main(["gateway", "uninstall", "--yes"]) == 0
    assert not agent().exists()
    assert launchd.known["loaded"] == {}
    assert main(["gateway", "uninstall", "--yes"]) == 3


def test_every_key_of_the_agent_is_documented_and_of_its_type(launchd: Launchd) -> None:
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    written = plistlib.loads(agent().read_bytes())
    assert {name: type(value) for name, value in written.items()} == DOCUMENTED
    assert agent().name == f"{written['Label']}.plist", "launchd.plist(5) wants the file to be named so"
    assert written["ProcessType"] in ("Background", "Standard", "Adaptive", "Interactive")
    assert all(isinstance(word, str) for word in written["ProgramArguments"])
    assert all(os.path.isabs(written[name]) for name in ("WorkingDirectory", "StandardOutPath", "StandardErrorPath"))
    assert agent().stat().st_mode & 0o022 == 0, "launchd refuses what others may write"


def test_what_is_so_already_is_no_failure(launchd: Launchd) -> None:
    service = LaunchdService("hermes-gateway")
    agent().parent.mkdir(parents=True)
    agent().write_bytes(plistlib.dumps({"Label": LABEL, "RunAtLoad": True}))
    stop, start = service.stop_steps()[0], service.start_steps()[0]
    assert (service.how_it_stands(), service.run(stop).code) == ("not loaded", 0)
    assert (service.run(start).code, service.how_it_stands()) == (0, "running")
    assert service.run(start).code == 0, "a gateway that runs is left alone"
    assert [asked[0] for asked in launchd.known["asked"]].count("bootout") == 1  # type: ignore[attr-defined]
    launchd.state("spawn scheduled")
    assert (service.run(start).code, service.how_it_stands()) == (0, "running"), "one that waits is loaded anew"
    agent().write_text("garbage")
    assert service.run(stop).code == 0
    assert service.run(start) == services.ProgramAnswer(5, "", "Bootstrap failed: 5: Input/output error")


def test_start_stop_and_restart_go_through_launchd(launchd: Launchd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "READY_SECONDS", 0.1)
    assert main(["gateway", "install", "--yes", "--watch", "0"]) == 0
    home = Path(os.environ["HERMES_HOME"])
    launchd.state("")
    for verb in (lifecycle.start, lifecycle.restart):
        assert "launchd (ai.hermes.gateway) says: running" in verb(home, "hermes").text
        assert launchd.known["loaded"] == {LABEL: "running"}
    for _ in range(2):
        assert lifecycle.stop(home, "hermes").exit_code == lifecycle.NOT_RUNNING
        assert launchd.known["loaded"] == {}
    launchd.state("", disabled=True)
    told = lifecycle.start(home, "hermes").text
    assert "did not start the gateway: Bootstrap failed: 5: Input/output error. Type: launchctl bootstrap gui/" in told


def test_the_fake_refuses_what_launchctl_does_not_know(launchd: Launchd, tmp_path: Path) -> None:
    done = subprocess.run([tmp_path / "bin" / "launchctl", "dance", "x"], capture_output=True, check=False, timeout=20)
    assert (done.returncode, done.stderr) == (64, b"Unrecognized subcommand: dance\n")
    assert service_manager.LAUNCHD_LABEL == LABEL
