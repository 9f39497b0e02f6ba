"""Units and agents: what they say, and whose they are."""

from __future__ import annotations

import plistlib
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.hosting.parent import Settings
from hermes.hosting.service import unit_files
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope, UnitOrigin
from tests.fakes.programs import needs


def plan(scope: ServiceScope = ServiceScope.USER, home: str = "/home/ann/.hermes", folder: str = "/tmp") -> ServicePlan:
    user = "daemon" if scope is ServiceScope.SYSTEM else ""
    command = (sys.executable, "-P", "-m", "hermes", "supervisor")
    environ = {"HERMES_HOME": home, "PATH": "/usr/bin:/bin"}
    return ServicePlan("hermes-gateway", scope, command, home, folder, environ, user, "daemon" if user else "")


def values(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


@needs("systemd-analyze", "systemd")
@pytest.mark.parametrize("scope", ServiceScope)
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path, scope: ServiceScope) -> None:
    path = tmp_path / "hermes-gateway.service"
    home = f'{tmp_path}/a home with "quotes", 100 %, $money and 中文'
    Path(home).mkdir()
    path.write_text(unit_files.systemd_unit(plan(scope, home, folder=home)))
    of_user = ["--user"] if scope is ServiceScope.USER else []
    done = subprocess.run(
        ["systemd-analyze", *of_user, "--recursive-errors=no", "verify", path],
        capture_output=True, text=True, timeout=60, check=False, env={"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/tmp"},
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_unit_keeps_the_gateway_up_and_lets_the_supervisor_finish() -> None:
    found = values(unit_files.systemd_unit(plan()))
    assert (found["Type"], found["NotifyAccess"], found["Restart"]) == ("notify", "main", "always")
    assert found["KillMode"] == "mixed"
    assert int(found["TimeoutStopSec"]) > Settings("/home", []).drain_seconds + 3
    assert found["RestartPreventExitStatus"] == "78"
    assert found["StartLimitIntervalSec"] == "0"
    assert found["WantedBy"] == "default.target"
    assert "User" not in found


def test_a_unit_of_the_system_runs_as_its_own_user_and_cannot_change_the_system() -> None:
    found = values(unit_files.systemd_unit(plan(ServiceScope.SYSTEM)))
    assert (found["User"], found["Group"], found["ProtectSystem"]) == ("daemon", "daemon", "full")
    assert found["WantedBy"] == "multi-user.target"


@pytest.mark.parametrize("scope", ServiceScope)
def test_no_line_of_the_unit_breaks_a_tool_of_the_agent(scope: ServiceScope) -> None:
    """Rootless podman needs setuid programs, bubblewrap a /proc of its own, both need namespaces."""
    breaking = {
        "NoNewPrivileges", "RestrictNamespaces", "SystemCallFilter", "SystemCallArchitectures", "LockPersonality",
        "RestrictSUIDSGID", "RestrictRealtime", "RestrictAddressFamilies", "MemoryDenyWriteExecute", "PrivateUsers",
        "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectProc",
        "ProtectHostname", "ProtectClock", "PrivateDevices", "CapabilityBoundingSet", "ProcSubset", "PrivateTmp",
    }  # fmt: skip
    assert not breaking & values(unit_files.systemd_unit(plan(scope))).keys()


def test_what_systemd_would_fill_in_is_written_out() -> None:
    odd = ServicePlan(
        "hermes-gateway", ServiceScope.USER, ('/opt/my $HOME/%h/py"thon\\', "-m"), "/h", "/a%b", {"PATH": "/x:$HOME/%u"}
    )
    text = unit_files.systemd_unit(odd)
    assert 'ExecStart="/opt/my $$HOME/%%h/py\\"thon\\\\" -m\n' in text
    assert "WorkingDirectory=/a%%b\n" in text
    assert 'Environment="PATH=/x:$HOME/%%u"\n' in text, "variables are not filled in there, specifiers are"


@pytest.mark.parametrize(
    "home", ["/home/a\nExecStartPre=/bin/evil", "/home/a\x1b[2J", "/home/a\u2028b", "/home/a\udcff"]
)
def test_a_path_that_would_add_a_line_is_refused(home: str) -> None:
    with pytest.raises(ConfigError, match="no unit file can hold"):
        unit_files.systemd_unit(plan(home=home))


def test_our_own_file_is_recognized_until_somebody_edits_it() -> None:
    for text in (unit_files.systemd_unit(plan()), unit_files.launchd_agent(plan(), "ai.hermes.gateway", "/c.log")):
        assert unit_files.inspect(text) is UnitOrigin.OURS
        assert unit_files.inspect(text.replace("hermes supervisor", "hermes supervisor ")) is not UnitOrigin.FOREIGN
        assert unit_files.inspect(text + "\n# mine\n") is UnitOrigin.EDITED
        assert unit_files.home_of(text) == "/home/ann/.hermes"
    foreign = "[Unit]\nDescription=Hermes Agent Gateway\n[Service]\nExecStart=/bin/true\n"
    assert unit_files.inspect(foreign) is UnitOrigin.FOREIGN
    assert unit_files.home_of(foreign) == ""
    assert unit_files.home_of("<?xml garbage") == ""


def test_the_agent_of_launchd_is_a_property_list_that_starts_again() -> None:
    agent = plistlib.loads(unit_files.launchd_agent(plan(), "ai.hermes.gateway", "/c.log").encode())
    assert agent["Label"] == "ai.hermes.gateway"
    assert agent["ProgramArguments"][1:] == ["-P", "-m", "hermes", "supervisor"]
    assert (agent["RunAtLoad"], agent["KeepAlive"], agent["Umask"]) == (True, True, 0o077)
    assert agent["ExitTimeOut"] > Settings("/home", []).drain_seconds + 3
    assert agent["EnvironmentVariables"]["HERMES_HOME"] == "/home/ann/.hermes"
