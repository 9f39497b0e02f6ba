"""``python -m hermes gateway worker``, typed by nobody: the supervisor starts it. Everybody waits for it, so that it is
read by hand: a parser and what it needs would be a fortieth of the start.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes.cli.main import USAGE_ERROR, print_anything
from hermes.cli.support.program_name import command_name
from hermes.hosting.terminal import err
from hermes.hosting.worker import Serve, WorkerArguments, run_worker


def main(typed: Sequence[str]) -> int:
    """Be the worker; the exit code is the supervisor's instruction."""
    print_anything()
    arguments = read_arguments(typed, Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser().absolute())
    if arguments.parent_fd < 0:
        err(f"✗ The worker is started by its supervisor. Type: {command_name()} gateway run")
        return USAGE_ERROR
    return run_worker(arguments, _load)


def read_arguments(typed: Sequence[str], home: Path) -> WorkerArguments:
    """``--parent-fd N [--safe REASON] [--detached]``, as ``hosting.parent`` writes them."""
    parent_fd, safe_reason, is_detached = -1, "", False
    rest = list(typed)
    while rest:
        match rest.pop(0), rest:
            case "--parent-fd", [number, *rest]:
                parent_fd = int(number)
            case "--safe", [safe_reason, *rest]:
                pass
            case "--detached", _:
                is_detached = True
            case other, _:
                raise SystemExit(f"hermes gateway worker does not know {other!r}; people type: hermes gateway run")
    return WorkerArguments(home, parent_fd, safe_reason, is_detached, command_name())


def _load() -> Serve:
    from hermes.app.serve import serve

    return serve
