"""Notify systemd: ready, alive, stopping. Does nothing without systemd."""

from __future__ import annotations

import os
import socket


def send(state: str) -> bool:
    """Tell the service manager; False when there is none, or it does not listen."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return False
    if address.startswith("@"):  # an abstract address, which starts with a zero byte
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as line:
        line.setblocking(False)  # called on the event loop: a deaf service manager must not stop it
        try:
            line.connect(address)
            line.send(state.encode())
        except OSError:
            return False
    return True
