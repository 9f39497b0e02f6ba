"""Detect what runs the supervisor: systemd, launchd, a container or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def find_service_manager(environ: Mapping[str, str], cgroup: str, supervisor_pid: int) -> str:
    """Words for a screen, "" when it runs by hand.

    A terminal of a desktop lives below some service too, so that alone proves nothing: the service must
    have asked for our notifications or be named after us.
    """
    unit = cgroup.strip().rpartition("/")[2]
    if unit.endswith(".service") and ("NOTIFY_SOCKET" in environ or unit.startswith("hermes")):
        return f"systemd ({unit.removesuffix('.service')})"
    if supervisor_pid == 1:
        return "its container"
    if environ.get("XPC_SERVICE_NAME", "0").startswith("hermes"):
        return f"launchd ({environ['XPC_SERVICE_NAME']})"
    return ""


def who_keeps_us_up(supervisor_pid: int) -> str:
    try:
        cgroup = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()[-1]
    except (OSError, IndexError, ValueError):
        cgroup = ""
    return find_service_manager(os.environ, cgroup, supervisor_pid)
