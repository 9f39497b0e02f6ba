"""Find the process that holds the home, and wait for it."""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from pathlib import Path

from hermes.cli.support.program_name import command_name
from hermes.cli.support.screen import note
from hermes.core.durations import format_time
from hermes.core.errors import GatewayError
from hermes.hosting import heartbeat, lifecycle, locks, paths, processes
from hermes.hosting.control import client as control
from hermes.hosting.control.client import (
    GatewayIsStalledError,
)

BACK_SECONDS = 30.0  # a worker that was killed is up again long before, on a busy machine too
OWNER_SECONDS = 30.0  # another command that works alone here is let finish
CHAT_SECONDS = 3.0  # a chat that works alone and was just opened begins to answer others
SAY_AFTER_SECONDS = 1.5  # nobody waits longer without being told for what
SETTLE_SECONDS = 0.3  # in which a starting worker takes a home that was just left
LONE_CHAT = "hermes chat"


def is_listening(home: Path) -> bool:
    """Tell whether somebody answers at the socket: a killed gateway leaves the file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(OSError):
        line.settimeout(1.0)
        with control.short_address(paths.socket(str(home))) as address:
            line.connect(address)
        return True
    return False


def wait_for_gateway(home: Path) -> bool:
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


def wait_for_owner(home: Path) -> bool:
    """Wait until no other command works alone in the home. True: a chat does, and it answers for it."""
    path, began, is_told = paths.owner_lock(str(home)), time.monotonic(), False
    while (holder := locks.holder(path)) is not None:
        if holder.what == LONE_CHAT and is_listening(home) and not processes.is_stopped(holder.pid):
            return True
        waited = time.monotonic() - began
        patience = CHAT_SECONDS if holder.what == LONE_CHAT else OWNER_SECONDS
        if waited >= patience or processes.is_stopped(holder.pid):
            raise held_by(holder)
        if waited >= SAY_AFTER_SECONDS and not is_told and holder.what != LONE_CHAT:
            is_told = True
            note(f"{_as_subject(holder)} works alone in this home. I wait up to {OWNER_SECONDS:.0f} s for its end.")
        time.sleep(processes.LOOK_SECONDS)
    return False


def held_by(holder: locks.Holder) -> GatewayError:
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
