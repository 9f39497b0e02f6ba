"""A worker without a gateway inside: real process, real heart, real control socket; behaves as it is told.

``python stand_in.py MODE… -- (what the parent adds)``. Modes: ``steady``, ``crash`` (before it is ready, every
time but in safe mode), ``exit=N`` (at the first life only), ``hang`` (the loop blocks once, after it is ready),
``deaf`` (no control socket, request files only), ``stubborn`` (never ends when asked), ``slow-end`` (drains for two
seconds), ``replaced-from-inside`` (types `hermes gateway run --replace` as the agent's terminal would, and kills that
command's group when it drains), ``crash-if=NAME`` (before it is ready, while this file is in the home), ``settles``
(takes up its platforms and settles an event once there is a file ``resume``). A hang-up is noted in ``lives``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hermes.core.errors import ConfigError
from hermes.hosting import locks, paths
from hermes.hosting.control.server import ControlServer
from hermes.hosting.worker import Serve, WorkerArguments, WorkerOptions, lifecycle_verbs, run_worker


def is_first_life(home: Path) -> bool:
    mark = home / "lived"
    if mark.exists():
        return False
    mark.touch()
    return True


def serving(modes: set[str]) -> Serve:
    async def serve(options: WorkerOptions, ready: Callable[[], None]) -> int:
        with (options.home / "lives").open("a") as file:
            file.write(f"{os.getpid()} {options.safe_reason}\n")
        if "config" in modes:
            raise ConfigError("the telegram token is a placeholder")
        crash_if = next((options.home / mode[9:] for mode in modes if mode.startswith("crash-if=")), None)
        if ("crash" in modes and not options.safe_reason) or (crash_if is not None and crash_if.exists()):
            raise RuntimeError("cannot start")
        owner = locks.take(paths.owner_lock(str(options.home)), "gateway worker", 3.0)
        if owner is None:
            raise RuntimeError("the home is taken")
        return await live(options, ready, modes)

    return serve


async def live(options: WorkerOptions, ready: Callable[[], None], modes: set[str]) -> int:
    async def status(_args: Mapping[str, Any], _reply: Any) -> dict[str, Any]:
        return {"state": "running", "started_at": options.started_at, "now": time.time(), "kept_up_by": ""}

    verbs = {**lifecycle_verbs(options), "status": status}
    async with ControlServer(options.home, verbs, options.tools).listening():
        if "deaf" in modes:
            (options.home / "run" / "gateway.sock").unlink()
        ready()
        for mode in modes:
            if mode.startswith("exit=") and is_first_life(options.home):
                return int(mode.removeprefix("exit="))
        if "hang" in modes and is_first_life(options.home):
            await asyncio.sleep(0.1)
            time.sleep(60)  # noqa: ASYNC251 - blocking the loop is what this mode is for
        if "replaced-from-inside" in modes:
            return await replaced_from_inside(options)
        others = [asyncio.create_task(note_hang_up(options))]
        if "settles" in modes:
            others.append(asyncio.create_task(settle_when_told(options)))
        code = await options.stop.wait()
        if "stubborn" in modes:
            time.sleep(60)  # noqa: ASYNC251 - the same
        if "slow-end" in modes:
            await asyncio.sleep(2)
        for task in others:
            task.cancel()
        return code


async def note_hang_up(options: WorkerOptions) -> None:
    await options.reload.wait()
    with (options.home / "lives").open("a") as file:
        file.write("hang-up\n")


async def settle_when_told(options: WorkerOptions) -> None:
    while not (options.home / "resume").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    options.heartbeat.resumed()
    options.heartbeat.settle()


async def replaced_from_inside(options: WorkerOptions) -> int:
    words = (sys.executable, "-P", "-m", "hermes", "gateway", "run", "--replace")
    command = await asyncio.create_subprocess_exec(*words, start_new_session=True)
    code = await options.stop.wait()
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        os.killpg(command.pid, signal.SIGKILL)
    await command.wait()
    return code


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("modes", nargs="*")
    parser.add_argument("--parent-fd", type=int, default=-1)
    parser.add_argument("--safe", default="")
    parser.add_argument("--detached", action="store_true")
    args = parser.parse_args()
    home = Path(os.environ["HERMES_HOME"])
    arguments = WorkerArguments(home, args.parent_fd, args.safe, args.detached)
    return run_worker(arguments, lambda: serving(set(args.modes)))


if __name__ == "__main__":
    sys.exit(main())
