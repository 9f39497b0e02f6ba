"""Run the gateway in its own process: logs, signals, heartbeat, parent pipe."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

from hermes.core.dataclasses import dataclass
from hermes.core.errors import ConfigError, ForeignHomeError, StoreIsDownError
from hermes.core.i18n.failures import sentence
from hermes.core.secret import Redactor
from hermes.hosting import paths, processes, terminal, tool_processes
from hermes.hosting.build import Build, installed
from hermes.hosting.heartbeat import RESTARTING, STOPPING
from hermes.hosting.heartbeat_writer import Heartbeat
from hermes.hosting.launch import describe_missing_package
from hermes.hosting.logs.logs import Logs
from hermes.hosting.restart_policy import CONFIGURATION, RESTART_ASKED, STOP_ASKED
from hermes.hosting.service.service_manager import who_keeps_us_up
from hermes.hosting.tool_processes import ToolProcesses

PROCESS_NAME = "hermes"
DRAIN_SECONDS = 7.0  # less than the 8 s after which the parent kills
ORPHAN_SECONDS = 0.6  # what is left for finishing when the parent is gone
SAME_START_SECONDS = 2.0
CRASHED = 1
LOOK_FOR_CYCLES_AFTER = (20_000, 20, 20)  # new objects: a message makes a thousand that live, and no cycle of ours

log = logging.getLogger(__name__)


class StopRequest:
    """Whether the gateway was asked to end, and with which exit code. Asked twice, the first answer stays,
    except that a stop overrules a restart."""

    def __init__(self) -> None:
        self._asked = asyncio.Event()
        self._code: int | None = None
        self.reason = ""

    def ask(self, code: int = STOP_ASKED, reason: str = "") -> None:
        if self._code is None or code == STOP_ASKED:
            self._code, self.reason = code, reason
        self._asked.set()

    @property
    def is_requested(self) -> bool:
        return self._asked.is_set()

    @property
    def will_restart(self) -> bool:
        return self._code == RESTART_ASKED

    async def wait(self) -> int:
        """Sleep until somebody asks; the exit code to end with."""
        await self._asked.wait()
        return self._code or STOP_ASKED


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What ``serve`` is handed. ``safe_reason`` not empty: start with platforms paused and say why.

    ``redactor`` hides secrets in the log: teach it each one as it becomes known. ``kept_up_by`` is "" when nobody
    starts the supervisor again. ``command`` is how `hermes` is typed here. ``reload`` is set by a hang-up signal:
    whoever serves reads the configuration again and clears it. ``build`` is the code that this process runs.
    ``tools`` knows the processes that were started for tools. ``log_trouble`` says why lines of the log are lost, or
    ''; it blocks.
    """

    home: Path
    stop: StopRequest
    heartbeat: Heartbeat
    redactor: Redactor = field(default_factory=Redactor)
    safe_reason: str = ""
    started_at: float = 0.0
    parent_pid: int = 0
    kept_up_by: str = ""
    command: str = "hermes"
    reload: asyncio.Event = field(default_factory=asyncio.Event)
    build: Build = Build("")
    tools: ToolProcesses = field(default_factory=ToolProcesses)
    log_trouble: Callable[[], str] = lambda: ""


Serve = Callable[[WorkerOptions, Callable[[], None]], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class WorkerArguments:
    """The command line of `hermes gateway worker`, written by the parent."""

    home: Path
    parent_fd: int = -1
    safe_reason: str = ""
    detached: bool = False
    command: str = "hermes"


def run_worker(arguments: WorkerArguments, load: Callable[[], Serve]) -> int:
    """Be the worker until asked to stop; the exit code is the parent's instruction (0, 75, 78, else a crash).

    ``load`` imports what serves; it is called when logs stand, so that a broken import is told there too.
    """
    gc.disable()  # until it is ready: what is imported now stays, and looking through it costs a tenth of the start
    # The start that a person waited for began with the supervisor, if this is its first worker.
    ours, parents = processes.started_at(os.getpid()), processes.started_at(os.getppid())
    started_at = parents if 0 <= ours - parents < SAME_START_SECONDS else ours
    os.umask(0o077)
    processes.rename_process(PROCESS_NAME)
    processes.hide_memory()
    redactor = Redactor()
    has_console = not arguments.detached and not sys.stdout.isatty()
    with Logs.open(str(arguments.home), redactor, console=has_console) as logs:
        # Children need a folder that is there, and ours may have gone since the supervisor was started.
        os.chdir(paths.working_folder(str(arguments.home)))
        if arguments.safe_reason:
            log.error("Platforms are paused", extra={"reason": arguments.safe_reason})
        try:
            return asyncio.run(_live(arguments, load(), redactor, started_at, logs))
        except StoreIsDownError as error:
            log.error("Store is down", extra={"reason": str(error)})
            _tell(redactor(f"✗ {error}"))
            return CRASHED
        except (ConfigError, ForeignHomeError) as error:
            log.error("Configuration", extra={"reason": str(error)})
            _tell(redactor(str(error)))
            return CONFIGURATION
        except Exception as error:
            # The supervisor's edge: whatever it is, it is told, and the parent starts us again.
            log.critical("Worker failed", exc_info=True)
            missing = describe_missing_package(error) if isinstance(error, ModuleNotFoundError) else ""
            words = missing or f"{sentence(str(error))} The details: {arguments.command} logs --level error"
            _tell(redactor(f"✗ The gateway failed: {words}"))
            return CRASHED


def _tell(words: str) -> None:
    with suppress(OSError):  # the window is closed
        terminal.err(words)


async def _live(
    arguments: WorkerArguments, serve: Serve, redactor: Redactor, started_at: float, logs: Logs | None = None
) -> int:
    stop = StopRequest()
    has_parent = arguments.parent_fd >= 0
    parent_pid = os.getppid() if has_parent else 0
    heart = Heartbeat(str(arguments.home), arguments.safe_reason)
    options = WorkerOptions(
        home=arguments.home,
        stop=stop,
        heartbeat=heart,
        redactor=redactor,
        safe_reason=arguments.safe_reason,
        started_at=started_at,
        parent_pid=parent_pid,
        kept_up_by=who_keeps_us_up(parent_pid, is_detached=arguments.detached),
        command=arguments.command,
        build=installed(),
        tools=ToolProcesses((os.getpid(), parent_pid), tool_processes.mark_children()),
        log_trouble=lambda: logs.trouble() if logs is not None else "",
    )
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.ask)
    # A terminal sends these two to us and to the parent; the parent's SIGTERM is the one by which we end.
    loop.add_signal_handler(signal.SIGINT, (lambda: None) if has_parent else stop.ask)
    loop.add_signal_handler(signal.SIGHUP, options.reload.set if has_parent else stop.ask)
    if has_parent:
        _hold_leash(arguments.parent_fd, stop, str(arguments.home))
    async with heart.beating():
        serving = asyncio.ensure_future(serve(options, lambda: _ready(heart, started_at)))
        asking = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, asking}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_requested:
            log.info("Restarting" if stop.will_restart else "Stopping", extra={"reason": stop.reason or "signal"})
            heart.draining(RESTARTING if stop.will_restart else STOPPING)
        if serving.done():
            asking.cancel()
            return serving.result()
        return await _drain(serving, asking.result())


async def _drain(serving: asyncio.Future[int], code: int) -> int:
    """Let it finish, but not for ever: the parent's patience ends after 8 s."""
    done, _ = await asyncio.wait({serving}, timeout=DRAIN_SECONDS)
    if done:
        return serving.result()
    log.warning("Shutdown timed out", extra={"seconds": DRAIN_SECONDS})
    serving.cancel()
    await asyncio.wait({serving}, timeout=0.5)
    return code


def _ready(heart: Heartbeat, started_at: float) -> None:
    gc.freeze()
    gc.set_threshold(*LOOK_FOR_CYCLES_AFTER)
    gc.enable()
    heart.ready()
    log.info("Gateway started", extra={"seconds": round(time.time() - started_at, 3)})


def _hold_leash(descriptor: int, stop: StopRequest, home: str) -> None:
    """Die with the parent: its end of this pipe closes however it dies, and a thread of ours sees that."""
    os.set_inheritable(descriptor, False)  # a child of ours would keep nothing alive, but need not have it
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(descriptor, 64):
            continue
        with suppress(RuntimeError):  # the loop may have ended just now
            loop.call_soon_threadsafe(stop.ask, CRASHED, "the supervisor is gone")
        time.sleep(ORPHAN_SECONDS)
        tool_processes.end_leftovers(home, tool_processes.lock_limit(os.getpid()) + 1, seconds=0.0)
        os._exit(CRASHED)

    threading.Thread(target=watch, name="leash", daemon=True).start()


def process_snapshot(options: WorkerOptions) -> dict[str, Any]:
    """The part of a status snapshot that is about the process: the services add platforms, model and what waits."""
    return {
        "state": "stopping" if options.stop.is_requested else "running",
        "pid": os.getpid(),
        "started_at": options.started_at,
        "now": time.time(),
        "kept_up_by": options.kept_up_by,
        "safe_reason": options.safe_reason,
        "heartbeat_age": options.heartbeat.age(),
        "rss": processes.resident_bytes(os.getpid()) + processes.resident_bytes(options.parent_pid),
        "version": options.build.version,
        "commit": options.build.commit,
        "code": options.build.folder,
    }


def lifecycle_verbs(options: WorkerOptions) -> Mapping[str, Callable[[Mapping[str, Any], Any], Awaitable[Any]]]:
    """The control socket's verbs about the process itself: ``ping``, ``stop``, ``restart``."""

    async def ping(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        return {"pid": os.getpid(), "home": str(options.home)}

    async def stop(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        options.stop.ask(STOP_ASKED, "asked by the command line")
        return {"pid": os.getpid(), "parent": options.parent_pid}

    async def restart(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        options.stop.ask(RESTART_ASKED, "asked by the command line")
        return {"pid": os.getpid(), "parent": options.parent_pid}

    return {"ping": ping, "stop": stop, "restart": restart}
