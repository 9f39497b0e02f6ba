"""Write the worker's heartbeat: the event loop beats, a thread writes.

The loop only sets a flag, so that a slow disk never stops it; and since the thread repeats nothing by
itself, a loop that hangs is seen by everyone who reads the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable

from hermes.hosting import heartbeat, paths

BEAT_SECONDS = 1.0

log = logging.getLogger(__name__)


class Heartbeat:
    """``async with heart.beating():`` beats once a second until the end of the block.

    ``describe`` is asked, on the loop, what the gateway is doing and how many messages wait; `gateway
    status` shows it when the heart has stopped.
    """

    def __init__(self, home: str, safe_reason: str = "") -> None:
        self._path = paths.heartbeat(home)
        self._now = heartbeat.Beat(os.getpid(), 0.0, 0.0, safe=safe_reason)
        self._wake = threading.Event()
        self._is_over = False
        self.describe: Callable[[], tuple[str, int]] = lambda: ("", 0)

    @property
    def ready_at(self) -> float:
        """Return when the gateway began to serve; 0.0 before that."""
        return self._now.ready_at

    def ready(self) -> None:
        """The gateway serves. Said once, and written down at once."""
        self._now.ready_at = time.time()
        self._beat()

    def draining(self, doing: str) -> None:
        """Say from now on that the worker ends: it answers nobody any more, and a successor waits for it."""
        waiting = self._now.waiting
        self.describe = lambda: (doing, waiting)
        self._beat()

    def resumed(self) -> None:
        """The platforms that were paused at the start are on again. The parent counts from here."""
        self._now.safe = ""
        self._beat()

    def settle(self) -> None:
        """An event was settled: this worker works, so its death no longer counts as a bad start."""
        self._now.settled += 1
        if self._now.settled == 1:
            self._beat()

    def age(self) -> float:
        return self._now.age(time.time(), time.monotonic())

    @contextlib.asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        writer = threading.Thread(target=self._write, name="heartbeat", daemon=True)
        beats = asyncio.create_task(self._keep_beating(), name="heartbeat")
        writer.start()
        try:
            yield
        finally:
            beats.cancel()
            self._is_over = True
            self._wake.set()
            await asyncio.to_thread(writer.join, 1.0)

    async def _keep_beating(self) -> None:
        while True:
            self._beat()
            await asyncio.sleep(BEAT_SECONDS)

    def _beat(self) -> None:
        self._now.doing, self._now.waiting = self.describe()
        self._now.at, self._now.monotonic = time.time(), time.monotonic()
        self._wake.set()

    def _write(self) -> None:
        paths.make_private(os.path.dirname(self._path))
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        failed = False
        try:
            while not self._is_over:
                self._wake.wait()
                self._wake.clear()
                try:
                    os.pwrite(file, heartbeat.encode(self._now), 0)
                    failed = False
                except OSError as error:
                    if not failed:
                        log.warning("Heartbeat not written", extra={"reason": str(error)})
                    failed = True
        finally:
            os.close(file)
