"""What systemd hears, and who may say it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.hosting.service import sd_notify
from hermes.hosting.service.sd_notify import ServiceNotifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@hermes-test-{os.getpid()}-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address.replace("@", "\0", 1))
        listener.settimeout(0)
        yield address, listener


def heard(listener: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(listener.recv(500).decode())
        except BlockingIOError:
            return found


def test_without_systemd_nothing_happens() -> None:
    assert sd_notify.send("", "READY=1") is False


def test_a_service_manager_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    assert sd_notify.send(str(tmp_path / "gone"), "WATCHDOG=1") is False


def test_an_address_of_another_kind_is_left_alone() -> None:
    assert sd_notify.send("vsock:2:1234", "READY=1") is False


def test_a_long_start_is_extended_and_ready_is_said_once(manager: tuple[str, socket.socket]) -> None:
    address, listener = manager
    notifier = ServiceNotifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000000"})
    notifier.alive()
    assert heard(listener) == ["EXTEND_TIMEOUT_USEC=60000000", "WATCHDOG=1"]
    notifier.ready()
    notifier.ready()
    assert heard(listener) == ["READY=1", "STATUS=The gateway is running."]
    notifier.alive()
    notifier.describe("The worker ended (killed by SIGKILL)\nREADY=1")
    notifier.stopping()
    assert heard(listener) == ["WATCHDOG=1", "STATUS=The worker ended (killed by SIGKILL) READY=1", "STOPPING=1"]


@pytest.mark.parametrize(
    "watchdog, feeds",
    [({}, False), ({"WATCHDOG_USEC": "1"}, True), ({"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}, False)],
    ids=["no watchdog", "ours", "of another process"],
)
def test_only_a_watchdog_that_watches_us_is_fed(
    manager: tuple[str, socket.socket], watchdog: dict[str, str], feeds: bool
) -> None:
    address, listener = manager
    environ = {"NOTIFY_SOCKET": address, "PATH": "/bin", **watchdog}
    ServiceNotifier(environ).alive()
    assert ("WATCHDOG=1" in heard(listener)) is feeds
    assert environ == {"PATH": "/bin"}, "no child of the supervisor can speak for the service"
