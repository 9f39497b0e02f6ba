"""A home as a first start leaves it: made once for all tests of a process, then copied.

Migrations and shipped skills take a first start sixty milliseconds of processor and forty waits for the disk; tests of
a first start itself ask for none of this. The index of the skills names inodes, so a copy gets an index of its own:
without it every start would read all skills anew.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hermes.agent.skills.library import CACHE, SkillLibrary
from hermes.agent.skills.parse import FILE_NAME
from hermes.store.home import MARKER, make_home, make_private_folder
from hermes.store.open import open_database

STORE = "state.db"


@dataclass(frozen=True, slots=True)
class _Kept:
    name: str
    mode: int
    changed_at: int
    content: bytes | None  # None: a folder


def copy_home(home: Path) -> None:
    """Fill a home that has no store yet; what is there already stays."""
    make_private_folder(home)
    if not (home / STORE).exists():
        home.mkdir(0o700, parents=True, exist_ok=True)
        for kept in _started():
            _copy(kept, home / kept.name)
        _correct_index(home / "skills")


def copy_store(folder: Path) -> Path:
    """Put a store with all its tables and no rows into a folder, unless it has one; return its path."""
    for kept in _started() if not (folder / STORE).exists() else ():
        if kept.content is not None and "/" not in kept.name and kept.name != MARKER:
            _copy(kept, folder / kept.name)
    return folder / STORE


def _copy(kept: _Kept, path: Path) -> None:
    if kept.content is None:
        path.mkdir(kept.mode, exist_ok=True)
    elif not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, kept.mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(kept.content)
        os.utime(path, ns=(kept.changed_at, kept.changed_at))  # a store knows when it was closed


def _correct_index(skills: Path) -> None:
    path = skills / CACHE
    index = json.loads(path.read_bytes())
    for address, entry in index["skills"].items():
        seen = (skills / address / FILE_NAME).stat()
        entry["stamp"] = (seen.st_mtime_ns, seen.st_size, seen.st_ino)
    path.write_text(json.dumps(index), "utf-8")


@cache
def _started() -> tuple[_Kept, ...]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:  # the test's loop runs already
        home = Path(folder) / "home"
        thread.submit(asyncio.run, _start(home)).result(60)
        found = sorted(path for path in home.rglob("*"))
        return tuple(_keep(path, home) for path in found)


async def _start(home: Path) -> None:
    make_home(home)
    database = await open_database(home / STORE)
    await database.close()
    SkillLibrary(home).bring_in()


def _keep(path: Path, home: Path) -> _Kept:
    seen = path.stat()
    content = None if path.is_dir() else path.read_bytes()
    return _Kept(str(path.relative_to(home)), seen.st_mode & 0o777, seen.st_mtime_ns, content)
