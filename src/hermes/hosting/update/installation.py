"""Say what an installation can do, and what clones and packages have in common."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from hermes.core.dataclasses import dataclass
from hermes.core.errors import GatewayError
from hermes.store.private_files import write_private

COMMAND_SECONDS = 900.0
VERSION_FILE = "version.json"
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS
_AT_WORKING_FOLDER = -100


class UpdateFailedError(GatewayError):
    """An update that was not taken up; the text says why. The version from before runs on."""


@dataclass(frozen=True, slots=True)
class NewVersion:
    """What can be installed. ``id`` is a commit or a version number; ``changes`` its newest titles."""

    id: str
    name: str
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StagedVersion:
    """New code beside the present one: ``python`` runs it with these variables."""

    version: NewVersion
    folder: Path
    python: Path
    environ: Mapping[str, str]


class Installation(Protocol):
    """``work`` is a folder on the same disk, for what is staged and what is kept."""

    work: Path

    def present(self) -> NewVersion: ...

    def look(self) -> NewVersion | None:
        """What is new; None: nothing."""

    def refuse_changes(self) -> None:
        """Raise ConfigError where an update would overwrite what somebody changed by hand."""

    def stage(self, version: NewVersion) -> StagedVersion:
        """Lay the new code out beside the present one, which stays as it is."""

    def switch(self, staged: StagedVersion) -> None:
        """Make the staged code the present one. The code from before is kept."""

    def previous(self) -> NewVersion | None:
        """The version that ``switch_back`` goes to."""

    def switch_back(self) -> None:
        """Make the code from before the present one; a second call takes that back."""


def write_version(folder: Path, version: NewVersion) -> None:
    """Note the version whose code a folder keeps."""
    write_private(folder / VERSION_FILE, json.dumps({"id": version.id, "name": version.name}))


def read_version(folder: Path) -> NewVersion | None:
    """Return the version whose code a folder keeps; None where that is not noted."""
    try:
        plain = json.loads((folder / VERSION_FILE).read_text("utf-8"))
        return NewVersion(str(plain["id"]), str(plain["name"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_command(command: Sequence[str], doing: str, environ: Mapping[str, str] | None = None) -> str:
    """Run a program and return what it printed; raises UpdateFailedError with its last lines."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise UpdateFailedError(f"{doing} failed: there is no program {command[0]}.") from None
    except subprocess.TimeoutExpired:
        raise UpdateFailedError(f"{doing} took more than {COMMAND_SECONDS / 60:.0f} minutes.") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()[-6:]
        raise UpdateFailedError("\n".join([f"{doing} failed:", *(f"    {line}" for line in lines)]))
    return done.stdout


def copy_environment(source: Path, target: Path) -> None:
    """Copy a virtual environment by links to its files: at once, and without their space.

    pip and Python replace files and never write into them, so the copy and the original do not touch each other.
    What our scripts do write into is copied.
    """
    target.mkdir(mode=0o700, parents=True)
    shutil.copy2(source / "pyvenv.cfg", target / "pyvenv.cfg")
    for name in ("lib", "bin"):
        shutil.copytree(source / name, target / name, symlinks=True, copy_function=_link)
    if (source / "lib64").is_symlink():
        (target / "lib64").symlink_to("lib")
    for stamp in source.glob("stamp-*"):
        shutil.copy2(stamp, target / stamp.name)
    for path_file in target.glob("lib/python*/site-packages/*.pth"):
        content = path_file.read_bytes()
        path_file.unlink()
        path_file.write_bytes(content)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copy2(source, target, follow_symlinks=False)


def exchange(first: Path, second: Path) -> None:
    """Exchange two folders in one step: whoever looks sees one or the other, never neither.

    Where the system cannot do that, by two renames, between which ``second`` is missing for an instant.
    """
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(first), os.fsencode(second)
    if hasattr(library, "renameat2"):
        code = library.renameat2(_AT_WORKING_FOLDER, names[0], _AT_WORKING_FOLDER, names[1], _EXCHANGE)
    elif hasattr(library, "renamex_np"):
        code = library.renamex_np(*names, _EXCHANGE)
    else:
        code = -1
    if code == 0:
        return
    aside = first.with_name(f"{first.name}.exchanged")
    os.rename(second, aside)
    os.rename(first, second)
    os.rename(aside, first)
