"""Who keeps the supervisor up is told truthfully."""

from __future__ import annotations

import pytest

from hermes.hosting.service_manager import find_service_manager


@pytest.mark.parametrize(
    "environ, cgroup, supervisor, words",
    [
        ({}, "0::/system.slice/hermes-gateway.service", 812, "systemd (hermes-gateway)"),
        ({"NOTIFY_SOCKET": "/run/n"}, "0::/system.slice/bot.service", 812, "systemd (bot)"),
        ({}, "0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", 812, ""),
        ({"INVOCATION_ID": "f00"}, "0::/user.slice/gnome-terminal-server.service", 812, ""),
        ({}, "0::/", 1, "its container"),
        ({"XPC_SERVICE_NAME": "hermes-gateway"}, "", 812, "launchd (hermes-gateway)"),
        ({}, "", 812, ""),
    ],
    ids=[
        "our unit",
        "another unit that wants news",
        "a terminal",
        "a terminal's service",
        "container",
        "launchd",
        "hand",
    ],
)
def test_the_keeper(environ: dict[str, str], cgroup: str, supervisor: int, words: str) -> None:
    assert find_service_manager(environ, cgroup, supervisor) == words
