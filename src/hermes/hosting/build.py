"""Identify this build (version, commit, folder), to notice code that was updated under a running gateway."""

from __future__ import annotations

import os
import re

import hermes
from hermes.core.dataclasses import dataclass

SHORT = 8
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True, slots=True)
class Build:
    """``commit`` is '' where Hermes was not installed as a clone."""

    version: str
    commit: str = ""
    folder: str = ""

    def __str__(self) -> str:
        return f"{self.version} (commit {self.commit[:SHORT]})" if self.commit else self.version


def installed() -> Build:
    """The code as it lies on the disk now. Three small files are read, and git is not called."""
    package = os.path.dirname(os.path.realpath(hermes.__file__))
    clone = os.path.dirname(os.path.dirname(package))
    # The file's version: what this process has loaded may be older.
    found = re.search(r'^__version__ = "([^"]+)"', _read(os.path.join(package, "__init__.py")), re.MULTILINE)
    return Build(found[1] if found else hermes.__version__, _commit(os.path.join(clone, ".git")), package)


def _commit(git: str) -> str:
    """The commit that is checked out; '' where that cannot be told."""
    if not os.path.isdir(git):  # a worktree: the file names the folder
        git = os.path.join(os.path.dirname(git), _read(git).partition("gitdir: ")[2].strip())
    head = _read(os.path.join(git, "HEAD")).strip()
    name = head.removeprefix("ref: ")
    if name == head:
        return head if _COMMIT.fullmatch(head) else ""
    common = os.path.join(git, _read(os.path.join(git, "commondir")).strip())
    commit = _read(os.path.join(common, name)).strip()
    if not commit:
        packed = re.search(
            rf"^([0-9a-f]+) {re.escape(name)}$", _read(os.path.join(common, "packed-refs")), re.MULTILINE
        )
        commit = packed[1] if packed else ""
    return commit if _COMMIT.fullmatch(commit) else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
