"""Watches an event loop for anything that holds it up: long callbacks, and calls that wait for the outside world.

A callback is measured by the CPU time of the loop's own thread, so that a busy machine makes no false alarm. What
waits without computing (a file, a database, a connect, a sleep) is seen by an audit hook instead.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_WAITS = frozenset({"sqlite3.connect", "subprocess.Popen", "os.system", "os.posix_spawn", "socket.getaddrinfo"})
_FILES = frozenset(
    {"open", "os.remove", "os.rename", "os.mkdir", "os.listdir", "os.scandir", "os.truncate", "os.chmod"}
)


@dataclass
class LoopWatch:
    """What was seen. ``slow`` holds each callback above the limit with its CPU seconds."""

    home: Path
    limit_seconds: float
    thread: int = field(default_factory=threading.get_ident)
    longest: float = 0.0
    callbacks: int = 0
    slow: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)

    def ran(self, handle: asyncio.Handle, seconds: float) -> None:
        self.callbacks += 1
        self.longest = max(self.longest, seconds)
        if seconds > self.limit_seconds:
            self.slow.append(f"{seconds * 1000:.0f} ms in {handle!r}")

    def heard(self, event: str, args: tuple[Any, ...]) -> None:
        if threading.get_ident() != self.thread:
            return
        if event in _WAITS:
            self.waits.append(f"{event} {args[:1]!r}")
        elif event == "socket.connect" and isinstance(args[0], socket.socket) and args[0].gettimeout() != 0:
            self.waits.append(f"a blocking connect to {args[1]!r}")
        elif event in _FILES and self._is_ours(args[0]):
            self.waits.append(f"{event} {args[0]!r}")

    def _is_ours(self, path: object) -> bool:
        return isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(str(self.home))


class _Hook:
    """An audit hook stays for ever, so there is one, which does nothing unless somebody watches."""

    def __init__(self) -> None:
        self.watch: LoopWatch | None = None
        self._is_installed = False

    def install(self) -> None:
        if not self._is_installed:
            sys.addaudithook(self)
            self._is_installed = True

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if self.watch is not None:
            self.watch.heard(event, args)


_hook = _Hook()


@contextmanager
def watched(home: Path, limit_seconds: float = 0.05) -> Iterator[LoopWatch]:
    """Watch the running loop until the end of the block."""
    watch = LoopWatch(home, limit_seconds)
    run, sleep = asyncio.Handle._run, time.sleep

    def measured(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        watch.ran(handle, time.thread_time() - began)

    def slept(seconds: float) -> None:
        if threading.get_ident() == watch.thread:
            watch.waits.append(f"time.sleep({seconds})")
        sleep(seconds)

    _hook.install()
    # What other tests left on the heap is not the gateway's to sweep.
    gc.collect()
    gc.freeze()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", measured)
            patch.setattr(time, "sleep", slept)
            _hook.watch = watch
            yield watch
    finally:
        _hook.watch = None
        gc.unfreeze()
