"""Who keeps the supervisor up is told truthfully."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.hosting.service import service_manager
from hermes.hosting.service.service_manager import find_service_manager


@pytest.mark.parametrize(
    "environ, cgroup, supervisor, words",
    [
        ({}, "0::/system.slice/hermes-gateway.service", 812, "systemd (hermes-gateway)"),
        ({}, "12:pids:/x\n1:name=systemd:/system.slice/hermes-gateway.service", 812, "systemd (hermes-gateway)"),
        ({}, "0::/system.slice/hermes-gateway.service/gateway", 812, "systemd (hermes-gateway)"),
        ({"SYSTEMD_EXEC_PID": "812"}, "0::/system.slice/bot.service", 812, "systemd (bot)"),
        ({"SYSTEMD_EXEC_PID": "700"}, "0::/system.slice/ssh.service", 812, ""),
        ({}, "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", 812, ""),
        ({"INVOCATION_ID": "f00"}, "0::/user.slice/gnome-terminal-server.service", 812, ""),
        ({}, "0::/", 1, "its container"),
        ({"XPC_SERVICE_NAME": "ai.hermes.gateway"}, "", 812, "launchd (ai.hermes.gateway)"),
        ({}, "", 812, ""),
    ],
    ids=[
        "our unit",
        "our unit, cgroup v1",
        "our unit, delegated cgroup",
        "another unit that started us",
        "a shell of another unit",
        "a terminal",
        "a terminal's service",
        "container",
        "launchd",
        "hand",
    ],
)
def test_the_keeper(environ: dict[str, str], cgroup: str, supervisor: int, words: str) -> None:
    assert find_service_manager(environ, cgroup, supervisor) == words


def test_a_small_init_in_front_of_the_supervisor_is_its_container() -> None:
    assert find_service_manager({}, "0::/", 7, is_below_init_of_container=True) == "its container"


@pytest.mark.parametrize("is_detached, words", [(True, ""), (False, "its container")])
def test_a_gateway_that_a_container_only_adopted_runs_by_hand(
    is_detached: bool, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gateway start` leaves the supervisor to process 1, as an init of the container would have started it."""
    monkeypatch.setattr(service_manager, "_CONTAINER_FILES", (str(tmp_path),))
    monkeypatch.setattr("hermes.hosting.processes.parent_of", lambda _: 1)
    monkeypatch.delenv("SYSTEMD_EXEC_PID", raising=False)
    assert service_manager.who_keeps_us_up(812, is_detached=is_detached) == words
