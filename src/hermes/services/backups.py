"""Make a backup every hour, in a child process of the lowest priority: no message waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hermes
from hermes.config import Config

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
FIRST_SECONDS = 300.0
"""A start has better things to do; a gateway that lives shorter than this has nothing new to keep."""

MAX_SECONDS = 3600.0
SOURCES = os.path.dirname(os.path.dirname(os.path.realpath(hermes.__file__)))
_CHANGING = ("state.db", "state.db-wal", "response_store.db", "kanban.db", "kanban.db-wal", "config.yaml")


class BackupTimer:
    """Starts ``hermes backup create --hourly`` when the last one is old enough and something has changed since."""

    def __init__(
        self,
        home: Path,
        config: Callable[[], Config],
        *,
        first_seconds: float = FIRST_SECONDS,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._home = home
        self._config = config
        self._look_seconds = look_seconds
        self._due_at = time.monotonic() + first_seconds
        self._seen: tuple[tuple[int, int], ...] = ()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            settings = self._config().backup
            if not settings.enabled or time.monotonic() < self._due_at:
                continue
            wait_seconds = await asyncio.to_thread(self._seconds_left, settings.folder, settings.every_hours * 3600)
            if wait_seconds <= 0:
                present = await asyncio.to_thread(self._look)
                if present != self._seen and await self._make():
                    self._seen = present
                wait_seconds = settings.every_hours * 3600
            self._due_at = time.monotonic() + wait_seconds

    def _seconds_left(self, folder: str, every_seconds: float) -> float:
        """Seconds until the next backup is due, by the newest that an earlier process made, too."""
        from hermes.store.backup import contents  # a start makes no backup

        made = [0.0]
        for path in contents.backup_folder(self._home, folder).glob("hermes-*-hourly.tar.gz"):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                made.append(path.stat().st_mtime)
        age = time.time() - max(made)
        return every_seconds - age if age >= 0 else 0.0

    def _look(self) -> tuple[tuple[int, int], ...]:
        """Size and time of what changes with every message."""
        found = []
        for name in _CHANGING:
            with contextlib.suppress(OSError):  # not there: that is a state as well
                seen = os.stat(self._home / name)
                found.append((seen.st_size, seen.st_mtime_ns))
        return tuple(found)

    async def _make(self) -> bool:
        began = time.monotonic()
        path = os.pathsep.join(filter(None, (SOURCES, os.environ.get("PYTHONPATH", ""))))
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            *("-m", "hermes", "backup", "create", "--hourly", "--json"),
            env={**os.environ, "HERMES_HOME": str(self._home), "PYTHONPATH": path},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(MAX_SECONDS):
                _, complaint = await child.communicate()
        except TimeoutError:
            complaint = f"it took more than {MAX_SECONDS:.0f} s".encode()
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        seconds = round(time.monotonic() - began, 1)
        if child.returncode:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            log.warning("Backup failed", extra={"reason": lines[-1] if lines else f"exit code {child.returncode}"})
            return False
        log.info("Backup made", extra={"seconds": seconds})
        return True
