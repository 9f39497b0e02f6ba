"""What systemd would hear."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hermes.hosting import sd_notify


def test_without_systemd_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    assert sd_notify.send("READY=1") is False


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_the_service_manager_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@hermes-test-{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        assert sd_notify.send("READY=1") is True
        assert manager.recv(100) == b"READY=1"


def test_a_service_manager_that_is_gone_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    assert sd_notify.send("WATCHDOG=1") is False
