"""A real sshd on loopback, for one user, with keys of its own."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PLACES = ("/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd")
PRIVILEGE_FOLDER = "/run/sshd"


def why_not() -> str:
    """Why there can be none on this machine; '' when there can."""
    if not any(os.path.exists(place) for place in PLACES) or not shutil.which("ssh"):
        return "sshd is not installed (Debian: openssh-server)"
    if os.geteuid() == 0 and not os.path.isdir(PRIVILEGE_FOLDER):
        try:
            os.mkdir(PRIVILEGE_FOLDER, 0o755)
        except OSError as error:
            return f"sshd needs {PRIVILEGE_FOLDER} ({error.strerror})"
    return ""


class RealSshd:
    """``with RealSshd(folder) as server:`` and ``server.settings`` are what the ssh back end needs to reach it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.key = folder / "user_key"
        self.known_hosts = folder / "known_hosts"
        self.user = getpass.getuser()
        self.port = 0

    @property
    def settings(self) -> dict[str, object]:
        return {
            "ssh_host": "127.0.0.1",
            "ssh_port": self.port,
            "ssh_user": self.user,
            "ssh_key": str(self.key),
            "ssh_known_hosts": str(self.known_hosts),
        }

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in ("host_key", "user_key"):
            self._make_key(name)
        shutil.copy(self._folder / "user_key.pub", self._folder / "authorized")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        public = (self._folder / "host_key.pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}")
        config = self._folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self._folder}/host_key\n"
            f"AuthorizedKeysFile {self._folder}/authorized\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        program = next(place for place in PLACES if os.path.exists(place))
        self._log = (self._folder / "sshd.log").open("wb")
        self._process = subprocess.Popen([program, "-D", "-e", "-f", str(config)], stderr=self._log)
        self._wait_until_up()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()

    def log(self) -> str:
        return (self._folder / "sshd.log").read_text(errors="replace")

    def _make_key(self, name: str) -> None:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name)]
        subprocess.run(command, check=True, timeout=10, stdin=subprocess.DEVNULL)

    def _wait_until_up(self) -> None:
        deadline = time.monotonic() + 5
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise AssertionError(f"sshd did not start: {self.log()}") from None
                time.sleep(0.02)
            else:
                return
