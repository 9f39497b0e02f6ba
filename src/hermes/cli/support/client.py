"""Call the running gateway, or the same handlers in this process without one.

Which of the two it is can change while a chat is open. A gateway that is started takes the home over, and one that
ends leaves its work in the store, so the same question with the same key goes on where it was.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hermes.cli.support.home import home_folder
from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import note
from hermes.core.durations import format_time
from hermes.core.errors import ForeignHomeError, GatewayError, HomeInUseError
from hermes.core.keys import LOCAL
from hermes.hosting import heartbeat, lifecycle, locks, paths, processes
from hermes.hosting.control import client as control
from hermes.hosting.control.client import (
    GatewayIsDownError,
    GatewayIsNotRunningError,
    GatewayIsStalledError,
    OnEvent,
)
from hermes.hosting.terminal import err

if TYPE_CHECKING:
    import asyncio

    from hermes.config import Config
    from hermes.hosting.control.server import Handler

    Opened = AbstractAsyncContextManager[Mapping[str, Handler]]

NOT_RUNNING = 3
ANSWER_SECONDS = 5.0  # of silence: a gateway at work sends a sign of life every 2 s
BACK_SECONDS = 30.0  # a worker that was killed is up again long before, on a busy machine too
OWNER_SECONDS = 30.0  # another command that works alone here is let finish
CHAT_SECONDS = 3.0  # a chat that works alone and was just opened begins to answer others
SAY_AFTER_SECONDS = 1.5  # nobody waits longer without being told for what
SETTLE_SECONDS = 0.3  # in which a starting worker takes a home that was just left
LOCKED_SECONDS = 1.0  # so long a command that works alone waits for a database that another program has locked
CONNECT_SECONDS = 2.0  # and so long for a database server
LONE_CHAT = "hermes chat"
TRIES = 6  # whoever ends at once: a gateway may be stopped and started in a row
STEADY_SECONDS = 2.0  # one who answered for so long did not end at once
OPEN_SECONDS = 60.0
CLOSE_SECONDS = 15.0
LOOK_SECONDS = 0.25
REAP_SECONDS = 10.0
MAX_TEXT_CHARS = 5_000_000


__all__ = [
    "NOT_RUNNING",
    "GatewayClient",
    "NothingIsStoredError",
    "Standalone",
    "home_folder",
    "is_listening",
    "load_config",
    "lone_owner",
    "outside_platforms",
    "refuse_foreign",
    "working_folder",
]


class NothingIsStoredError(GatewayError):
    """The home holds no store yet: the first start or the first message makes it."""


class Standalone(Enum):
    """What a command does when no gateway runs."""

    NEVER = "needs one"
    STORE = "opens the database"
    GATEWAY = "is a small gateway itself, with the local platform only"
    CHAT = "is one too, stays open, and answers other commands meanwhile"


class GatewayClient:
    """``with GatewayClient(home, Standalone.GATEWAY) as client: client.ask("say", {...}, on_event)``."""

    def __init__(
        self, home: Path, alone: Standalone, on_recovered: Callable[[str], None] = lambda text: err(f"! {text}")
    ) -> None:
        """``on_recovered`` is given the report of a damaged file that this command has brought back."""
        self.home = home
        self._alone = alone
        self._on_recovered = on_recovered
        self._recoveries = 0
        self._inside: InProcessGateway | None = None
        self._lock = threading.RLock()  # a chat asks from several threads: one opens or closes, the others wait
        self._is_closed = False
        self._is_out_of_reach = False  # the gateway works, and its socket is in another container

    @property
    def is_alone(self) -> bool:
        return self._inside is not None

    def ask(
        self,
        verb: str,
        args: Mapping[str, Any] | None = None,
        on_event: OnEvent | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Ask, wherever the answer is to be had. A question that is asked again after a restart carries its own key.

        ``timeout`` is for the whole answer; with ``on_event`` only where request files are exchanged, which show no
        sign of life. On the socket 5 s of silence mean that the gateway is stalled.
        """
        args, shown = _sendable(args or {}), _guard_output(on_event)
        tries = 0
        while tries < TRIES:
            self.connect()
            began = time.monotonic()
            try:
                if (inside := self._inside) is not None:
                    _refuse_agent(verb, args)
                    return inside.ask(verb, args, shown)
                is_followed = shown is not None and is_listening(self.home)
                patience = ANSWER_SECONDS if timeout is None or is_followed else timeout
                # A worker that ended since we looked has a successor, which is waited for at its socket.
                return control.call(self.home, verb, args, patience, shown, may_leave_file=self._is_out_of_reach)
            except _ReaderIsGone:
                raise BrokenPipeError from None
            except GatewayIsStalledError:
                holder = locks.holder(paths.owner_lock(str(self.home)))
                if holder is not None and holder.what == LONE_CHAT:
                    raise _held_by(holder) from None
                raise
            except GatewayIsDownError:
                tries = tries + 1 if time.monotonic() - began < STEADY_SECONDS else 1
                self._forget()
                if on_event is not None:
                    on_event({"kind": "again"})
        raise GatewayIsDownError("The gateway stopped three times before it answered. Look: hermes logs")

    def connect(self) -> None:
        """Find out who answers; open what is needed when nobody does. Raises GatewayIsDownError for Alone.NEVER."""
        with self._lock:
            self._connect()

    def _connect(self) -> None:
        if self._is_closed:
            raise GatewayError("This command is ending.")
        if self._inside is not None and self._inside.is_over:
            self._forget()
        taken: HomeInUseError | None = None
        for _ in range(TRIES):
            if self._inside is not None:
                return
            if control.is_running(self.home):
                self._is_out_of_reach = _wait_for_gateway(self.home)
                if control.is_running(self.home):
                    return
            if self._alone is Standalone.NEVER:
                raise GatewayIsNotRunningError(f"The gateway is not running. Start it: {command_name()} gateway start")
            refuse_foreign(self.home)
            if _wait_for_owner(self.home):
                return
            try:
                self._inside = self._open()
            except HomeInUseError as error:  # by a gateway or a command that began while we opened
                taken = error
        if taken is not None:
            raise taken

    def _open(self) -> InProcessGateway:
        from hermes.store.sqlite import losses

        match self._alone:
            case Standalone.STORE:
                opened = alone_store(self.home)
            case Standalone.CHAT:
                opened = alone_chat(self.home)
            case _:
                opened = alone_gateway(self.home)
        inside = InProcessGateway(self.home, opened)
        self._recoveries = len(losses.read(self.home))
        try:
            inside.start()
        finally:
            self._tell_of_recoveries()
        return inside

    def _tell_of_recoveries(self) -> None:
        """A file that was damaged is brought back by whoever opens it, so it is up to this command to say so."""
        from hermes.store.sqlite import losses

        reports = losses.read(self.home)
        for report in reports[self._recoveries :]:
            self._on_recovered(report.text(self.home))
        self._recoveries = len(reports)

    def _forget(self) -> None:
        with self._lock:
            inside, self._inside = self._inside, None
            if inside is not None:
                inside.close()
                self._tell_of_recoveries()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._is_closed = True
        self._forget()


def _sendable(args: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed as JSON can carry it: bytes that are no UTF-8 become a mark, and no message is a whole disk."""
    cleaned = {
        name: value.encode("utf-8", "surrogateescape").decode("utf-8", "replace") if isinstance(value, str) else value
        for name, value in args.items()
    }
    longest = max((len(value) for value in cleaned.values() if isinstance(value, str)), default=0)
    if longest > MAX_TEXT_CHARS:
        raise GatewayError(
            f"That is too long for one message: {longest:,} characters, and {MAX_TEXT_CHARS:,} can be sent."
        )
    return cleaned


def _refuse_agent(verb: str, args: Mapping[str, Any]) -> None:
    """Refuse what a gateway would refuse, in a command that works without one.

    A tool may have outlived its gateway. A message to the agent is allowed, a slash command in it is not.
    """
    from hermes.hosting import tool_processes
    from hermes.hosting.control import access

    is_talk = verb == "model.ready" or (verb == "say" and not str(args.get("text") or "").lstrip().startswith("/"))
    if not is_talk and verb not in access.OPEN_TO_TOOLS and tool_processes.is_marked():
        raise GatewayError(access.NOT_THE_AGENT)


class _ReaderIsGone(Exception):  # noqa: N818 - a fact, not an error
    """Our own reader (head, less) has seen enough. It must not look as if the gateway had hung up."""


def _guard_output(on_event: OnEvent | None) -> OnEvent | None:
    if on_event is None:
        return None

    def show(event: Mapping[str, Any]) -> None:
        try:
            on_event(event)
        except BrokenPipeError as error:
            raise _ReaderIsGone from error

    return show


def refuse_foreign(home: Path) -> None:
    """Raise, with the words, when the home is another program's: nothing is written there, not even a lock."""
    from hermes.store.home import Whose, inspect_home

    state = inspect_home(home)
    if state.whose is Whose.FOREIGN:
        from hermes.hosting import banner

        shown = banner.short_home(str(home), os.path.expanduser("~"))
        raise ForeignHomeError(banner.foreign_home(shown, state.description, command_name()))


def refuse_agent() -> None:
    """Raise where a tool of an agent runs this command: an agent neither replaces nor copies what its gateway is."""
    from hermes.hosting import tool_processes
    from hermes.hosting.control import access

    if tool_processes.is_marked():
        raise GatewayError(access.NOT_THE_AGENT)


def is_listening(home: Path) -> bool:
    """Tell whether somebody answers at the socket: a killed gateway leaves the file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(OSError):
        line.settimeout(1.0)
        with control.short_address(paths.socket(str(home))) as address:
            line.connect(address)
        return True
    return False


def _wait_for_gateway(home: Path) -> bool:
    """Return when a gateway can be asked, or holds the home no longer. Raises what keeps it from starting.

    True: it works and its socket is out of reach (another container), so that it is asked by request files.
    """
    began, is_told, told_since = time.monotonic(), False, time.time() + SETTLE_SECONDS
    before: heartbeat.Beat | None = None
    while control.is_running(home) and not is_listening(home):
        # A worker that was just killed may still hold the home while its socket is closed already: it beats no more.
        beat = _beat_of_owner(home)
        if beat is not None and before is not None and beat.pid == before.pid and beat.at != before.at:
            return True
        before = beat
        if reason := _why_it_waits(home, told_since):
            raise GatewayError(reason)
        waited = time.monotonic() - began
        if waited >= BACK_SECONDS:
            raise GatewayIsStalledError(
                f"The gateway holds the home and has not answered for {BACK_SECONDS:.0f} s. "
                f"Look: {command_name()} gateway status"
            )
        if waited >= SAY_AFTER_SECONDS and not is_told:
            is_told = True
            note(f"The gateway is starting. I wait up to {BACK_SECONDS:.0f} s for it.")
        time.sleep(processes.LOOK_SECONDS)
    return False


def _why_it_waits(home: Path, told_since: float) -> str:
    """Why a gateway that does not answer will not do so soon, with what to type; '' where nothing is known of it.

    What a worker told before ``told_since`` may be over: it has waited for us, perhaps.
    """
    seen, last = heartbeat.read(paths.heartbeat(str(home))), lifecycle.last_exit(str(home))
    is_waiting = seen is not None and seen.doing and not seen.ready_at and processes.is_alive(seen.pid, "")
    if seen is not None and is_waiting and seen.at >= told_since:
        return f"The gateway cannot start: {seen.doing.rstrip('.')}. It keeps trying. Look: {command_name()} doctor"
    if last is None or not last.get("restarted") or (seen is not None and seen.at > float(last["at"])):
        return ""
    again_at = float(last.get("next_start_at", 0.0))
    if again_at - time.time() < SAY_AFTER_SECONDS:
        return ""
    when = format_time("%H:%M:%S", again_at)
    return (
        f"The gateway could not start ({last['how']}) and tries again at {when}. "
        f"Now: {command_name()} gateway restart     Why: {command_name()} logs"
    )


def _wait_for_owner(home: Path) -> bool:
    """Wait until no other command works alone in the home. True: a chat does, and it answers for it."""
    path, began, is_told = paths.owner_lock(str(home)), time.monotonic(), False
    while (holder := locks.holder(path)) is not None:
        if holder.what == LONE_CHAT and is_listening(home) and not processes.is_stopped(holder.pid):
            return True
        waited = time.monotonic() - began
        patience = CHAT_SECONDS if holder.what == LONE_CHAT else OWNER_SECONDS
        if waited >= patience or processes.is_stopped(holder.pid):
            raise _held_by(holder)
        if waited >= SAY_AFTER_SECONDS and not is_told and holder.what != LONE_CHAT:
            is_told = True
            note(f"{_as_subject(holder)} works alone in this home. I wait up to {OWNER_SECONDS:.0f} s for its end.")
        time.sleep(processes.LOOK_SECONDS)
    return False


def _held_by(holder: locks.Holder) -> GatewayError:
    if processes.is_stopped(holder.pid):
        return GatewayError(
            f"{_as_subject(holder)} holds this home and is stopped. "
            f"Let it go on with `fg` where it was started, or end it: kill -9 {holder.pid}"
        )
    return GatewayError(
        f"{_as_subject(holder)} works alone in this home. "
        f"Any number can work at once while the gateway runs: {command_name()} gateway start"
    )


def _as_subject(holder: locks.Holder) -> str:
    words = holder.describe()
    return words[0].upper() + words[1:]


def lone_owner(home: Path) -> str:
    """Describe the command that works alone in the home; '' without one."""
    holder = locks.holder(paths.owner_lock(str(home)))
    if holder is None or "gateway" in holder.what:
        return ""
    if processes.is_stopped(holder.pid):
        return f"{holder.describe()}, which is stopped{holder.how_to_end()}"
    return holder.describe()


def _beat_of_owner(home: Path) -> heartbeat.Beat | None:
    """The last heartbeat of the process that owns the home, where it serves."""
    seen = heartbeat.read(paths.heartbeat(str(home)))
    owner = locks.holder(paths.owner_lock(str(home)))
    if seen is None or owner is None or not seen.ready_at or seen.pid != owner.pid:
        return None
    return None if seen.doing in (heartbeat.STOPPING, heartbeat.RESTARTING) else seen


# In this process


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


def load_config(home: Path) -> Any:
    """The configuration as the gateway would see it: a ``hermes.config.Loaded``."""
    from hermes.config import load
    from hermes.services.adapters.registry import find_platforms

    return load(home, os.environ, working_folder(home), tuple(find_platforms().manifests.values()))


def outside_platforms(config: Config) -> list[str]:
    """Platforms that somebody set up and that only a running gateway hears. The terminal's own is none of them."""
    return [
        name
        for name, accounts in config.platforms.items()
        if name != LOCAL and any(account.is_mentioned and account.is_ready for account in accounts.values())
    ]


def working_folder(home: Path) -> Path:
    """Return the current folder. Its `.env` is not read; a warning names it."""
    return Path(paths.working_folder(str(home)))


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
            return answering.result(ANSWER_SECONDS)
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
