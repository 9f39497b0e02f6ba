"""What a service would run, and what is said where there can be none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hermes.cli.service import plan as planning
from hermes.cli.service.plan import InstallRequest, service_manager_words
from hermes.core.errors import ConfigError
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope


def words(platform: str = "linux", *, has_systemd: bool = False, os_release: str = "6.1.0", first: str = "init") -> str:
    return service_manager_words(
        platform=platform,
        has_systemd=has_systemd,
        os_release=os_release,
        first_process=first,
        hermes="/opt/hermes",
        user="ann",
        distro="Debian",
    )


def test_with_systemd_or_launchd_there_is_nothing_to_explain() -> None:
    assert words(has_systemd=True) == ""
    assert words("darwin") == ""


def test_wsl2_without_systemd_is_told_the_three_ways_that_work() -> None:
    told = words(os_release="5.15.167.4-microsoft-standard-WSL2")
    assert "systemd=true" in told
    assert "/etc/wsl.conf" in told
    assert 'schtasks /Create /TN hermes-gateway /SC ONLOGON /TR "wsl.exe -d Debian -u ann --exec /opt/hermes' in told
    assert "/opt/hermes gateway start" in told


def test_windows_and_other_inits_are_told_what_works() -> None:
    assert "WSL2" in words("win32")
    assert "schtasks" in words("win32")
    assert "runs openrc-init instead of systemd" in words(first="openrc-init")
    assert "@reboot /opt/hermes gateway start" in words(first="openrc-init")


def test_the_service_runs_this_very_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/opt/x/bin:relative:/usr/bin:/opt/x/bin")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    service, plan = planning.make_plan(InstallRequest(), Path("/home/ann/.hermes"))
    assert plan.command == (sys.executable, "-P", "-m", "hermes", "supervisor")
    assert (plan.scope, plan.user) == (ServiceScope.USER, "")
    assert plan.environ["TZ"] == "Asia/Shanghai"
    assert plan.environ["PATH"].startswith("/opt/x/bin:/usr/bin:")
    assert "relative" not in plan.environ["PATH"]
    assert "secret" not in service.render(plan), "everybody on the machine can read a unit"


def test_settings_of_this_shell_alone_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("SLACK_BOT_TOKEN=xoxb-1\n")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    assert planning.only_in_this_shell(tmp_path) == ["TELEGRAM_BOT_TOKEN"]


def test_a_service_of_the_system_has_a_user_and_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HERMES_HOME")
    monkeypatch.setattr(planning, "OWN_USER", "hermes-nobody-has-this")
    _, plan = planning.make_plan(InstallRequest(is_system=True), Path("/root/.hermes"))
    assert (plan.user, plan.home, plan.folder) == (planning.OWN_USER, "/var/lib/hermes/.hermes", "/var/lib/hermes")
    assert plan.environ["PATH"] == planning.SYSTEM_PATH
    assert [step[0] for step in planning.user_steps(plan)] == ["useradd"]
    _, plan = planning.make_plan(InstallRequest(is_system=True, run_as="root"), Path("/home/ann/.hermes"))
    assert (plan.user, plan.home) == ("root", os.path.expanduser("~root/.hermes"))
    assert planning.user_steps(plan) == []


def test_a_user_that_is_not_there_and_a_user_without_the_system_are_refused() -> None:
    with pytest.raises(ConfigError, match="There is no user 'nobody-here'"):
        planning.make_plan(InstallRequest(is_system=True, run_as="nobody-here"), Path("/h"))
    with pytest.raises(ConfigError, match="Add --system"):
        planning.make_plan(InstallRequest(run_as="root"), Path("/h"))


def test_a_service_that_could_not_start_is_found_out_before_it_is_installed(tmp_path: Path) -> None:
    def tried(python: str, home: str) -> str:
        return planning.why_it_cannot_run(
            ServicePlan("x", ServiceScope.USER, (python,), home, "/", {"HERMES_HOME": home, "PATH": "/bin"})
        )

    assert tried(sys.executable, str(tmp_path / "new")) == ""
    (tmp_path / "file").touch()
    assert "is not a folder" in tried(sys.executable, str(tmp_path / "file"))
    assert "cannot be run: No such file" in tried("/no/such/python", str(tmp_path))
