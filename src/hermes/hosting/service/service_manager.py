"""Detect what runs the supervisor: systemd, launchd, a container or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hermes.hosting import processes

LAUNCHD_LABEL = "ai.hermes.gateway"
_CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv")


def find_service_manager(
    environ: Mapping[str, str], cgroups: str, supervisor_pid: int, *, is_below_init_of_container: bool = False
) -> str:
    """Words for a screen, "" when it runs by hand.

    A terminal of a desktop lives below some service too, so that alone proves nothing: systemd must have started the
    supervisor itself, or the service must be named after us. ``cgroups`` is /proc/self/cgroup.
    """
    unit = _unit_of(cgroups)
    is_main = environ.get("SYSTEMD_EXEC_PID") == str(supervisor_pid)
    if unit and (is_main or unit.startswith("hermes")):
        return f"systemd ({unit})"
    if supervisor_pid == 1 or is_below_init_of_container:
        return "its container"
    if environ.get("XPC_SERVICE_NAME", "0").startswith((LAUNCHD_LABEL, "hermes")):
        return f"launchd ({environ['XPC_SERVICE_NAME']})"
    return ""


def _unit_of(cgroups: str) -> str:
    """The innermost service of a process. A service may have cgroups below its own."""
    for line in cgroups.splitlines():
        _, kind, path = (*line.split(":", 2), "", "")[:3]
        names = [name for name in path.split("/") if name.endswith((".service", ".scope"))]
        if kind in ("", "name=systemd") and names and names[-1].endswith(".service"):
            return names[-1].removesuffix(".service")
    return ""


def who_keeps_us_up(supervisor_pid: int, *, is_detached: bool = False) -> str:
    """Words for a screen. ``is_detached``: `gateway start` began it, and process 1 of a container only adopted it."""
    try:
        cgroups = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cgroups = ""
    # With `init: true` a small init is process 1, and the supervisor is its child.
    is_contained = any(map(os.path.exists, _CONTAINER_FILES)) and processes.parent_of(supervisor_pid) == 1
    is_contained = is_contained and not is_detached
    return find_service_manager(os.environ, cgroups, supervisor_pid, is_below_init_of_container=is_contained)
