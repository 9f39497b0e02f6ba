"""The gateway in a person's terminal: Ctrl+C, a closed window; and under a service manager: what it is told."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.hosting import locks, paths, processes
from hermes.hosting.control import client as control
from tests.e2e.keeping import ROOT, STAND_IN, Kept, until


class Terminal:
    """A supervisor with a stand-in worker, in the foreground of a terminal of its own."""

    def __init__(self, home: Path, *modes: str) -> None:
        self.home = home
        self.master, screen = pty.openpty()
        command = [sys.executable, "-P", "-m", "hermes", "supervisor", "--", sys.executable, str(STAND_IN), *modes]
        environ = {**os.environ, "HERMES_HOME": str(home), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        self.process = subprocess.Popen(
            command,
            env=environ,
            stdin=screen,
            stdout=screen,
            stderr=screen,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(screen)

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def text(self) -> str:
        """Everything on the screen, once the process has ended."""
        seen = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody writes any more
            while chunk := os.read(self.master, 65536):
                seen += chunk
        return seen.decode()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.master)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, "steady")
    until(lambda: control.is_running(tmp_path) and locks.holder(paths.owner_lock(str(tmp_path))))
    until(lambda: os.path.exists(paths.socket(str(tmp_path))))
    yield opened
    opened.close()


def test_ctrl_c_drains_and_says_so(terminal: Terminal) -> None:
    terminal.press(b"\x03")
    assert terminal.process.wait(20) == 0
    screen = terminal.text()
    assert "Stopping. What is unfinished goes on after the next start." in screen
    assert "INFO" not in screen  # the log is in its file; a person's screen stays quiet
    assert "Traceback" not in screen


def test_a_closed_window_ends_both(terminal: Terminal) -> None:
    worker = locks.holder(paths.owner_lock(str(terminal.home)))
    assert worker is not None
    os.close(terminal.master)
    assert terminal.process.wait(20) == 0
    assert not processes.is_alive(worker.pid, worker.mark)


def test_systemd_hears_the_supervisor_alone_through_a_killed_worker(tmp_path: Path) -> None:
    """With `NotifyAccess=main` systemd drops what any other process sends, so the sender is checked here too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        address = f"@hermes-test-{tmp_path.name}-{os.getpid()}"
        manager.bind("\0" + address[1:])
        manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        manager.settimeout(20)
        senders: set[int] = set()

        def hear(word: bytes) -> None:
            while True:
                state, extra, _, _ = manager.recvmsg(500, socket.CMSG_SPACE(12))
                senders.add(struct.unpack("3i", extra[0][2])[0])
                if word in state:
                    return

        with Kept(tmp_path, "steady", environ={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "60000000"}) as kept:
            hear(b"READY=1")
            hear(b"WATCHDOG=1")
            os.kill(kept.worker(), signal.SIGKILL)
            hear(b"STATUS=The worker ended")
            hear(b"STATUS=The gateway is running.")
            hear(b"WATCHDOG=1")
            kept.process.terminate()
            hear(b"STOPPING=1")
            assert kept.process.wait(20) == 0
        assert senders == {kept.process.pid}
