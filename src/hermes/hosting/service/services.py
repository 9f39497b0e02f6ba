"""Talk to the service manager of the machine: systemd or launchd.

Every program that is called here has a deadline, and its complaint is handed on in its own words.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError
from hermes.hosting import paths, profiles
from hermes.hosting.service import unit_files
from hermes.hosting.service.service_manager import LAUNCHD_LABEL
from hermes.hosting.service.unit_files import ServicePlan, ServiceScope, UnitOrigin

CALL_SECONDS = 30.0
SYSTEM_UNITS = "/etc/systemd/system"
LINGER_FOLDER = "/var/lib/systemd/linger"
MAX_UNIT_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    code: int
    output: str = ""
    complaint: str = ""


def call(command: Sequence[str], seconds: float = CALL_SECONDS) -> ProgramAnswer:
    """Run a program of the system, never asking for a password."""
    environ = {**os.environ, "LC_ALL": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    runtime = f"/run/user/{os.getuid()}"
    if "XDG_RUNTIME_DIR" not in environ and os.path.isdir(runtime):
        environ["XDG_RUNTIME_DIR"] = runtime  # after `su` and in cron, where the user manager runs all the same
    try:
        done = subprocess.run(
            list(command),
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            user=0 if os.getuid() == 0 else None,  # while we act as another user, see ``acting_as``
            umask=0o022,
        )
    except FileNotFoundError:
        return ProgramAnswer(127, complaint=f"{command[0]} is not installed")
    except (subprocess.TimeoutExpired, OSError) as error:
        words = "no answer in time" if isinstance(error, subprocess.TimeoutExpired) else str(error.strerror)
        return ProgramAnswer(1, complaint=f"{command[0]}: {words}")
    complaints = done.stderr.decode("utf-8", "replace").strip().splitlines() if done.returncode else []
    complaint = complaints[0].rstrip(".") if complaints else ""  # the next lines say where to look
    return ProgramAnswer(done.returncode, done.stdout.decode("utf-8", "replace").strip(), complaint)


@contextmanager
def acting_as(user: str) -> Iterator[None]:
    """Touch the home of a service as its own user: files that root makes there would be in the service's way.

    Only root can do that; for everybody else nothing changes. ``call`` goes on as root.
    """
    if os.getuid() != 0 or not user:
        yield
        return
    entry, groups = pwd.getpwnam(user), os.getgroups()
    os.setgroups(os.getgrouplist(user, entry.pw_gid))
    os.setegid(entry.pw_gid)
    os.seteuid(entry.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(os.getgid())
        os.setgroups(groups)


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A unit file on the disk; ``text`` is '' where there is none."""

    path: str
    text: str = ""
    is_link: bool = False

    @property
    def origin(self) -> UnitOrigin | None:
        """Who wrote the file; None where there is none. What another place links to is not ours."""
        if self.is_link:
            return UnitOrigin.FOREIGN
        return unit_files.inspect(self.text) if self.text else None


def read_unit(path: str) -> UnitFile:
    is_link = os.path.islink(path)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return UnitFile(path, file.read(MAX_UNIT_BYTES) or "\n", is_link)
    except FileNotFoundError:
        return UnitFile(path, "", is_link)


def write_unit(path: str, text: str) -> None:
    """Write the unit for everybody to read. A file that appeared meanwhile, or was edited, is not lost."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    present = read_unit(path)
    if present.origin is UnitOrigin.EDITED:
        os.replace(path, f"{path}.old")
    new = f"{path}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o644)  # whatever the umask
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if present.origin is UnitOrigin.OURS:
        os.replace(new, path)
        return
    try:
        os.link(new, path)  # unlike a rename, a link never replaces what somebody wrote meanwhile
    finally:
        os.unlink(new)


class SystemdService:
    """One unit of systemd, in the scope of a user or of the system."""

    def __init__(self, name: str, scope: ServiceScope, folder: str = "") -> None:
        self.name = name
        self.scope = scope
        self.folder = folder or unit_folder(scope)
        self.path = os.path.join(self.folder, f"{name}.service")

    @property
    def systemctl(self) -> tuple[str, ...]:
        return ("systemctl",) if self.scope is ServiceScope.SYSTEM else ("systemctl", "--user")

    def render(self, plan: ServicePlan) -> str:
        return unit_files.systemd_unit(plan)

    def describe(self) -> str:
        return f"systemd ({self.name})"

    def typed(self, verb: str) -> str:
        """What a person types to do this by hand."""
        sudo = "sudo " if self.scope is ServiceScope.SYSTEM and os.getuid() != 0 else ""
        return f"{sudo}{' '.join(self.systemctl)} {verb} {self.name}"

    def journal(self, _home: str) -> str:
        """What a person types to see the last lines of the service of this home."""
        return f"journalctl {'' if self.scope is ServiceScope.SYSTEM else '--user '}-u {self.name} -n 50 --no-pager"

    def why_unusable(self) -> str:
        """Half a sentence on why the manager of this scope cannot be reached; '' when it can."""
        if self.scope is ServiceScope.SYSTEM and os.getuid() != 0:
            return "only root may install a service of the system"
        answer = call([*self.systemctl, "show-environment"])
        return "" if answer.code == 0 else answer.complaint or "systemctl does not answer"

    def other_unit(self) -> str:
        """Where systemd knows a unit of this name besides our file, for example from a package; '' else."""
        path = self.show("FragmentPath")
        return path if path and os.path.realpath(path) != os.path.realpath(self.path) else ""

    def show(self, name: str) -> str:
        return call([*self.systemctl, "show", "--property", name, "--value", self.name]).output

    def register_steps(self) -> list[tuple[str, ...]]:
        return [(*self.systemctl, "daemon-reload"), (*self.systemctl, "enable", self.name)]

    def start_steps(self) -> list[tuple[str, ...]]:
        # A start that failed too often is forgotten, and we watch the start ourselves.
        return [
            (*self.systemctl, "reset-failed", self.name),
            (*self.systemctl, "start", "--no-block", "--no-ask-password", self.name),
        ]

    def stop_steps(self) -> list[tuple[str, ...]]:
        return [(*self.systemctl, "stop", "--no-ask-password", self.name)]

    def unregister_steps(self) -> list[tuple[str, ...]]:
        return [(*self.systemctl, "disable", self.name)]

    def forget_steps(self) -> list[tuple[str, ...]]:
        return [(*self.systemctl, "daemon-reload")]

    def run(self, step: Sequence[str], seconds: float = CALL_SECONDS) -> ProgramAnswer:
        """Run one of the steps above."""
        return call(step, seconds)

    def is_enabled(self) -> bool:
        target = "multi-user.target" if self.scope is ServiceScope.SYSTEM else "default.target"
        return os.path.lexists(os.path.join(self.folder, f"{target}.wants", f"{self.name}.service"))

    def how_it_stands(self) -> str:
        """What systemd says of a service that does not run: ``failed (exit-code, 78)``."""
        state = self.show("ActiveState")
        if state != "failed":
            return state or "unknown"
        return f"failed ({self.show('Result')}, {self.show('ExecMainStatus')})"


class LaunchdService:
    """A launchd agent of the person who is logged in."""

    scope = ServiceScope.USER

    def __init__(self, name: str, folder: str = "") -> None:
        self.name = name.replace(profiles.UNIT, LAUNCHD_LABEL, 1).replace(f"{LAUNCHD_LABEL}-", f"{LAUNCHD_LABEL}.")
        self.folder = folder or os.path.expanduser("~/Library/LaunchAgents")
        self.path = os.path.join(self.folder, f"{self.name}.plist")
        self._domain = f"gui/{os.getuid()}"

    def render(self, plan: ServicePlan) -> str:
        return unit_files.launchd_agent(plan, self.name, paths.console_log(plan.home))

    def describe(self) -> str:
        return f"launchd ({self.name})"

    def typed(self, verb: str) -> str:
        words = {
            "stop": f"launchctl bootout {self._domain}/{self.name}",
            "start": f"launchctl bootstrap {self._domain} {self.path}",
        }
        return words.get(verb, f"launchctl {verb} {self._domain}/{self.name}")

    def journal(self, home: str) -> str:
        return f"tail -n 50 {shlex.quote(paths.console_log(home))}"

    def why_unusable(self) -> str:
        answer = call(["launchctl", "print", self._domain])
        return "" if answer.code == 0 else answer.complaint or "launchctl does not answer"

    def other_unit(self) -> str:
        return ""

    def register_steps(self) -> list[tuple[str, ...]]:
        return [("launchctl", "enable", f"{self._domain}/{self.name}")]  # one that was disabled cannot be loaded

    def start_steps(self) -> list[tuple[str, ...]]:
        return [("launchctl", "bootstrap", self._domain, self.path)]  # RunAtLoad starts it

    def stop_steps(self) -> list[tuple[str, ...]]:
        return [("launchctl", "bootout", f"{self._domain}/{self.name}")]

    def unregister_steps(self) -> list[tuple[str, ...]]:
        return []

    def forget_steps(self) -> list[tuple[str, ...]]:
        return []

    def run(self, step: Sequence[str], seconds: float = CALL_SECONDS) -> ProgramAnswer:
        """Run one of the steps above. What is so already is no failure, as it is none for systemd.

        launchctl answers 5 to loading what is loaded, and 3 to unloading what is not.
        """
        answer = call(step, seconds)
        if not answer.code or step[1] not in ("bootstrap", "bootout"):
            return answer
        state = self.how_it_stands()
        if (step[1], state) in (("bootstrap", "running"), ("bootout", "not loaded")):
            return ProgramAnswer(0)
        if step[1] == "bootstrap" and state != "not loaded":  # loaded, perhaps from an older file
            call(self.stop_steps()[0], seconds)
            return call(step, seconds)
        return answer

    def is_enabled(self) -> bool:
        return True

    def how_it_stands(self) -> str:
        """``not loaded``, or the state that launchd tells: ``running``, ``not running``, ``spawn scheduled``."""
        answer = call(["launchctl", "print", f"{self._domain}/{self.name}"])
        found = re.search(r"^\s*state = (.+)$", answer.output, re.MULTILINE)
        return "not loaded" if answer.code else found[1].strip() if found else "loaded"


Service = SystemdService | LaunchdService


def unit_folder(scope: ServiceScope) -> str:
    if scope is ServiceScope.SYSTEM:
        return SYSTEM_UNITS
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "systemd", "user")


def find_installed(home: str) -> Service | None:
    """Find the service of ours that serves this home. Reads small files only, and calls no program."""
    return next((service for service, served in _installed() if _is_same(served, home)), None)


def system_service() -> tuple[Path, str]:
    """The home that the service of the system serves, and its user. Raises ConfigError where none of ours is there."""
    found = next(((service, home) for service, home in _installed() if service.scope is ServiceScope.SYSTEM), None)
    if found is None:
        raise ConfigError("No service of the system is installed. Install one: sudo hermes gateway install --system")
    service, home = found
    return Path(home), unit_files.user_of(read_unit(service.path).text)


def other_homes(home: str) -> list[tuple[str, str]]:
    """List the services of ours for other homes, each with its home."""
    return [(service.name, served) for service, served in _installed() if not _is_same(served, home)]


def _installed() -> list[tuple[Service, str]]:
    found: list[Service] = []
    for scope in ServiceScope:
        names = _names(unit_folder(scope), profiles.UNIT, ".service")
        found += [SystemdService(name, scope) for name in names]
    if sys.platform == "darwin":
        names = _names(os.path.expanduser("~/Library/LaunchAgents"), LAUNCHD_LABEL, ".plist")
        found += [LaunchdService(name) for name in names]
    return [(service, unit_files.home_of(text)) for service in found if (text := _text_of_ours(service.path))]


def _names(folder: str, start: str, end: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:  # no such folder, or that of another user
        return []
    return [name.removesuffix(end) for name in names if name.startswith(start) and name.endswith(end)]


def _text_of_ours(path: str) -> str:
    try:
        unit = read_unit(path)
    except OSError:
        return ""
    return unit.text if unit.origin in (UnitOrigin.OURS, UnitOrigin.EDITED) else ""


def _is_same(one: str, other: str) -> bool:
    return bool(one) and os.path.realpath(one) == os.path.realpath(other)


def is_lingering(user: str) -> bool:
    """Tell whether services of this user run without anybody being logged in."""
    return os.path.exists(os.path.join(LINGER_FOLDER, user))


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
