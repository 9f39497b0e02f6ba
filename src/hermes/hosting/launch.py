"""Start the supervisor. Every start imports this module: keep it small."""

from __future__ import annotations

import os
import sys

import hermes
from hermes.hosting import paths

MARKER = ".hermes-home"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def supervisor_command(*, replace: bool = False, detached: bool = False) -> list[str]:
    """Its command line names it `hermes supervisor`, so that whoever looks for `hermes gateway` finds the worker."""
    # ``-P``: a file in the current folder that is named like one of our modules must not be run instead.
    package_folder = os.path.dirname(os.path.dirname(os.path.realpath(hermes.__file__)))
    isolation = [] if package_folder == paths.working_folder("") else ["-P"]
    command = [sys.executable, *isolation, "-m", "hermes", "supervisor"]
    return command + ["--replace"] * replace + ["--detached"] * detached


def start_at_once() -> None:
    """Become the supervisor of a home that is ours or that nobody uses yet; return when it needs a second look.

    The usual start takes this way, which loads no parser, no paths and no sqlite3.
    """
    home = os.path.abspath(os.path.expanduser(os.environ.get("HERMES_HOME") or "~/.hermes"))
    # A profile stands in another home, which may be another program's: a new one gets the second look.
    may_be_new = not os.environ.get("HERMES_PROFILE") and _is_empty(home)
    if (os.path.exists(os.path.join(home, MARKER)) or may_be_new) and not paths.why_unusable(home):
        become_supervisor(home, replace=False)


def _is_empty(home: str) -> bool:
    try:
        return not os.listdir(home)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def become_supervisor(home: str, *, replace: bool) -> NoReturn:
    """Turn this process into the supervisor; nothing of the CLI stays in memory."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, supervisor_command(replace=replace), environ_for(home))  # noqa: S606 - no shell, on purpose


def describe_missing_package(error: ModuleNotFoundError) -> str:
    """Name the package that is not installed and how to install it; "" where the module is one of ours."""
    name = (error.name or "").partition(".")[0]
    if not name or name == "hermes":
        return ""
    clone = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(hermes.__file__))))
    environment = os.path.join(clone, ".venv")
    if os.path.realpath(sys.prefix) == environment:
        cure = f"rm -r {environment}; the next command installs every package again"
    else:
        cure = f"{sys.executable} -m pip install --force-reinstall hermes-gateway"
    return f"The Python package {name} is missing → {cure}"


def is_inside(home: str) -> bool:
    """Tell whether the gateway of this home started us: the agent's own terminal."""
    from hermes.hosting import locks, processes

    holder = locks.holder(paths.parent_lock(home))
    return holder is not None and holder.pid in processes.ancestors(os.getpid())


def environ_for(home: str) -> dict[str, str]:
    return {**os.environ, "HERMES_HOME": home}
