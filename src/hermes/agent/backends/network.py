"""Give a sandbox its own network: the internet, without the host's loopback.

A sandbox has a network namespace, in which there is nothing. ``slirp4netns`` or ``pasta`` stands outside and carries
its connections; what listens on this machine's loopback or on an abstract socket stays out of reach.
"""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import time
from pathlib import Path

from hermes.agent.backends.child import ChildProcess, Launch
from hermes.agent.backends.lease import leased
from hermes.agent.backends.output import Output
from hermes.core.errors import ToolError

PROGRAMS = ("slirp4netns", "pasta")
RESOLVER = "10.0.2.3"  # answered by the program outside, with what this machine would answer
RESOLV_CONF = f"nameserver {RESOLVER}\n".encode()
READY_SECONDS = 5.0
LOOK_SECONDS = 0.01
_CHILD = re.compile(rb'"child-pid"\W+(\d+)')


def why_not() -> str:
    """Return why a sandbox can have no network here; '' when it can."""
    if any(shutil.which(program) for program in PROGRAMS):
        return ""
    return "neither pasta nor slirp4netns is installed (Debian: apt install slirp4netns, or passt)"


def sentence_offline() -> str:
    """Return the sentence that says why there is no network; '' if there is one."""
    reason = why_not()
    return f"There is no network here: terminal.network is on, but {reason}." if reason else ""


async def attach(info: int, environment: dict[str, str]) -> ChildProcess:
    """Connect a sandbox to the internet; the caller ends the returned process.

    bubblewrap describes the sandbox on the descriptor ``info``.
    """
    found = _CHILD.search(await asyncio.to_thread(_read_within, info, READY_SECONDS))
    if found is None:
        raise ToolError("The sandbox did not start, so it has no network. Call the tool again.")
    pid = int(found.group(1))
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), "")
    if not program:
        raise ToolError(sentence_offline())
    output = Output(Path(os.devnull))
    running = await ChildProcess.start(Launch(leased(_command(program, pid)), environment), output)
    deadline = time.monotonic() + READY_SECONDS
    while not _has_route(pid):
        if time.monotonic() > deadline:
            await running.end()
            lines = (await output.read(0, 2000)).decode("utf-8", "replace").strip().splitlines()
            raise ToolError(
                f"The sandbox got no network. {os.path.basename(program)}: {lines[-1] if lines else 'no output'}."
            )
        await asyncio.sleep(LOOK_SECONDS)
    return running


def _command(program: str, pid: int) -> tuple[str, ...]:
    if os.path.basename(program) == "slirp4netns":
        return (program, "--configure", "--mtu=65520", "--disable-host-loopback", str(pid), "tap0")
    ports = ("-t", "none", "-u", "none", "-T", "none", "-U", "none")
    user = ("--runas", "0") if os.getuid() == 0 else ()  # it would become somebody who may not enter the namespace
    return (program, "--foreground", "--config-net", "--no-map-gw", "--dns-forward", RESOLVER, *ports, *user, str(pid))


def _has_route(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/net/route").read_text(encoding="ascii").count("\n") > 1
    except OSError:
        return False


def _read_within(descriptor: int, seconds: float) -> bytes:
    found, deadline = b"", time.monotonic() + seconds
    while _CHILD.search(found + b"\n") is None or not found.rstrip().endswith(b","):
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        piece = os.read(descriptor, 4096) if ready else b""
        found += piece
        if not piece or found.rstrip().endswith(b"}"):
            break
    return found
