"""Supervise the worker: start it, watch its heartbeat, restart it when it dies.

It is small on purpose, since it must outlive whatever the worker does: standard library only, no
asyncio, no threads, no configuration. What it decides is in `restarts`; here are the processes.
"""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Sequence

from hermes.core.durations import use_zone
from hermes.hosting import heartbeat, locks, paths, processes, tool_processes
from hermes.hosting.logs import format as log_format
from hermes.hosting.restart_policy import CONFIGURATION, RESTART_ASKED, STOP_ASKED, RestartPolicy, WorkerExit
from hermes.hosting.terminal import err_unbuffered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hermes.hosting.service.sd_notify import ServiceNotifier

WAIT_FOR_LOCK_SECONDS = 10.0  # for one that is stopping: it drains for 8 s at most
NOTICE_SECONDS = 0.3  # in which one that was just signalled writes down that it is stopping
WAIT_FOR_ORPHAN_SECONDS = 2.0
WAIT_FOR_REPLACED_SECONDS = 10.0
POLL_SECONDS = 1.0
READY_POLL_SECONDS = 0.1  # while systemd waits for the first worker to be ready
SPAWN_AGAIN_SECONDS = 2.0
LEFTOVER_SECONDS = 2.5  # after the end of a worker; a command's own group is ended by its lease within 1.2 s
PROCESS_NAME = "hermes-supervis"  # the system keeps 15 bytes
RESTART_SIGNAL = signal.SIGUSR1  # start the worker anew, now: a person asked for it and the worker does not answer


class Settings:
    """What the parent is told on its command line. Nothing here is configuration of the gateway."""

    def __init__(self, home: str, worker: Sequence[str]) -> None:
        self.home = home
        self.worker = list(worker)
        self.replace = False
        self.detached = False
        self.lock_seconds = WAIT_FOR_LOCK_SECONDS
        self.stall_seconds = 30.0
        self.drain_seconds = 8.0
        self.has_terminal = False  # then a hang-up is the window being closed, and else a request to reload
        self.as_typed: Callable[[str], str] = str  # makes `hermes …` in a text what can be typed here


class Signals:
    """Signals as something to wait for. Those the shell told us to ignore (nohup) stay ignored."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        for end in (self._read, write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, RESTART_SIGNAL):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _note_only)

    def wait(self, seconds: float) -> bytes:
        """The numbers of the signals that came, at once or within the time."""
        ready, _, _ = select.select([self._read], [], [], max(0.0, seconds))
        return os.read(self._read, 512) if ready else b""


def _note_only(_number: int, _frame: object) -> None:
    """The wakeup descriptor carries the news."""


class Worker:
    """One life of the worker, as its parent sees it."""

    def __init__(self, pid: int, leash: int, now: float) -> None:
        self.pid = pid
        self.leash = leash  # our end of a pipe: the worker sees it close when we die
        self.beaten_at = now
        self.polled_at = now
        self.last: heartbeat.Beat | None = None
        self.oom_kills = oom_kills()
        self.stalled_seconds = 0.0
        self.resumed_at = 0.0  # when it took up the platforms that it was started without
        self.is_to_restart = False

    def watch_heart(self, home: str, now: float) -> float:
        """Seconds without a beat. Time in which we did not run either (suspended, stopped) is not counted."""
        seen = heartbeat.read(paths.heartbeat(home))
        is_new = (
            seen is not None and seen.pid == self.pid and (self.last is None or seen.monotonic > self.last.monotonic)
        )
        if is_new:
            if self.last is not None and self.last.safe and seen is not None and not seen.safe:
                self.resumed_at = time.time()
            self.last = seen
        if is_new or now - self.polled_at > POLL_SECONDS * 5:
            self.beaten_at = now
        self.polled_at = now
        return now - self.beaten_at

    def ended(self, status: int) -> WorkerExit:
        if self.is_to_restart:
            return WorkerExit(code=RESTART_ASKED)
        code = os.waitstatus_to_exitcode(status)
        is_ready = self.last is not None and self.last.ready_at > 0
        ready_at = max(self.last.ready_at, self.resumed_at) if self.last else 0.0
        return WorkerExit(
            code=max(code, 0),
            signal=max(-code, 0),
            ready_seconds=time.time() - ready_at if is_ready else None,
            settled=bool(self.last and self.last.settled),
            out_of_memory=code == -signal.SIGKILL and not self.stalled_seconds and oom_kills() > self.oom_kills,
            stalled_seconds=self.stalled_seconds,
            were_paused=bool(self.last and self.last.safe),
        )


class Parent:
    """Keeps one worker up until it is asked to stop. ``run`` returns the exit code of the whole."""

    def __init__(
        self, settings: Settings, signals: Signals, lock: locks.Lock, notifier: ServiceNotifier | None = None
    ) -> None:
        self._settings = settings
        self._notifier = notifier
        self._signals = signals
        self._lock = lock
        self._restarts = RestartPolicy()
        self._asked = 0
        self._is_to_start_now = False
        self._kill_at = 0.0
        self._sweep_at = 0.0

    def run(self) -> int:
        ended: WorkerExit | None = None
        while True:
            worker = self._spawned(ended)
            if worker is None:
                self._record(WorkerExit(code=STOP_ASKED), goes_on=False)
                return STOP_ASKED
            ended = self._wait(worker)
            os.close(worker.leash)
            if ended.code != RESTART_ASKED or worker.is_to_restart:
                # Programs of ours end by themselves when their worker is gone. What was left at an asked restart stays.
                self._sweep_at = time.monotonic() + LEFTOVER_SECONDS
            now = time.monotonic()
            self._restarts.note(ended, now)
            goes_on = not self._asked and ended.kind not in ("asked", "configuration")
            pause = self._restarts.pause_seconds(ended, now) if goes_on else 0.0
            self._record(ended, goes_on, pause)
            if not goes_on:
                self._end_leftovers()
                return CONFIGURATION if ended.kind == "configuration" else STOP_ASKED
            if ended.code != RESTART_ASKED:
                self._say("WARNING", "Worker ended", {"reason": ended.describe(), "restart_in": pause})
                if self._notifier is not None:
                    self._notifier.describe(f"The worker ended ({ended.describe()}) and is started again.")
            if not self._pause(pause):
                self._record(WorkerExit(code=STOP_ASKED), goes_on=False)
                return STOP_ASKED

    def _spawned(self, before: WorkerExit | None) -> Worker | None:
        """A worker, as soon as the system lets us have one; None when we are asked to stop before that.

        It may refuse for a while: when memory is short, which may be what killed the last one, or while an update
        replaces our Python.
        """
        logged = ""
        while True:
            try:
                return self._spawn(before)
            except OSError as error:
                if logged != (logged := str(error)):
                    self._say("ERROR", "Worker cannot be started", {"reason": logged, "again_in": SPAWN_AGAIN_SECONDS})
            if not self._pause(SPAWN_AGAIN_SECONDS):
                return None

    def _spawn(self, before: WorkerExit | None) -> Worker:
        # The worker inherits the reading end and sees it close when we die, however we die.
        theirs, ours = os.pipe()
        os.set_inheritable(theirs, True)
        command = [*self._settings.worker, "--parent-fd", str(theirs)]
        if before and self._restarts.is_looping(time.monotonic()):
            count = self._restarts.count(time.monotonic())
            reason = f"{count} starts in a row went wrong, the last one: {before.describe()}"
            command += ["--safe", reason]
            self._say("ERROR", "Starting with platforms paused", {"reason": reason})
        try:
            pid = os.posix_spawn(command[0], command, os.environ)
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return Worker(pid, ours, time.monotonic())

    def _wait(self, worker: Worker) -> WorkerExit:
        """Watch until the worker has ended, passing on what we are asked and minding its heart."""
        if self._asked:
            self._ask_to_stop(worker)  # asked while there was no worker
        while (status := _reap(worker.pid)) is None:
            patience = min(POLL_SECONDS, self._kill_at - time.monotonic()) if self._kill_at else POLL_SECONDS
            if self._notifier is not None:
                patience = self._notify(self._notifier, worker, patience)
            self._hear(self._signals.wait(max(patience, 0.01)), lambda: self._ask_to_stop(worker), worker)
            now = time.monotonic()
            silent = worker.watch_heart(self._settings.home, now)
            if self._sweep_at and now >= self._sweep_at:
                self._end_leftovers(worker)
            if self._kill_at and now >= self._kill_at:
                _kill(worker.pid, signal.SIGKILL)
            elif silent > self._settings.stall_seconds and not worker.stalled_seconds:
                worker.stalled_seconds = silent
                _kill(worker.pid, signal.SIGKILL)
        # What it said last, after our last look: whether it was ready and had settled something.
        worker.watch_heart(self._settings.home, time.monotonic())
        return worker.ended(status)

    def _notify(self, notifier: ServiceNotifier, worker: Worker, patience: float) -> float:
        """Tell systemd how the worker is; returns the seconds until the next look."""
        if worker.last is not None and worker.last.ready_at and not self._asked:
            notifier.ready()
        notifier.alive()
        return patience if notifier.is_ready else min(patience, READY_POLL_SECONDS)

    def _end_leftovers(self, worker: Worker | None = None) -> None:
        """Kill what the tools of a worker left behind that has ended; those of ``worker`` are younger than that."""
        self._sweep_at = 0.0
        limit = tool_processes.lock_limit(os.getpid())
        older_than = processes.start_mark(worker.pid) if worker is not None else ""
        if killed := tool_processes.end_leftovers(self._settings.home, limit, older_than):
            self._say("WARNING", "Processes of tools killed", {"count": killed, "reason": "the worker has ended"})

    def _hear(self, numbers: bytes, on_stop: Callable[[], None], worker: Worker | None = None) -> None:
        for number in numbers:
            if number == signal.SIGCHLD:
                continue
            if number == RESTART_SIGNAL:
                self._say("INFO", "Restarting", {"reason": "asked by the command line"})
                self._restarts.forget()
                self._is_to_start_now = True
                if worker is not None:
                    worker.is_to_restart = True
                    _kill(worker.pid, signal.SIGKILL)
                continue
            if number == signal.SIGHUP and not self._settings.has_terminal:
                if worker is not None:  # without a heartbeat yet it would die of the signal
                    worker.watch_heart(self._settings.home, time.monotonic())
                    if worker.last is not None:
                        _kill(worker.pid, signal.SIGHUP)
                continue
            self._asked += 1
            if self._asked == 1:
                try:
                    self._lock.stopping()
                except OSError as error:
                    self._say("WARNING", "Stop not recorded", {"reason": str(error)})
                if self._notifier is not None:
                    self._notifier.stopping()
                on_stop()
            elif number == signal.SIGINT and worker is not None:
                _kill(worker.pid, signal.SIGKILL)  # Ctrl+C a second time: no more patience

    def _ask_to_stop(self, worker: Worker) -> None:
        self._kill_at = time.monotonic() + self._settings.drain_seconds
        _kill(worker.pid, signal.SIGTERM)
        if os.isatty(2):
            err_unbuffered("Stopping. What is unfinished goes on after the next start. Ctrl+C again ends it at once.")

    def _pause(self, seconds: float) -> bool:
        """Wait before the next start; False when we are asked to stop meanwhile."""
        deadline = time.monotonic() + seconds
        while not self._asked and not self._is_to_start_now and (left := deadline - time.monotonic()) > 0:
            if self._notifier is not None:
                self._notifier.alive()
            self._hear(self._signals.wait(min(left, POLL_SECONDS)), lambda: None)
        self._is_to_start_now = False
        return not self._asked

    def _record(self, ended: WorkerExit, goes_on: bool, pause: float = 0.0) -> None:
        """Write down how the worker ended, how often it did within the last hour, and when the next one starts."""
        now = time.time()
        record = {
            "at": now,
            "kind": "asked" if self._asked else ended.kind,
            "how": ended.describe(),
            "restarted": goes_on,
            "next_start_at": now + pause,
            "unasked_ends": [round(now - age, 3) for age in self._restarts.ages(time.monotonic())],
        }
        try:
            paths.write_private(paths.last_exit(self._settings.home), json.dumps(record))
        except OSError as error:
            self._say("WARNING", "Worker exit not recorded", {"reason": str(error)})

    def _say(self, level: str, words: str, fields: dict[str, object]) -> None:
        form = log_format.json_line if log_format.ends_in_json(paths.log(self._settings.home)) else log_format.line
        text = form(time.time(), level, words, fields)
        log_format.append(paths.log(self._settings.home), text)
        log_format.append(paths.error_log(self._settings.home), text)
        if not self._settings.detached:  # the log has it, and nobody watches
            err_unbuffered(text)


def take_over(settings: Settings) -> locks.Lock | None:
    """Become the one parent of this home, or say why not."""
    path = paths.parent_lock(settings.home)
    if settings.replace:
        _leave_group(settings)
        _stop_holder(path)
    lock = _take(path, settings.lock_seconds if settings.replace else 0.0)
    holder = locks.holder(path) if lock is None else None
    if lock is None and not settings.replace and _is_stopping(settings.home):
        process = f" (pid {holder.pid})" if holder and holder.pid else ""
        err_unbuffered(f"The gateway{process} is stopping. This one starts as soon as it has ended.")
        lock = _take(path, settings.lock_seconds)
    if lock is None:
        process = f" (pid {holder.pid})" if holder and holder.is_here() else " (in another container or account)"
        cure = "Stop it where it runs." if settings.replace else "Take over: hermes gateway run --replace"
        look = settings.as_typed(f"Look: hermes gateway status     {cure}")
        err_unbuffered(f"✗ A gateway is already running for {settings.home}{process}.\n  {look}")
        return None
    _end_orphan(settings.home)
    return lock


def _take(path: str, wait_seconds: float) -> locks.Lock | None:
    return locks.take(path, "supervisor", wait_seconds, restart_signal=RESTART_SIGNAL)


def _is_stopping(home: str) -> bool:
    """Whether the gateway that holds the lock is about to end, or has just ended."""

    def is_ending() -> bool:
        holder, seen = locks.holder(paths.parent_lock(home)), heartbeat.read(paths.heartbeat(home))
        return holder is None or holder.is_stopping or (seen is not None and seen.doing == heartbeat.STOPPING)

    return processes.wait_until(is_ending, NOTICE_SECONDS)


def _leave_group(settings: Settings) -> None:
    """Whoever is replaced ends what it started, and a command of its agent may be what started us.

    A command without a terminal that is not the first of its process group belongs to somebody: it leaves that group
    before it stops anybody, and says the rest to the log when only that somebody could hear it.
    """
    if os.getpgrp() == os.getpid() or _has_terminal():
        return
    os.setsid()
    if stat.S_ISFIFO(os.fstat(1).st_mode):
        output = paths.open_console(settings.home)
        for descriptor in (1, 2):
            os.dup2(output, descriptor)
        os.close(output)
        settings.detached = True
        settings.worker.append("--detached")


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _stop_holder(path: str) -> None:
    """Stop the process that holds our lock, and no other: it proves by the lock and its start time who it is."""
    holder = locks.holder(path)
    if holder is None or not processes.send_signal(holder.pid, holder.mark, signal.SIGTERM):
        return
    if not processes.wait_until_gone(holder.pid, holder.mark, WAIT_FOR_REPLACED_SECONDS):
        processes.send_signal(holder.pid, holder.mark, signal.SIGKILL)


def _end_orphan(home: str) -> None:
    """A worker dies with its parent; one that could not (stopped, stuck) is ended before ours starts."""
    path = paths.owner_lock(home)
    deadline = time.monotonic() + WAIT_FOR_ORPHAN_SECONDS
    while (holder := locks.holder(path)) is not None and "gateway" in holder.what:
        if time.monotonic() >= deadline:
            processes.send_signal(holder.pid, holder.mark, signal.SIGKILL)
            processes.wait_until_gone(holder.pid, holder.mark, 1.0)
            return
        time.sleep(0.02)


def oom_kills() -> int:
    """Count the processes that this machine killed for want of memory."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            for row in file:
                if row.startswith("oom_kill "):
                    return int(row.split()[1])
    except OSError:
        return 0
    return 0


def _reap(pid: int) -> int | None:
    """The worker's status once it ended. Other children are reaped too: in a container we may be process 1."""
    while True:
        try:
            found, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 1 << 8  # reaped by somebody else: as good as ended with code 1
        if found == pid:
            return status
        if found == 0:
            return None


def _kill(pid: int, number: int) -> None:
    # Not reaped yet, so the pid is still this worker's and the signal cannot hit another process.
    os.kill(pid, number)


def read_arguments(arguments: Sequence[str], environ: dict[str, str]) -> Settings:
    """``[--replace] [--detached] [--lock-seconds N] [--stall-seconds N] [--drain-seconds N] [-- WORKER COMMAND…]``"""
    home = environ.get("HERMES_HOME") or os.path.expanduser("~/.hermes")
    isolation = ["-P"] if sys.flags.safe_path else []  # as we were started ourselves
    settings = Settings(os.path.abspath(home), [sys.executable, *isolation, "-m", "hermes", "gateway", "worker"])
    rest = list(arguments)
    while rest:
        match rest.pop(0):
            case "--replace":
                settings.replace = True
            case "--detached":
                settings.detached = True
            case "--lock-seconds":
                settings.lock_seconds = float(rest.pop(0))
            case "--stall-seconds":
                settings.stall_seconds = float(rest.pop(0))
            case "--drain-seconds":
                settings.drain_seconds = float(rest.pop(0))
            case "--":
                settings.worker, rest = rest, []
            case other:
                raise SystemExit(f"hermes supervisor does not know {other!r}; people start it by: hermes gateway run")
    if settings.detached:
        settings.worker.append("--detached")
    return settings


def main(arguments: Sequence[str], as_typed: Callable[[str], str] = str) -> int:
    os.umask(0o077)
    use_zone(lambda: None)  # the parent loads no configuration: its few lines have the zone of the process
    processes.rename_process(PROCESS_NAME)
    processes.adopt_orphans()
    processes.hide_memory()
    settings = read_arguments(arguments, dict(os.environ))
    settings.as_typed = as_typed
    settings.has_terminal = not settings.detached and _has_terminal()
    os.environ["HERMES_HOME"] = settings.home
    notifier = None
    if "NOTIFY_SOCKET" in os.environ:
        from hermes.hosting.service.sd_notify import ServiceNotifier  # brings `socket`, which nobody else needs here

        notifier = ServiceNotifier(os.environ)
    signals = Signals()
    try:
        lock = take_over(settings)
    except OSError as error:  # a full disk, as a rule: there is no worker yet that could say so
        cure = settings.as_typed("Find problems: hermes doctor")
        err_unbuffered(f"✗ The gateway cannot start in {settings.home}: {error.strerror}. {cure}")
        return 1
    if lock is None:
        return 1
    try:
        return Parent(settings, signals, lock, notifier).run()
    finally:
        lock.release()
