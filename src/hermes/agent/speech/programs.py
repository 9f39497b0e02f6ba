"""Run the speech programs that the owner names, and say in words why one failed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence

from hermes.agent.backends.environment import scrubbed
from hermes.agent.programs import StartedGroup, TooMuchError, run_program
from hermes.core.errors import ToolError

MAX_OUTPUT_BYTES = 100_000_000  # of what it prints: an hour of silence is a few bytes when packed, and endless unpacked
SHOWN = 300


def argv_of(template: str, values: Mapping[str, str], setting: str) -> list[str]:
    """Return the words of a command with their placeholders filled in; no shell ever sees them."""
    try:
        parts = shlex.split(template)
    except ValueError as error:
        raise ToolError(f"{setting} cannot be read ({error}). The owner sets it anew.") from None
    if not parts:
        raise ToolError(f"{setting} is empty. The owner names a program there.")
    for name, value in values.items():
        parts = [part.replace(f"{{{name}}}", value) for part in parts]
    return parts


async def run(
    argv: Sequence[str],
    *,
    stdin: bytes = b"",
    seconds: float,
    started_group: StartedGroup = None,
    what: str = "",
    most_bytes: int = MAX_OUTPUT_BYTES,
) -> bytes:
    """Run a program and return its output; ToolError when missing, failed, late or too long."""
    name = what or os.path.basename(argv[0])
    env = scrubbed(os.environ, passed=("LD_LIBRARY_PATH",))
    try:
        code, out, err = await run_program(
            argv, stdin=stdin, seconds=seconds, max_bytes=most_bytes, env=env, started_group=started_group
        )
    except TooMuchError:
        raise ToolError(f"{name} printed more than {most_bytes} bytes and was ended.") from None
    except TimeoutError:
        raise ToolError(f"{name} took longer than {seconds:g} s and was ended.") from None
    except OSError as error:
        raise ToolError(f"{name} cannot be started ({error.strerror}).") from None
    if code != 0:
        complaint = " ".join(err.decode("utf-8", "replace").split())[-SHOWN:]
        raise ToolError(f"{name} failed with exit code {code}" + (f": {complaint}" if complaint else "."))
    return out
