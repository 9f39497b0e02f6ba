"""Plan a service: which command, which user, which environment; and find out whether that can work."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.hosting import profiles
from hermes.hosting.service.services import LaunchdService, Service, SystemdService, user_name
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope

OWN_USER = "hermes"
OWN_FOLDER = "/var/lib/hermes"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CHECK_SECONDS = 30.0
_CARRIED = ("TZ", "LANG", "LC_ALL", "HERMES_ENV_FILE", "HERMES_PROFILE")
"""Variables of the shell that a service needs as well. None is a secret: everybody can read a unit file."""
_ELSEWHERE = (
    ".\n  Install Hermes where that user can read it, for example below /opt, or name another user: --run-as NAME"
)
_CHECK = "import sys; from hermes.hosting import paths; print(paths.why_unusable(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class InstallRequest:
    """What was typed. ``run_as`` is '' where nobody was named; ``linger`` None: ask."""

    is_system: bool = False
    run_as: str = ""
    is_dry_run: bool = False
    is_yes: bool = False
    replaces: bool = False
    linger: bool | None = None
    watch_seconds: float = 30.0


def service_manager_words(
    *, platform: str, has_systemd: bool, os_release: str, first_process: str, hermes: str, user: str, distro: str
) -> str:
    """Say what works on a machine without a service manager; '' where there is one."""
    if platform == "darwin" or (platform == "linux" and has_systemd):
        return ""
    if platform in ("win32", "cygwin"):
        return (
            "✗ Windows has no service manager that Hermes can use. Two ways work:\n"
            "  WSL2             install Hermes inside WSL2 and type this command there\n"
            f'  Task Scheduler   schtasks /Create /TN hermes-gateway /SC ONLOGON /TR "{hermes} gateway run"'
        )
    if "microsoft" in os_release.lower():
        return (
            "✗ This WSL2 runs without systemd, so it has no services. Three ways work:\n"
            "  with systemd     put [boot] and systemd=true into /etc/wsl.conf, type `wsl --shutdown` in Windows, "
            "open WSL again and repeat this command\n"
            "  by Windows       schtasks /Create /TN hermes-gateway /SC ONLOGON /TR "
            f'"wsl.exe -d {distro or "Ubuntu"} -u {user} --exec {hermes} gateway run"\n'
            f"  by hand          {hermes} gateway start   (until WSL is shut down)"
        )
    return (
        f"✗ This machine runs {first_process or 'another init'} instead of systemd, so no unit can be installed. "
        "Two ways work:\n"
        f"  by hand          {hermes} gateway start   (until the next reboot)\n"
        f"  at every boot    crontab -e, and the line: @reboot {hermes} gateway start\n"
        "  In a container, the container's own restart policy does it: see docs/containers.md."
    )


def why_no_service(hermes: str) -> str:
    """The words of this machine; '' where services can be installed."""
    return service_manager_words(
        platform=sys.platform,
        has_systemd=os.path.isdir("/run/systemd/system"),
        os_release=_read("/proc/sys/kernel/osrelease"),
        first_process=_read("/proc/1/comm").strip(),
        hermes=hermes,
        user=user_name(os.getuid()),
        distro=os.environ.get("WSL_DISTRO_NAME", ""),
    )


def make_plan(request: InstallRequest, home: Path) -> tuple[Service, ServicePlan]:
    """Decide what the service runs. ``home`` is the one of the person who types; a system user has one of its own."""
    scope = ServiceScope.SYSTEM if request.is_system else ServiceScope.USER
    if sys.platform == "darwin":
        if request.is_system:
            raise ConfigError("On macOS the service is an agent of your own account. Leave --system out.")
        service: Service = LaunchdService(profiles.unit_name(str(home)))
    else:
        service = SystemdService(profiles.unit_name(str(home)), scope)
    if request.run_as and not request.is_system:
        raise ConfigError("--run-as names the user of a service of the system. Add --system.")
    user, group, folder = "", "", os.path.expanduser("~")
    if request.is_system:
        user = request.run_as or OWN_USER
        group, folder = _account(user, is_own=not request.run_as)
        home = Path(os.environ.get("HERMES_HOME") or os.path.join(folder, ".hermes")).absolute()
    path = SYSTEM_PATH if request.is_system else _search_path(os.environ.get("PATH", ""))
    carried = {name: os.environ[name] for name in _CARRIED if os.environ.get(name)}
    if request.is_system:
        carried.pop("HERMES_ENV_FILE", None)
        carried.pop("HERMES_PROFILE", None)
    environ = {"HERMES_HOME": str(home), "PATH": path, **carried}
    command = (sys.executable, "-P", "-m", "hermes", "supervisor")
    return service, ServicePlan(service.name, scope, command, str(home), folder, environ, user, group)


def _account(user: str, *, is_own: bool) -> tuple[str, str]:
    """The main group and the home folder of a user; those that our own user will have, where it is still missing."""
    import grp

    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        if is_own:
            return user, OWN_FOLDER
        raise ConfigError(f"There is no user {user!r} on this machine. Create it, or leave --run-as out.") from None
    try:
        return grp.getgrgid(entry.pw_gid).gr_name, entry.pw_dir
    except KeyError:
        return str(entry.pw_gid), entry.pw_dir


def user_steps(plan: ServicePlan) -> list[tuple[str, ...]]:
    """The commands that make our own user and its folder, where they are missing."""
    if plan.user != OWN_USER:
        return []
    try:
        pwd.getpwnam(plan.user)
    except KeyError:
        nologin = next((path for path in ("/usr/sbin/nologin", "/sbin/nologin") if os.path.exists(path)), "/bin/false")
        words = ("useradd", "--system", "--user-group", "--home-dir", plan.folder, "--create-home", "--shell", nologin)
        return [(*words, plan.user)]
    if os.path.isdir(plan.folder):
        return []
    return [("install", "--directory", "--mode=700", f"--owner={plan.user}", f"--group={plan.group}", plan.folder)]


def why_it_cannot_run(plan: ServicePlan) -> str:
    """Say why the service would not start, tried as its own user; '' when it would."""
    options: dict[str, Any] = {}
    if plan.user and os.geteuid() == 0:
        entry = pwd.getpwnam(plan.user)
        options = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    try:
        done = subprocess.run(
            [plan.command[0], "-P", "-c", _CHECK, plan.home],
            env=dict(plan.environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=CHECK_SECONDS,
            check=False,
            **options,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", "") or "it does not end"
        return f"{plan.command[0]} cannot be run{_as(plan)}: {reason}{_ELSEWHERE if plan.user else '.'}"
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        return f"{plan.command[0]} cannot run Hermes{_as(plan)}: {last_line}{_ELSEWHERE if plan.user else '.'}"
    reason = str(done.stdout.strip())
    return f"{plan.home} cannot be the home folder{_as(plan)}: {reason}." if reason else ""


def _as(plan: ServicePlan) -> str:
    return f" as {plan.user}" if plan.user else ""


def only_in_this_shell(home: Path) -> list[str]:
    """Settings that only this shell holds: a service would not see them."""
    from hermes.cli.support.home import load_config
    from hermes.config.resolved import Rank

    winners = [resolved.winner for resolved in load_config(home).sources.values()]
    names = {winner.written for winner in winners if winner is not None and winner.rank is Rank.ENVIRONMENT}
    return sorted(names - {*_CARRIED, "HERMES_HOME"})


def _search_path(path: str) -> str:
    """The folders of PATH, each once. One that is not absolute would be looked for in the service's own folder."""
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and folder.isprintable()]
    return os.pathsep.join(dict.fromkeys([*folders, *SYSTEM_PATH.split(":")]))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1000)
    except OSError:
        return ""
