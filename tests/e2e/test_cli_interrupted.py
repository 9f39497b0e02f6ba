"""Ctrl+C at any moment of a start ends the command, and never crashes it."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.terminal import Terminal

STARTS = 24
CRASHES = {-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGILL}


def test_ctrl_c_in_the_first_moments_of_a_command_is_no_crash(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.model_url = "http://127.0.0.1:9/v1"
    codes = []
    for number in range(STARTS):
        started = subprocess.Popen(
            terminal.command("-z", "hello"),
            env=terminal.environ,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(0.02 + 0.02 * number)  # the moment is what is tested
        started.send_signal(signal.SIGINT)
        codes.append(started.wait(30))
    assert not CRASHES & set(codes), codes
    assert all(code for code in codes)
