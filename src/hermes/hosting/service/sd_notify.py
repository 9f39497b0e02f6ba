"""Notify systemd: ready, alive, stopping. Does nothing without systemd.

The supervisor notifies, and nobody else: it is the main process of the service, so the unit says
``NotifyAccess=main``. The variables are taken out of the environment before the worker starts. A command of the agent
can then neither feed the watchdog of a gateway that hangs nor declare it stopped.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

EXTEND_SECONDS = 60
"""By so much each notice of a long start (a recovery, a database that is down) postpones systemd's patience."""


def send(address: str, state: str) -> bool:
    """Tell the service manager; False when there is none, or it does not listen."""
    if not address:
        return False
    if address.startswith("@"):  # an abstract address, which starts with a zero byte
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as line:
        line.setblocking(False)  # a deaf service manager must not stop the supervisor
        try:
            line.connect(address)
            line.send(state.encode())
        except OSError:
            return False
    return True


class ServiceNotifier:
    """Tell systemd what becomes of the worker."""

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Take the variables of systemd out of ``environ``: no child is to have them."""
        self._address = environ.pop("NOTIFY_SOCKET", "")
        has_watchdog = bool(environ.pop("WATCHDOG_USEC", ""))
        # Handed on by a process that systemd watches itself: the watchdog is not ours to feed.
        self._feeds = has_watchdog and environ.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._status = ""
        self.is_ready = False

    def ready(self) -> None:
        """Report the first worker that serves, or a new one after a restart."""
        if not self.is_ready:
            self.is_ready = True
            send(self._address, "READY=1")
        self.describe("The gateway is running.")

    def alive(self) -> None:
        """Report that the supervisor does its work. Call this once a second."""
        if not self.is_ready:
            send(self._address, f"EXTEND_TIMEOUT_USEC={EXTEND_SECONDS * 1_000_000}")
        if self._feeds:
            send(self._address, "WATCHDOG=1")

    def stopping(self) -> None:
        send(self._address, "STOPPING=1")

    def describe(self, words: str) -> None:
        """Set the line that `systemctl status` shows."""
        line = " ".join(words.split())
        if line != self._status:
            self._status = line
            send(self._address, f"STATUS={line}")
