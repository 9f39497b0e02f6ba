"""Start, stop and restart the gateway from outside, and report the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.core.dataclasses import dataclass
from hermes.core.durations import count, format_duration
from hermes.hosting import build, heartbeat, launch, locks, paths, processes, status
from hermes.hosting.control import client as control
from hermes.store import home_faults

if TYPE_CHECKING:
    from hermes.hosting.service.services import Service

READY_SECONDS = 30.0
FAILED_STARTS = 2
"""After so many nobody waits for the next one: with the third, the supervisor pauses the platforms."""
ASK_SECONDS = 2.0
STOP_SECONDS = 10.0
SERVICE_STOP_SECONDS = 40.0  # the unit gives the supervisor 20 s before systemd kills it
NOT_RUNNING = 3


@dataclass(frozen=True, slots=True)
class LifecycleResult:
    """What happened, for a person, and the exit code that says it to a script."""

    text: str
    exit_code: int = 0


def start_detached(home: Path, *, replace: bool = False) -> subprocess.Popen[bytes]:
    """Start the supervisor in a session of its own: no terminal and no turn takes it along when it ends."""
    output = paths.open_console(str(home))
    try:
        return subprocess.Popen(
            launch.supervisor_command(replace=replace, detached=True),
            env=launch.environ_for(str(home)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)


def start(home: Path, command: str) -> LifecycleResult:
    """Start the gateway in the background, by its service where one is installed."""
    if control.is_running(home):
        return LifecycleResult(f"✓ The gateway is running already. Its status: {command} gateway status")
    if (service := _service_of(home)) is not None:
        return _start_service(home, command, service)
    log = Path(paths.log(str(home)))
    told_before = os.path.getsize(log) if os.path.exists(log) else 0
    started = time.time()
    supervisor = start_detached(home)
    processes.wait_until(lambda: _is_ready(home, started) or supervisor.poll() is not None, READY_SECONDS)
    if supervisor.poll() is not None:
        message = (
            _tail(Path(paths.console_log(str(home))), 0)
            or _tail(log, told_before)
            or f"  It printed nothing. To see more: {command} gateway run"
        )
        return LifecycleResult(f"✗ The gateway did not start.\n{message}", supervisor.returncode or 1)
    # It is meant to outlive us; without this the interpreter would warn that a child still runs.
    supervisor.returncode = 0
    if not _is_ready(home, started):
        return LifecycleResult(_still_starting(home, command), 1)
    seconds = time.time() - started
    return LifecycleResult(
        f"✓ Gateway started in {seconds:.1f} s, in the background. A reboot ends it.\n"
        f"  Talk to it: {command}     Its status: {command} gateway status     Stop it: {command} gateway stop"
    )


def _still_starting(home: Path, command: str) -> str:
    """Say that the start takes long, what holds it up, and what the worker printed last."""
    judged = status.judge(look(home, command))
    failures = [row.strip() for row in _tail(Path(paths.console_log(str(home))), 0).splitlines() if "✗" in row]
    lines = [f"! The gateway is not ready after {READY_SECONDS:.0f} s.", f"  {judged.lines[0]}"]
    lines += [f"  {row}" for row in failures[-1:] if row not in judged.lines[0]]
    return "\n".join([*lines, f"  Look: {command} gateway status     The log: {command} logs --level warning"])


def _service_of(home: Path) -> Service | None:
    from hermes.hosting.service import services

    return services.find_installed(str(home))


def _start_service(home: Path, command: str, service: Service) -> LifecycleResult:
    started = time.time()
    answers = [service.run(step) for step in service.start_steps()]
    if answers[-1].code:
        reason = answers[-1].complaint or f"exit code {answers[-1].code}"
        return LifecycleResult(
            f"✗ {service.describe()} did not start the gateway: {reason}. Type: {service.typed('start')}", 1
        )
    if not processes.wait_until(lambda: _is_ready(home, started), READY_SECONDS):
        return LifecycleResult(
            f"! The gateway is still starting after {READY_SECONDS:.0f} s; {service.describe()} says: "
            f"{service.how_it_stands()}. Look: {service.journal(str(home))}",
            1,
        )
    return LifecycleResult(
        f"✓ Gateway started in {time.time() - started:.1f} s by {service.describe()}.\n"
        f"  Talk to it: {command}     Its status: {command} gateway status     Stop it: {command} gateway stop"
    )


def _stop_service(service: Service) -> str:
    """Have the service manager stop the gateway, which it would start again otherwise; the complaint, else ''."""
    answer = service.run(service.stop_steps()[0], SERVICE_STOP_SECONDS)
    if not answer.code:
        return ""
    return f"{answer.complaint or f'exit code {answer.code}'}. Type: {service.typed('stop')}"


def stop(home: Path, command: str) -> LifecycleResult:
    """Ask it to finish what it is doing and end; one that does not answer is ended by signals."""
    service = _service_of(home)
    if not control.is_running(home):
        if service is not None and (trouble := _stop_service(service)):  # it may be about to start
            return LifecycleResult(f"✗ {service.describe()} did not stop: {trouble}", 1)
        return LifecycleResult(f"✓ The gateway is not running. Start it: {command} gateway run", NOT_RUNNING)
    holder = locks.holder(paths.parent_lock(str(home)))
    began, began_wall = time.monotonic(), time.time()
    if launch.is_inside(str(home)):
        return LifecycleResult(
            "✗ This runs in the agent's own terminal, and the agent does not stop its own gateway. "
            f"Type it in a terminal that you opened yourself: {command} gateway stop",
            1,
        )
    # The manager of a service starts the gateway again unless it ends the gateway itself.
    if service is not None and (trouble := _stop_service(service)):
        return LifecycleResult(f"✗ {service.describe()} did not stop the gateway: {trouble}", 1)
    asked = not control.is_running(home) or _ask(home, "stop")
    if not asked and holder is not None:
        processes.send_signal(holder.pid, holder.mark, signal.SIGTERM)
    if processes.wait_until(lambda: not control.is_running(home), STOP_SECONDS):
        how = "as asked" if asked else "by signal, since it did not answer"
        interrupted = _interrupted(home, began_wall)
        rest = f": {count(interrupted, 'turn')} {_go(interrupted)} on after the next start" if interrupted else ""
        return LifecycleResult(
            f"✓ Gateway stopped {how}, after {format_duration(time.monotonic() - began)}. Nothing is lost{rest}."
        )
    return _end_by_force(home, holder)


def _end_by_force(home: Path, holder: locks.Holder | None) -> LifecycleResult:
    if holder is None or not holder.is_here():
        return LifecycleResult("✗ The gateway runs in another container or account; stop it where it runs.", 1)
    processes.send_signal(holder.pid, holder.mark, signal.SIGKILL)  # its worker dies with it
    if processes.wait_until(lambda: not control.is_running(home), 3.0):
        return LifecycleResult(
            "! The gateway did not end in time and was killed. Nothing is lost: the next start goes on."
        )
    return LifecycleResult(
        f"✗ The gateway (pid {holder.pid}) cannot be stopped. See what holds it: ps -l {holder.pid}", 1
    )


def restart(home: Path, command: str) -> LifecycleResult:
    """Hand over to the supervisor: the worker drains and is started anew. Safe from the agent's own terminal too."""
    if not control.is_running(home):
        if (service := _service_of(home)) is not None:
            return _start_service(home, command, service)
        return LifecycleResult(f"✗ The gateway is not running. Start it: {command} gateway run", NOT_RUNNING)
    before = heartbeat.read(paths.heartbeat(str(home)))
    began, began_wall = time.monotonic(), time.time()
    asked = _ask(home, "restart")
    if launch.is_inside(str(home)):
        return LifecycleResult("✓ The gateway restarts when this turn has drained, and goes on after it.")
    if not asked and not _restart_by_signal(home, before):
        return LifecycleResult("✗ The gateway does not answer, and its worker cannot be seen from here.", 1)
    processes.wait_until(lambda: _is_ready(home, began_wall) or _is_failing(home, began_wall), READY_SECONDS)
    if not _is_ready(home, began_wall):
        last = last_exit(str(home))
        why = f" ({last['how']})" if last and float(last["at"]) >= began_wall and last["kind"] != "restart" else ""
        return LifecycleResult(
            f"✗ The gateway is not back after {time.monotonic() - began:.0f} s{why}. Look: {command} gateway status", 1
        )
    interrupted = _interrupted(home, began_wall)
    if not asked:
        how = ": it did not answer, was killed and is"
    elif interrupted is None:
        how = ": what it could not finish goes on, and it is"
    elif interrupted:
        how = f": {count(interrupted, 'turn')} did not end in time and {_go(interrupted)} on now, and it is"
    else:
        how = ": it finished what it was doing and is"
    return LifecycleResult(f"✓ Gateway restarted{how} ready again after {format_duration(time.monotonic() - began)}.")


def _is_failing(home: Path, since: float) -> bool:
    """Whether the worker has ended again and again since: it is no use to wait for the next one."""
    last = last_exit(str(home)) or {}
    return sum(float(at) >= since for at in last.get("unasked_ends", ())) >= FAILED_STARTS


def _go(number: int) -> str:
    return "goes" if number == 1 else "go"


def _restart_by_signal(home: Path, before: heartbeat.Beat | None) -> bool:
    """Have the supervisor start a worker that does not answer, or is not there, anew; False when it cannot be told."""
    holder = locks.holder(paths.parent_lock(str(home)))
    if holder is None:
        return False
    if holder.restart_signal:
        return processes.send_signal(holder.pid, holder.mark, holder.restart_signal)
    # One of an older version would die of that signal: its worker is killed, and it starts the next.
    is_ours = before is not None and processes.parent_of(before.pid) == holder.pid
    return is_ours and before is not None and processes.send_signal(before.pid, "", signal.SIGKILL)


def _interrupted(home: Path, since: float) -> int | None:
    """How many turns the end that was asked for interrupted; None when the gateway could not write it down."""
    try:
        record = json.loads(Path(paths.last_drain(str(home))).read_text(encoding="utf-8"))
        return int(record["interrupted"]) if float(record["at"]) >= since else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def look(home: Path, command: str, platforms: Callable[[], Sequence[str]] = tuple) -> status.Facts:
    """Gather all that can be seen from outside. ``platforms`` is called only when no gateway runs: it is slow."""
    folder = str(home)
    heart = heartbeat.read(paths.heartbeat(folder))
    is_held, is_hidden, snapshot = False, False, None
    try:
        is_held = control.is_running(home)
        snapshot = _snapshot(home, heart) if is_held else None
    except PermissionError:  # the faults say why, with the cure
        is_hidden = True
    return status.Facts(
        now=time.time(),
        monotonic=time.monotonic(),
        snapshot=snapshot,
        is_held=is_held,
        is_hidden=is_hidden,
        beat=heartbeat.read(paths.heartbeat(folder)),
        last_exit=last_exit(folder),
        booted_at=processes.booted_at(),
        command=command,
        installed=build.installed(),
        platforms=() if is_held else tuple(platforms()),
        service=_service_row(home, snapshot, is_held=is_held),
        # One that answers tells its own; whoever asks may have other rights than it has.
        faults=()
        if snapshot is not None
        else tuple(map(str, home_faults.find_faults(home, looks_at_lock=not is_held))),
    )


def _service_row(home: Path, snapshot: dict[str, Any] | None, *, is_held: bool) -> str:
    if is_held and snapshot is None:
        return ""  # what it does is told by its heartbeat
    from hermes.hosting.service import service_status

    kept_up_by = str((snapshot or {}).get("kept_up_by", ""))
    return service_status.describe(str(home), is_running=is_held, kept_up_by=kept_up_by)


def _snapshot(home: Path, heart: heartbeat.Beat | None) -> dict[str, Any] | None:
    age = heart.age(time.time(), time.monotonic()) if heart else 0.0
    # A heart that stopped, or a gateway that is still starting, will not answer; it gets a chance all the same.
    is_up = heart is None or heart.ready_at > 0
    patience = control.ANSWER_SECONDS if is_up and age < status.HEART_STOPPED_SECONDS else 0.5
    try:
        snapshot = control.call(home, "status", timeout=patience)
    except (control.GatewayIsDownError, control.GatewayIsStalledError, control.RefusedByGatewayError):
        return None
    return snapshot if isinstance(snapshot, dict) else None


def last_exit(home: str) -> dict[str, Any] | None:
    """Read the supervisor's record of the last worker exit; None without one."""
    try:
        record = json.loads(Path(paths.last_exit(home)).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and {"at", "kind", "how"} <= record.keys() else None


def _ask(home: Path, verb: str) -> bool:
    try:
        control.call(home, verb, timeout=ASK_SECONDS)
    except (control.GatewayIsDownError, control.GatewayIsStalledError, control.RefusedByGatewayError):
        return False
    return True


def _is_ready(home: Path, since: float) -> bool:
    seen = heartbeat.read(paths.heartbeat(str(home)))
    return seen is not None and seen.ready_at >= since


def _tail(log: Path, offset: int) -> str:
    """What the log says since we started it, at most ten lines."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(f"  {row}" for row in lines[-10:])
