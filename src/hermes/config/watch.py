"""Watch the configuration: an edit counts within a second, a bad one leaves the last good value."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hermes.config.layers import Loaded, load, watched_files
from hermes.config.schema import Config, Problem
from hermes.core.manifest import Manifest

log = logging.getLogger(__name__)

Stamp = tuple[int, int, int, int] | None


class ConfigWatch:
    """Holds the snapshot in force. The first one is read when it is constructed.

    Problems are logged once, when they appear; ``loaded.problems`` holds all there are now.
    ``on_change`` is called on the event loop, and only when the configuration or its problems changed.
    """

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        cwd: Path,
        manifests: Sequence[Manifest],
        on_change: Callable[[Loaded], None],
        *,
        poll_seconds: float = 0.4,
        settle_seconds: float = 0.1,
    ) -> None:
        self._home = home
        self._environ = environ
        self._cwd = cwd
        self._manifests = tuple(manifests)
        self._on_change = on_change
        self._poll_seconds = poll_seconds
        self._settle_seconds = settle_seconds
        self._files = watched_files(home, environ)
        self._stamps = self._look()
        self._loaded = load(home, environ, cwd, self._manifests)
        self.current: Config = self._loaded.config
        """The current settings. An attribute, since every request reads them twenty times."""
        self._logged: frozenset[Problem] = frozenset()
        self._changed = asyncio.Event()
        self.editing = asyncio.Lock()
        """Held while a setting is written: a change reads the whole file and writes it back."""

    def next_change(self) -> asyncio.Event:
        """Set at the next change. Whoever follows takes it before looking at ``current``, and then waits for it."""
        return self._changed

    @property
    def loaded(self) -> Loaded:
        return self._loaded

    async def run(self) -> None:
        """Look for changed files until cancelled."""
        self._tell_new_problems()
        loop = asyncio.get_running_loop()

        def keep_looking(stop: threading.Event) -> None:
            while not stop.wait(self._poll_seconds):
                if self._look() != self._stamps:
                    self._let_settle(stop)
                    loop.call_soon_threadsafe(self._take, self._load_again())

        await run_in_thread(keep_looking, "config")

    def reload(self) -> Loaded:
        """Read the files now, whether they changed or not. It blocks for a few milliseconds."""
        self._take(self._load_again())
        return self._loaded

    async def read_again(self) -> None:
        """The same for whoever is on the event loop: the files are read by a thread."""
        self._take(await asyncio.to_thread(self._load_again))

    def _let_settle(self, stop: threading.Event) -> None:
        # Editors empty a file before they write it. Half a .env would sign every account out for a moment.
        before = self._look()
        for _ in range(3):
            stop.wait(self._settle_seconds)
            now = self._look()
            if now == before:
                return
            before = now

    def _load_again(self) -> Loaded:
        self._stamps = self._look()  # before reading, so that an edit in between is seen at the next look
        return load(self._home, self._environ, self._cwd, self._manifests, previous=self._loaded)

    def _take(self, loaded: Loaded) -> None:
        before, self._loaded, self.current = self._loaded, loaded, loaded.config
        self._tell_new_problems()
        if loaded.config != before.config or loaded.problems != before.problems:
            self._on_change(loaded)
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def _tell_new_problems(self) -> None:
        for problem in self._loaded.problems:
            if problem not in self._logged:
                level = logging.ERROR if problem.level == "error" else logging.WARNING
                log.log(level, "Configuration: %s", problem)
        self._logged = frozenset(self._loaded.problems)

    def _look(self) -> tuple[Stamp, ...]:
        return tuple(_stamp(path) for path in self._files)


async def run_in_thread(work: Callable[[threading.Event], None], name: str) -> None:
    """Run ``work`` in a thread until cancelled, which sets its event. Raises what ``work`` raises.

    A home on a network that hangs must not hold up the event loop, and a hop to the thread pool for every look at a
    file would cost ten times as much.
    """
    loop = asyncio.get_running_loop()
    broken: asyncio.Future[None] = loop.create_future()
    stop = threading.Event()

    def fail(error: Exception) -> None:
        if not broken.done():
            broken.set_exception(error)

    def run() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed while a file system hung: nobody listens
            try:
                work(stop)
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits us
                loop.call_soon_threadsafe(fail, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        await broken
    finally:
        stop.set()
        thread.join(1.0)  # it wakes at once; only a file system that hangs can make it late


def _stamp(path: Path) -> Stamp:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_ctime_ns  # the last one: a chmod too
