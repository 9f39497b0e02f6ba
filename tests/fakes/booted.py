"""A real systemd: a Debian root that podman boots, with this clone below /opt/hermes.

The root comes from ``debootstrap --variant=minbase --include=PACKAGES bookworm ROOT`` and is changed by the tests. The
packages: systemd, systemd-sysv, dbus, dbus-user-session, libpam-systemd, python3, python3-venv,
git, bubblewrap, uidmap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fakes.containers import why_not

CLONE = Path(__file__).parents[2]
PYTHON = "/opt/hermes/.venv/bin/python"
ULIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")


def why_not_booted(root: str) -> str:
    """Why no systemd can be booted here; '' when one can."""
    if not root:
        return "HERMES_TEST_SYSTEMD names no Debian root with systemd (see tests/fakes/booted.py)"
    if reason := why_not():
        return reason
    found = subprocess.run(
        ["chroot", root, "python3", "-c", "import sys; print(*sys.version_info[:2])"],
        capture_output=True, text=True, timeout=20, check=False,
    ).stdout.split()  # fmt: skip
    mine = [str(number) for number in sys.version_info[:2]]
    return (
        "" if found == mine else f"the root has Python {'.'.join(found)}, and these packages are for {'.'.join(mine)}"
    )


class BootedSystemd:
    """``with BootedSystemd(root) as machine:`` a machine whose process 1 is systemd."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._name = f"hermes-booted-{os.getpid()}"

    def __enter__(self) -> Self:
        target = self.root / "opt" / "hermes"
        shutil.rmtree(target, ignore_errors=True)
        for name in ("src", "scripts", "requirements", "bridge"):
            shutil.copytree(CLONE / name, target / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        subprocess.run(
            ["chroot", str(self.root), "python3", "-m", "venv", "--without-pip", "/opt/hermes/.venv"],
            check=True, timeout=60, capture_output=True,
        )  # fmt: skip
        packages = f"lib/python3.{sys.version_info.minor}/site-packages"
        shutil.copytree(Path(sys.prefix) / packages, target / ".venv" / packages, dirs_exist_ok=True)
        shutil.copy(target / "requirements" / "core.txt", target / ".venv" / "stamp-core")
        subprocess.run(["chmod", "-R", "go+rX", str(target)], check=True, timeout=60)
        link = self.root / "usr" / "local" / "bin" / "hermes"
        link.unlink(missing_ok=True)
        link.symlink_to("/opt/hermes/scripts/hermes")
        self._boot()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._podman("rm", "--force", "--time", "5", self._name)

    def reboot(self) -> None:
        """End every process and boot again; what is on the disk stays."""
        self._podman("rm", "--force", "--time", "30", self._name)
        self._boot()

    def _boot(self) -> None:
        self._podman(
            "run", "--detach", "--rm", "--name", self._name, "--systemd=always", "--network=none", *ULIMITS,
            "--cap-add=ALL", "--security-opt=seccomp=unconfined", "--security-opt=unmask=ALL",
            "--rootfs", str(self.root), "/sbin/init",
        )  # fmt: skip
        self.until(lambda: self.run("systemctl", "is-active", "multi-user.target").stdout.strip() == "active", 60)

    def run(self, *command: str, user: str = "root", seconds: float = 180) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as a person who is logged in would."""
        environ = [] if user == "root" else ["--env", f"XDG_RUNTIME_DIR=/run/user/{self.uid(user)}"]
        home = {"root": "/root", "hermes": "/var/lib/hermes"}.get(user, f"/home/{user}")
        return subprocess.run(
            ["podman", "exec", "--user", user, "--env", f"HOME={home}", *environ, self._name, *command],
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    def hermes(self, *words: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        return self.run("hermes", *words, user=user)

    def show(self, name: str, unit: str = "hermes-gateway") -> str:
        return self.run("systemctl", "show", "--property", name, "--value", unit).stdout.strip()

    def kill(self, pid: int, number: int) -> None:
        self.run("python3", "-c", f"import os; os.kill({pid}, {number})")

    def uid(self, user: str) -> int:
        rows = (self.root / "etc" / "passwd").read_text().splitlines()
        return next(int(row.split(":")[2]) for row in rows if row.startswith(f"{user}:"))

    def until(self, ask: Callable[[], object], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ask():
            assert time.monotonic() < deadline, (
                f"not so within {seconds} s: {self.run('journalctl', '-n', '30').stdout}"
            )
            time.sleep(0.2)

    def _podman(self, *words: str) -> None:
        done = subprocess.run(["podman", *words], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
