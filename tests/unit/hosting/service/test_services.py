"""Which service serves a home, and what the status says of it."""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.hosting.service import service_status, services, unit_files
from hermes.hosting.service.service_status import ServiceFacts
from hermes.hosting.service.services import LaunchdService, SystemdService
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope


def install(home: str, name: str = "hermes-gateway") -> Path:
    plan = ServicePlan(name, ServiceScope.USER, ("/usr/bin/python3",), home, "/", {"HERMES_HOME": home})
    service = SystemdService(name, ServiceScope.USER)
    path = Path(service.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(service.render(plan))
    return path


@pytest.fixture(autouse=True)
def no_units_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(services, "SYSTEM_UNITS", str(tmp_path / "system"))


def test_a_service_is_found_by_the_home_that_it_serves(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    install(str(tmp_path / "one"))
    install(str(tmp_path / "two"), "hermes-gateway-two")
    for home, name in (("one", "hermes-gateway"), ("link", "hermes-gateway"), ("two", "hermes-gateway-two")):
        found = services.find_installed(str(tmp_path / home))
        assert found is not None
        assert found.name == name
    assert services.find_installed(str(tmp_path / "three")) is None
    assert services.other_homes(str(tmp_path / "one")) == [("hermes-gateway-two", str(tmp_path / "two"))]


def test_a_foreign_unit_and_a_link_are_no_services_of_ours(tmp_path: Path) -> None:
    path = install("/h")
    ours = path.read_text()
    path.write_text("[Unit]\n# Home: /h\n")
    assert services.find_installed("/h") is None
    path.unlink()
    (tmp_path / "elsewhere").write_text(ours)
    path.symlink_to(tmp_path / "elsewhere")
    assert services.find_installed("/h") is None
    assert services.read_unit(str(path)).origin is unit_files.UnitOrigin.FOREIGN


def test_without_a_service_of_the_system_its_verbs_say_how_to_install_one() -> None:
    with pytest.raises(ConfigError, match="sudo hermes gateway install --system"):
        services.system_service()


def test_a_program_that_is_missing_or_never_ends_is_told_in_words() -> None:
    assert services.call(["no-such-program-here"]).complaint == "no-such-program-here is not installed"
    assert services.call(["sleep", "60"], 0.1).complaint == "sleep: no answer in time"


def test_a_profile_on_launchd_has_a_label_of_its_own() -> None:
    assert LaunchdService("hermes-gateway").path.endswith("/Library/LaunchAgents/ai.hermes.gateway.plist")
    assert LaunchdService("hermes-gateway-work").name == "ai.hermes.gateway.work"
    assert LaunchdService("ai.hermes.gateway.work").name == "ai.hermes.gateway.work"


def test_each_service_names_the_lines_of_its_own_home() -> None:
    assert LaunchdService("hermes-gateway").journal("/srv/my home") == "tail -n 50 '/srv/my home/logs/console.log'"
    assert "--user -u hermes-two " in SystemdService("hermes-two", ServiceScope.USER).journal("/srv/two")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_root_touches_the_home_of_a_service_as_its_user() -> None:
    with tempfile.TemporaryDirectory() as folder:  # other users cannot reach the folders of pytest
        made = Path(folder) / "made"
        Path(folder).chmod(0o777)
        with services.acting_as("nobody"):
            made.touch()
            assert services.call(["id", "-u"]).output == "0", "the service manager is asked as root"
        assert made.stat().st_uid == pwd.getpwnam("nobody").pw_uid
    assert os.geteuid() == 0


OURS = "systemd (hermes-gateway)"


@pytest.mark.parametrize(
    "facts, words",
    [
        (ServiceFacts(True, OURS, OURS), f"{OURS} starts with the machine and after a crash"),
        (ServiceFacts(True, OURS, OURS, is_lingering=False, user="ann"), f"{OURS} ends when ann logs out → loginctl"),
        (ServiceFacts(True, OURS, OURS, is_enabled=False, enable="systemctl enable x"), "machine → systemctl enable x"),
        (ServiceFacts(True, "", OURS), f"by hand, though {OURS} is installed → hermes gateway stop, then"),
        (ServiceFacts(True, ""), "unsupervised: it runs by hand, so a reboot ends it → hermes gateway install"),
        (ServiceFacts(False, "", OURS, stands="failed (exit-code, 1)"), "installed and failed (exit-code, 1) → hermes"),
        (ServiceFacts(False, "", others=(("hermes-gateway", "/h"),)), "hermes-gateway serves another home, /h → sudo"),
    ],
    ids=["all well", "no linger", "not enabled", "by hand beside it", "by hand", "at rest", "another home"],
)
def test_the_status_says_what_keeps_the_gateway_up(facts: ServiceFacts, words: str) -> None:
    assert words in service_status.sentence(facts)


def test_a_container_and_an_empty_home_need_no_words() -> None:
    assert service_status.sentence(ServiceFacts(True, "its container")) == ""
    assert service_status.sentence(ServiceFacts(False)) == ""
