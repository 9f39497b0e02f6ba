"""Write files of the skills folder: private, atomic, one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.agent.skills.parse import SkillError
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private

LOCK = ".lock"
TRASH = ".trash"
STAGING = ".staging-"
LOCK_SECONDS = 10.0
STALE_SECONDS = 3600.0
MAX_IN_TRASH = 20


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Be the only one who changes this skills folder. Waits for the other, not for ever."""
    make_private_folder(folder)
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, folder)
        yield
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise SkillError(f"Another process is changing {folder}. Try again in a moment.") from None
            time.sleep(0.02)
        else:
            return


@contextlib.contextmanager
def staging_in(folder: Path) -> Iterator[Path]:
    """A private folder beside the skills, on the same disk, gone at the end of the block."""
    place = folder / f"{STAGING}{secrets.token_hex(6)}"
    make_private_folder(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def sweep(folder: Path, *, now: float) -> None:
    """Remove what a killed process left in the middle of its work."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(STAGING) and now - entry.stat(follow_symlinks=False).st_mtime > STALE_SECONDS:
                shutil.rmtree(entry.path, ignore_errors=True)


def move_in(ready: Path, place: Path) -> None:
    """Put a folder that is complete into its place, in one step."""
    make_private_folder(place.parent)
    os.rename(ready, place)


def to_trash(folder: Path, place: Path, *, now: float) -> Path:
    """Move a skill away so that it can be brought back; the oldest of the trash go for good."""
    trash = folder / TRASH
    make_private_folder(trash)
    address = str(place.relative_to(folder))
    kept = trash / f"{int(now * 1000):015d}-{secrets.token_hex(3)}"
    make_private_folder(kept)
    os.rename(place, kept / "skill")
    write_private(kept / "address.json", json.dumps({"address": address, "at": now}))
    for old in sorted(trash.iterdir())[:-MAX_IN_TRASH]:
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):  # its category may hold others
        if place.parent != folder:
            place.parent.rmdir()
    return kept


def from_trash(folder: Path, name: str) -> Path | None:
    """Bring back the newest skill of this name or address. None: there is none. SkillError: its place is taken."""
    trash = folder / TRASH
    for kept in sorted(trash.iterdir(), reverse=True) if trash.is_dir() else ():
        address = str(read_json(kept / "address.json").get("address") or "")
        if name not in {address, address.rpartition("/")[2]} or not (kept / "skill").is_dir():
            continue
        place = folder / address
        if place.exists():
            raise SkillError(f"{address} is there already, so the removed one stays in the trash.")
        move_in(kept / "skill", place)
        shutil.rmtree(kept, ignore_errors=True)
        return place
    return None


def read_json(path: Path) -> Mapping[str, Any]:
    """Return a table of our own; whatever cannot be read says nothing."""
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
