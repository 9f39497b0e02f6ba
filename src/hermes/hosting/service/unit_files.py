"""Write the systemd unit and the launchd agent, and recognize our own.

Pure functions: nothing here touches a file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from enum import StrEnum

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.hosting import profiles

STOP_SECONDS = 20
"""The supervisor drains for 8 s, then kills and cleans up for 3: systemd's own kill comes after that."""
WATCHDOG_SECONDS = 60
RESTART_SECONDS = 2
NEEDS_A_PERSON = 78
"""The exit code of a configuration that nobody can start: starting it again every two seconds helps nobody."""

_MARKER = re.compile(r"Written by `hermes gateway install`, checksum ([0-9a-f]{16})")
_HOME = re.compile(r"^# Home: (.+)$", re.MULTILINE)
_BLANK = "0" * 16


class ServiceScope(StrEnum):
    USER = "user"
    SYSTEM = "system"


class UnitOrigin(StrEnum):
    """Who wrote a unit file."""

    OURS = "ours"
    EDITED = "ours, changed by hand"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What a service runs. ``user`` is '' where it runs as the person who installs it."""

    name: str
    scope: ServiceScope
    command: tuple[str, ...]
    home: str
    folder: str
    environ: Mapping[str, str]
    user: str = ""
    group: str = ""


def systemd_unit(plan: ServicePlan) -> str:
    """Render the unit.

    Hardening stops where the agent's tools would break. No option that needs seccomp stands here: without
    CAP_SYS_ADMIN each of them implies NoNewPrivileges, and then `newuidmap` of rootless podman and `sudo` fail. A
    smaller CapabilityBoundingSet breaks them as well. Nothing is mounted over /proc or /sys: the kernel would refuse
    bubblewrap its own /proc.
    """
    for value in (*plan.command, plan.home, plan.folder, *plan.environ.values()):
        refuse_control_characters(value)
    is_system = plan.scope is ServiceScope.SYSTEM
    lines = [
        f"# Written by `hermes gateway install`, checksum {_BLANK}.",
        "# To change something: `systemctl edit` keeps your lines in a file beside this one.",
        f"# Home: {plan.home}",
        "[Unit]",
        f"Description=Hermes gateway{'' if plan.name == profiles.UNIT else f' ({plan.name})'}",
        *(["Wants=network-online.target", "After=network-online.target postgresql.service"] if is_system else []),
        "# The supervisor paces the starts of its worker; systemd must never give up on the supervisor.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        *([f"User={plan.user}", f"Group={plan.group or plan.user}"] if is_system else []),
        f"WorkingDirectory={_path(plan.folder)}",
        *[f"Environment={_quoted(f'{name}={value}')}" for name, value in plan.environ.items()],
        f"ExecStart={' '.join(_argument(word) for word in plan.command)}",
        'ExecReload=/bin/sh -c "kill -HUP $MAINPID"',
        "Restart=always",
        f"RestartSec={RESTART_SECONDS}",
        f"RestartPreventExitStatus={NEEDS_A_PERSON}",
        "TimeoutStartSec=90",
        f"TimeoutStopSec={STOP_SECONDS}",
        f"WatchdogSec={WATCHDOG_SECONDS}",
        "# Only the supervisor gets SIGTERM: it lets its worker finish first.",
        "KillMode=mixed",
        "# A command that runs out of memory must not end the gateway with it.",
        "OOMPolicy=continue",
        "# The agent's commands get limits of their own below this unit.",
        "Delegate=yes",
        "UMask=0077",
        "LimitCORE=0",
        f"SyslogIdentifier={plan.name}",
        *(["ProtectSystem=full"] if is_system else []),
        "",
        "[Install]",
        f"WantedBy={'multi-user.target' if is_system else 'default.target'}",
    ]
    return _with_checksum("\n".join(lines) + "\n")


def launchd_agent(plan: ServicePlan, label: str, console: str) -> str:
    """Render the property list of a launchd agent. ``console`` takes what the gateway prints."""
    import plistlib

    agent = {
        "Label": label,
        "ProgramArguments": list(plan.command),
        "EnvironmentVariables": dict(plan.environ),
        "WorkingDirectory": plan.folder,
        "RunAtLoad": True,
        "KeepAlive": True,
        "ThrottleInterval": 10,
        "ExitTimeOut": STOP_SECONDS,
        "ProcessType": "Interactive",  # others are slowed down by macOS
        "Umask": 0o077,
        "StandardOutPath": console,
        "StandardErrorPath": console,
    }
    first, line_end, rest = plistlib.dumps(agent, sort_keys=False).decode().partition("\n")
    return _with_checksum(f"{first}{line_end}<!-- Written by `hermes gateway install`, checksum {_BLANK}. -->\n{rest}")


def inspect(text: str) -> UnitOrigin:
    """Tell who wrote a unit file."""
    found = _MARKER.search(text)
    if found is None:
        return UnitOrigin.FOREIGN
    return UnitOrigin.OURS if _checksum(text.replace(found[1], _BLANK, 1)) == found[1] else UnitOrigin.EDITED


def home_of(text: str) -> str:
    """The home that a unit file of ours serves; '' where it names none."""
    if found := _HOME.search(text):
        return found[1].strip()
    if text.lstrip().startswith("<?xml"):
        import plistlib
        from xml.parsers.expat import ExpatError

        try:
            agent = plistlib.loads(text.encode())
        except (plistlib.InvalidFileException, ExpatError, ValueError):
            return ""
        environ = agent.get("EnvironmentVariables") if isinstance(agent, dict) else None
        return str(environ.get("HERMES_HOME", "")) if isinstance(environ, dict) else ""
    return ""


def user_of(text: str) -> str:
    """The user that a systemd unit runs as; '' where it names none."""
    found = re.search(r"^User=(\S+)$", text, re.MULTILINE)
    return found[1] if found else ""


def refuse_control_characters(value: str) -> None:
    """Raise ConfigError for a value that would add a line to a unit file."""
    if not value.isprintable():
        raise ConfigError(f"{value!r} holds a character that no unit file can hold. Choose another path or value.")


def _with_checksum(text: str) -> str:
    return text.replace(_BLANK, _checksum(text), 1)


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _argument(text: str) -> str:
    """A word of a command line, in which systemd would fill in variables too."""
    quoted = _quoted(text).replace("$", "$$")
    return text if quoted == f'"{text}"' and re.fullmatch(r"[\w@+=:,./-]+", text) else quoted


def _path(text: str) -> str:
    return text.replace("%", "%%")
