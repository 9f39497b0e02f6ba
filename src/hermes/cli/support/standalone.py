"""Run the handlers of a gateway in this process, where no gateway runs."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.support.holder import LONE_CHAT
from hermes.cli.support.home import NothingIsStoredError, load_config, working_folder
from hermes.cli.support.program_name import command_name
from hermes.core.errors import GatewayError, HomeInUseError
from hermes.core.keys import LOCAL
from hermes.hosting import locks, paths, processes
from hermes.hosting.control import client as control
from hermes.hosting.control.client import (
    GatewayIsDownError,
    OnEvent,
)

if TYPE_CHECKING:
    import asyncio

    from hermes.hosting.control.server import Handler

    Opened = AbstractAsyncContextManager[Mapping[str, Handler]]

LOCKED_SECONDS = 1.0  # so long a command that works alone waits for a database that another program has locked
CONNECT_SECONDS = 2.0  # and so long for a database server
OPEN_SECONDS = 60.0
RESULT_SECONDS = 5.0  # the result follows the last event at once
CLOSE_SECONDS = 15.0
LOOK_SECONDS = 0.25
REAP_SECONDS = 10.0


@asynccontextmanager
async def alone_chat(home: Path) -> AsyncIterator[Mapping[str, Handler]]:
    """Open a gateway for a chat; other commands reach it over the socket.

    It adopts orphans, so that it recognizes the agent's commands.
    """
    import asyncio

    from hermes.hosting.control.server import ControlServer

    processes.adopt_orphans()
    async with alone_gateway(home, LONE_CHAT) as verbs, ControlServer(home, verbs).listening():
        reaping = asyncio.create_task(_reap_orphans(), name="reap orphans")
        try:
            yield verbs
        finally:
            reaping.cancel()


async def _reap_orphans() -> None:
    """Reap ended processes that we adopted; our own children are reaped where they were started."""
    import asyncio

    seen: set[int] = set()
    while True:
        await asyncio.sleep(REAP_SECONDS)
        seen = processes.reap_long_ended(seen)


@asynccontextmanager
async def alone_gateway(home: Path, owner_name: str = "hermes command") -> AsyncIterator[Mapping[str, Handler]]:
    from hermes.app.lifespan import GatewayOptions, open_gateway
    from hermes.core.secret import Redactor
    from hermes.hosting.control.handlers.gateway import verbs_of
    from hermes.hosting.logs.logs import Logs
    from hermes.store.db import StoreLimits
    from hermes.store.home import make_home

    processes.hide_memory()
    make_home(home)
    redactor = Redactor()
    with Logs.open(str(home), redactor, console=False):
        setting = GatewayOptions(
            home,
            os.environ,
            working_folder(home),
            redactor=redactor,
            only=frozenset({LOCAL}),
            store_limits=StoreLimits(busy_seconds=LOCKED_SECONDS, connect_seconds=CONNECT_SECONDS),
            owner_name=owner_name,
        )
        async with open_gateway(setting) as gateway:
            yield verbs_of(gateway)


@asynccontextmanager
async def alone_store(home: Path) -> AsyncIterator[Mapping[str, Handler]]:
    import logging

    from hermes.core.secret import Redactor
    from hermes.hosting.control.handlers.access import StandingVerbs
    from hermes.hosting.control.handlers.cluster import ClusterVerbs
    from hermes.hosting.control.handlers.store import StoreVerbs
    from hermes.hosting.logs.logs import CleanFormatter, Logs
    from hermes.services.clock import SystemClock
    from hermes.store.db import StoreLimits
    from hermes.store.open import open_database

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(CleanFormatter())
    config = load_config(home).config
    where = config.database_url or home / "state.db"
    if isinstance(where, Path) and not where.exists():
        raise NothingIsStoredError(f"Nothing is stored in {home} yet.")
    lock = locks.take(paths.owner_lock(str(home)), "hermes command")
    if lock is None:
        raise HomeInUseError("Another process has just taken the home.")
    try:
        if (home / ".restore").exists():
            from hermes.store.backup import restore

            restore.finish(home)
        limits = StoreLimits(busy_seconds=LOCKED_SECONDS, connect_seconds=CONNECT_SECONDS)
        with Logs.open(str(home), Redactor(), console=False):
            db = await open_database(where, limits=limits)
            try:
                clock = SystemClock()
                standing = StandingVerbs(home, db, clock, lambda: config).mapping()
                yield {**StoreVerbs(home, db, clock).mapping(), **standing, **ClusterVerbs(db).mapping()}
            finally:
                await db.close()
    finally:
        lock.release()


class InProcessGateway:
    """Run handlers on an event loop in a thread, until a gateway wants the home and goes on with the work."""

    def __init__(self, home: Path, opened: Opened) -> None:
        self._home = home
        self._opened = opened
        self._thread = threading.Thread(target=self._run, name="gateway in this process", daemon=True)
        self._is_ready = threading.Event()
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._verbs: Mapping[str, Handler] = {}
        self._answering: set[asyncio.Task[Any]] = set()
        self._is_leaving = False

    @property
    def is_over(self) -> bool:
        """Tell whether this process has ended or is about to."""
        return self._is_leaving or not self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()
        if not self._is_ready.wait(OPEN_SECONDS):
            raise GatewayError(f"The home did not open within {OPEN_SECONDS:.0f} s. Look: {command_name()} logs")
        if self._error is not None:
            raise self._error

    def ask(self, verb: str, args: Mapping[str, Any], on_event: OnEvent | None) -> Any:
        import asyncio
        from concurrent.futures import CancelledError

        if self._loop is None or self.is_over or verb not in self._verbs:
            raise GatewayIsDownError(f"{verb} needs the gateway, and it is not running.")
        events: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        answering = asyncio.run_coroutine_threadsafe(self._answer(verb, args, events), self._loop)
        try:
            while (event := events.get()) is not None:
                if on_event is not None:
                    on_event(event)
            return answering.result(RESULT_SECONDS)
        except (CancelledError, TimeoutError):
            raise GatewayIsDownError("The gateway stopped before it answered.") from None
        finally:
            answering.cancel()

    def close(self) -> None:
        """End it and wait. The first words of an error that ended it were raised where it was asked."""
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(CLOSE_SECONDS)

    async def _answer(
        self, verb: str, args: Mapping[str, Any], events: queue.SimpleQueue[Mapping[str, Any] | None]
    ) -> Any:
        import asyncio

        if self._is_leaving:
            events.put(None)
            raise GatewayIsDownError("It ended before it was asked.")
        task = asyncio.create_task(_answered(self._verbs[verb], args, _QueuedRequest(events)), name=verb)
        self._answering.add(task)
        try:
            return await task
        finally:
            self._answering.discard(task)
            events.put(None)

    def _run(self) -> None:
        import asyncio

        try:
            asyncio.run(self._live())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits for us
            self._error = error
        finally:
            self._is_ready.set()

    async def _live(self) -> None:
        import asyncio

        async with self._opened as self._verbs:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            self._is_ready.set()
            while not self._stop.is_set() and not control.is_running(self._home):
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await self._stop.wait()
            self._is_leaving = True
            for task in self._answering:  # whoever still waits asks the gateway that comes instead
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)


async def _answered(handler: Handler, args: Mapping[str, Any], reply: _QueuedRequest) -> Any:
    return await handler(args, reply)


class _QueuedRequest:
    def __init__(self, events: queue.SimpleQueue[Mapping[str, Any] | None]) -> None:
        self._events = events

    async def event(self, value: Any) -> None:
        self._events.put(value)
