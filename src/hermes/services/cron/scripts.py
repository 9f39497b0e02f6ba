"""Find and run the scripts of jobs. They lie in the folder ``scripts`` of the home, where no tool can write."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from hermes.agent.backends.environment import scrubbed
from hermes.agent.programs import TooMuchError, run_program
from hermes.core.errors import GatewayError
from hermes.core.i18n.catalogue import LocalizedText

MAX_BYTES = 200_000
MAX_ERROR_CHARS = 500


class NoSuchScriptError(GatewayError):
    """A script that is not there; the text lists those that are."""


class ScriptFailedError(Exception):
    """A script did not do its work; the text says why."""


def folder_of(home: Path) -> Path:
    return home / "scripts"


def listed(home: Path) -> list[str]:
    """List the scripts there are, by the names that a job uses."""
    folder = folder_of(home)
    if not folder.is_dir():
        return []
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def check(home: Path, name: str) -> str:
    """Return the script's name relative to its folder. NoSuchScriptError lists those that exist."""
    folder = folder_of(home).resolve()
    wanted = Path(name.strip()).expanduser()
    path = (wanted if wanted.is_absolute() else folder / wanted).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        known = ", ".join(listed(home)[:20]) or "-"
        shown = str(path if wanted.is_absolute() else wanted)
        raise NoSuchScriptError(
            LocalizedText(lambda words: words.JOB_NO_SCRIPT.format(path=shown, folder=folder, known=known))
        )
    return path.relative_to(folder).as_posix()


async def run(home: Path, name: str, *, folder: str, seconds: float) -> str:
    """Run a script to its end and return what it printed. It sees no secret of the environment."""
    try:
        path = folder_of(home).resolve() / check(home, name)
    except NoSuchScriptError as error:
        raise ScriptFailedError(str(error)) from None
    where = folder or str(path.parent)
    line = f"cd {shlex.quote(where)} && exec {shlex.join(_argv(path))}"
    try:
        result = await run_program(
            ["/bin/sh", "-c", line], stdin=b"", seconds=seconds, max_bytes=MAX_BYTES, env=scrubbed(os.environ)
        )
    except TimeoutError:
        raise ScriptFailedError(f"The script {name} took longer than {seconds:g} s.") from None
    except TooMuchError:
        raise ScriptFailedError(f"The script {name} printed more than {MAX_BYTES:,} bytes.") from None
    except OSError as error:
        raise ScriptFailedError(f"The script {name} could not be started: {error.strerror}.") from None
    if result.code:
        last = result.err.decode("utf-8", "replace").strip()[-MAX_ERROR_CHARS:]
        raise ScriptFailedError(f"The script {name} ended with code {result.code}: {last or 'no message'}")
    return result.out.decode("utf-8", "replace")


def _argv(path: Path) -> list[str]:
    match path.suffix:
        case ".py":
            return [sys.executable, str(path)]
        case ".sh":
            return ["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", str(path)]
        case _:
            return [str(path)]
