"""The service under a real systemd, booted in a container: the long form of ``tests/unit/hosting/service``.

``HERMES_TEST_SYSTEMD=ROOT ./scripts/test tests/e2e/test_service_booted.py``, see ``tests/fakes/booted.py``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.booted import BootedSystemd, why_not_booted

ROOT = os.environ.get("HERMES_TEST_SYSTEMD", "")
REASON = why_not_booted(ROOT) if ROOT else "HERMES_TEST_SYSTEMD names no Debian root with systemd: the long form"
pytestmark = [pytest.mark.skipif(bool(REASON), reason=REASON), pytest.mark.timeout(400)]

UNIT = "/etc/systemd/system/hermes-gateway.service"
CHECKS = """\
set -eux
id -un
cd "$(mktemp -d)"
bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true
git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
unshare --user --map-root-user true
python3 -c 'import ctypes; libc = ctypes.CDLL(None); exit(0 if libc.syscall(444, 0, 0, 1) > 0 else 1)' && echo landlock
unshare --user sleep 20 & sleep 0.5; newuidmap $! 0 "$(id -u)" 1 && echo newuidmap
touch /etc/hermes-was-here && exit 9 || true
echo all-work
"""
"""What tools of the agent do, under the unit's own lines; 444 is landlock_create_ruleset, which reports its version."""


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    with BootedSystemd(Path(ROOT)) as booted:
        booted.hermes("gateway", "uninstall", "--system", "--yes")
        yield booted
        booted.hermes("gateway", "uninstall", "--system", "--yes")


def test_a_foreign_unit_is_left_alone(machine: BootedSystemd) -> None:
    path = machine.root / UNIT.lstrip("/")
    path.write_text("[Service]\nExecStart=/bin/true\n")
    told = machine.hermes("gateway", "install", "--system", "--yes")
    assert told.returncode == 1
    assert "was not written by this command" in told.stderr
    assert path.read_text() == "[Service]\nExecStart=/bin/true\n"
    path.unlink()
    machine.run("systemctl", "daemon-reload")


def test_the_service_of_the_system_is_installed_watched_and_verified(machine: BootedSystemd) -> None:
    told = machine.hermes("gateway", "install", "--system", "--yes")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "✓ The gateway stayed up for 30 s without a restart." in told.stdout
    assert (machine.show("ActiveState"), machine.show("SubState")) == ("active", "running")
    assert machine.show("StatusText") == "The gateway is running."
    verified = machine.run("systemd-analyze", "verify", UNIT)
    assert (verified.returncode, verified.stdout, verified.stderr) == (0, "", "")
    status = machine.hermes("gateway", "status", "--system").stdout
    assert "kept up by systemd (hermes-gateway)" in status
    assert "service    systemd (hermes-gateway) starts with the machine and after a crash" in status
    owners = {path.stat().st_uid for path in (machine.root / "var/lib/hermes/.hermes").rglob("*")}
    assert owners == {machine.uid("hermes")}, "nothing in the home belongs to root"
    machine.until(lambda: "Gateway started" in machine.run("journalctl", "-u", "hermes-gateway").stdout, 20)


def worker_of(machine: BootedSystemd) -> int:
    main = machine.show("MainPID")
    found = machine.run("cat", f"/proc/{main}/task/{main}/children").stdout.split()
    return int(found[0]) if found else 0


def test_a_killed_worker_comes_back_under_the_same_supervisor(machine: BootedSystemd) -> None:
    main, worker = machine.show("MainPID"), worker_of(machine)
    machine.kill(worker, signal.SIGKILL)
    machine.until(lambda: worker_of(machine) not in (0, worker), 30)
    machine.until(lambda: machine.show("StatusText") == "The gateway is running.", 60)
    assert machine.show("MainPID") == main


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "terminated"])
def test_a_supervisor_that_ends_comes_back(machine: BootedSystemd, number: int) -> None:
    main = machine.show("MainPID")
    machine.kill(int(main), number)
    machine.until(lambda: machine.show("MainPID") not in ("0", main), 60)
    machine.until(lambda: machine.show("ActiveState") == "active", 60)
    assert machine.show("MainPID") != main


def test_a_supervisor_that_hangs_is_killed_by_the_watchdog_and_comes_back(machine: BootedSystemd) -> None:
    folder = machine.root / "run/systemd/system/hermes-gateway.service.d"
    machine.run("mkdir", "-p", "/run/systemd/system/hermes-gateway.service.d")
    machine.run("sh", "-c", f"printf '[Service]\\nWatchdogSec=5\\n' > /{folder.relative_to(machine.root)}/short.conf")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", "hermes-gateway")
    main = machine.show("MainPID")
    machine.kill(int(main), signal.SIGSTOP)
    machine.until(lambda: machine.show("MainPID") not in ("0", main), 60)
    machine.until(lambda: machine.show("ActiveState") == "active", 60)
    assert "Watchdog timeout" in machine.run("journalctl", "-u", "hermes-gateway").stdout
    machine.run("rm", "-r", "/run/systemd/system/hermes-gateway.service.d")
    machine.run("systemctl", "daemon-reload")


def test_a_service_that_was_stopped_stays_stopped_until_it_is_started(machine: BootedSystemd) -> None:
    told = machine.hermes("gateway", "stop", "--system")
    assert (told.returncode, told.stdout[:17]) == (0, "✓ Gateway stopped"), told.stdout + told.stderr
    machine.until(lambda: machine.show("ActiveState") == "inactive", 20)
    machine.run("sleep", "5")  # longer than RestartSec
    assert machine.show("ActiveState") == "inactive"
    status = machine.hermes("gateway", "status", "--system").stdout
    assert "service    systemd (hermes-gateway) is installed and inactive → hermes gateway start" in status
    told = machine.hermes("gateway", "start", "--system")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "by systemd (hermes-gateway)" in told.stdout
    told = machine.hermes("gateway", "restart", "--system")
    assert (told.returncode, told.stdout[:19]) == (0, "✓ Gateway restarted"), told.stdout + told.stderr


def test_the_service_starts_with_the_machine(machine: BootedSystemd) -> None:
    machine.reboot()
    machine.until(lambda: machine.show("ActiveState") == "active", 60)
    assert machine.show("NRestarts") == "0"


def test_installing_again_leaves_a_running_service_alone(machine: BootedSystemd) -> None:
    main = machine.show("MainPID")
    told = machine.hermes("gateway", "install", "--system", "--yes", "--watch", "2")
    assert (told.returncode, machine.show("MainPID")) == (0, main), told.stdout + told.stderr


def test_another_user_is_told_to_use_sudo(machine: BootedSystemd) -> None:
    machine.run("useradd", "--create-home", "ann")
    told = machine.hermes("gateway", "stop", "--system", user="ann")
    assert (told.returncode, "Repeat the command with sudo." in told.stderr) == (1, True)
    told = machine.hermes("gateway", "stop", user="hermes")
    assert told.returncode == 1
    assert "Access denied. Type: sudo systemctl stop hermes-gateway" in told.stderr
    assert machine.show("ActiveState") == "active"


def test_the_tools_of_the_agent_work_under_the_lines_of_the_unit(machine: BootedSystemd) -> None:
    text = machine.run("cat", UNIT).stdout
    script = machine.root / "opt" / "checks.sh"
    script.write_text(CHECKS)
    script.chmod(0o755)
    lines = []
    for line in text.splitlines():
        name = line.partition("=")[0]
        if name in ("Type", "NotifyAccess", "Restart", "RestartSec", "RestartPreventExitStatus", "WatchdogSec"):
            continue
        lines.append("ExecStart=/bin/sh /opt/checks.sh" if name == "ExecStart" else line)
    (machine.root / "etc/systemd/system/hermes-checks.service").write_text(
        "\n".join(lines).replace("[Service]", "[Service]\nType=oneshot")
    )
    with (machine.root / "etc/subuid").open("a") as file:
        file.write("hermes:300000:65536\n")
    machine.run("systemctl", "daemon-reload")
    done = machine.run("systemctl", "start", "hermes-checks")
    journal = machine.run("journalctl", "-u", "hermes-checks", "-o", "cat").stdout
    assert done.returncode == 0, journal
    for word in ("hermes", "landlock", "newuidmap", "all-work"):
        assert word in journal.splitlines(), journal
    assert not (machine.root / "etc/hermes-was-here").exists()


def test_a_person_installs_a_service_of_their_own(machine: BootedSystemd) -> None:
    machine.run("useradd", "--create-home", "ann")
    machine.run("loginctl", "enable-linger", "ann")
    machine.until(lambda: machine.run("systemctl", "is-active", f"user@{machine.uid('ann')}").returncode == 0, 60)
    machine.hermes("gateway", "stop", "--system")  # its port
    told = machine.hermes("gateway", "install", "--yes", "--watch", "3", user="ann")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "✓ ann lingers: the service starts with the machine and outlives every log-out." in told.stdout
    shown = machine.run("systemctl", "--user", "show", "-p", "ActiveState", "--value", "hermes-gateway", user="ann")
    assert shown.stdout.strip() == "active"
    again = machine.hermes("gateway", "install", "--yes", "--watch", "3", user="ann")
    assert again.returncode == 0, again.stdout + again.stderr
    replaced = machine.hermes("gateway", "run", "--replace", user="ann")
    assert (replaced.returncode, "Stop the service first" in replaced.stderr) == (1, True)
    gone = machine.hermes("gateway", "uninstall", "--yes", user="ann")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert not (machine.root / "home/ann/.config/systemd/user/hermes-gateway.service").exists()
    assert (machine.root / "home/ann/.hermes/state.db").exists(), "the data stays"
