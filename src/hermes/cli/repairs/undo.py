"""Write down every change of a file before it is made, so that ``doctor --undo`` can take it back.

A record is a folder ``undo/<time>`` in the home: ``record.json`` with the steps, and the files as they were before. A
step is written down before it is done: a kill in between leaves a record that says more than was done, and taking such
a step back does nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

from hermes.core.errors import GatewayError
from hermes.store.home import make_private_folder
from hermes.store.private_files import write_private

FOLDER = "undo"
RECORD = "record.json"
UNDONE = "undone.json"
MAX_RECORDS = 5


class UndoRecord:
    """The changes of one ``doctor --fix``. Nothing is written before the first change."""

    def __init__(self, home: Path, now: float | None = None) -> None:
        self._home = home
        self._folder = _free_folder(home / FOLDER, time.time() if now is None else now)
        self._steps: list[dict[str, Any]] = []

    @property
    def name(self) -> str:
        """The name of the record; '' where nothing was changed that can be taken back."""
        return self._folder.name if self._steps else ""

    def chmod(self, path: Path, mode: int) -> None:
        before = stat.S_IMODE(path.lstat().st_mode)
        self._note({"kind": "mode", "path": self._short(path), "before": before, "after": mode})
        os.chmod(path, mode)

    def set_aside(self, path: Path) -> None:
        """Move a file or folder into the record."""
        kept = f"{len(self._steps)}-{path.name}"
        self._note({"kind": "moved", "path": self._short(path), "kept": kept})
        os.rename(path, self._folder / kept)

    def rewrite(self, path: Path, content: bytes) -> None:
        """Replace the content of a file that is there."""
        kept = f"{len(self._steps)}-{path.name}"
        before = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
        make_private_folder(self._folder)
        write_private(self._folder / kept, before)
        digest = hashlib.sha256(content).hexdigest()
        self._note({"kind": "content", "path": self._short(path), "kept": kept, "mode": mode, "after": digest})
        write_private(path, content)

    def _note(self, step: dict[str, Any]) -> None:
        make_private_folder(self._folder)
        self._steps.append(step)
        write_private(self._folder / RECORD, json.dumps({"steps": self._steps}, indent=1) + "\n")

    def _short(self, path: Path) -> str:
        return str(path.relative_to(self._home))

    def close(self) -> None:
        """Keep the newest few records."""
        for old in _records(self._home)[MAX_RECORDS:]:
            shutil.rmtree(old, ignore_errors=True)


def undo_last(home: Path) -> tuple[str, list[str], list[str]]:
    """Take the newest record back: its name, what was taken back, and what was not, each with its reason.

    GatewayError where nothing is to be undone.
    """
    folder = next((record for record in _records(home) if (record / RECORD).exists()), None)
    if folder is None:
        raise GatewayError("There is nothing to undo: doctor --fix has changed no file, or it was undone already.")
    try:
        steps = json.loads((folder / RECORD).read_text(encoding="utf-8"))["steps"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise GatewayError(f"The record {folder / RECORD} cannot be read ({error}). Nothing was changed.") from error
    done, left = [], []
    for step in reversed(steps):
        text, reason = _undo_step(home, folder, step)
        if reason:
            left.append(f"{text}: {reason}")
        elif text:
            done.append(text)
    if not left:
        os.replace(folder / RECORD, folder / UNDONE)
    return folder.name, done, left


def _undo_step(home: Path, folder: Path, step: dict[str, Any]) -> tuple[str, str]:
    """What was taken back, and why not where it was not; '' for a step that was never done."""
    path = home / step["path"]
    if not path.parent.resolve().is_relative_to(home.resolve()) or path.is_symlink():
        return step["path"], "it leads out of the home"
    match step["kind"]:
        case "mode":
            return _undo_mode(path, step)
        case "moved":
            if not (kept := folder / step["kept"]).exists() and not kept.is_socket():
                return "", ""
            if os.path.lexists(path):
                return step["path"], "there is a new one"
            os.rename(kept, path)
            return f"{step['path']} is back", ""
        case "content":
            return _undo_content(path, folder, step)
        case kind:
            return step["path"], f"this version cannot undo {kind!r}"


def _undo_mode(path: Path, step: dict[str, Any]) -> tuple[str, str]:
    if not path.exists():
        return step["path"], "it is gone"
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode == step["before"]:
        return "", ""
    if mode != step["after"]:
        return step["path"], f"its mode was changed since, to {mode:03o}"
    os.chmod(path, step["before"])
    return f"{step['path']} has the mode {step['before']:03o} again", ""


def _undo_content(path: Path, folder: Path, step: dict[str, Any]) -> tuple[str, str]:
    before = (folder / step["kept"]).read_bytes()
    present = path.read_bytes() if path.exists() else b""
    if present == before:
        return "", ""
    if hashlib.sha256(present).hexdigest() != step["after"]:
        return step["path"], f"it was changed since; the old copy is {folder / step['kept']}"
    write_private(path, before)
    os.chmod(path, step["mode"])
    return f"{step['path']} is as it was before", ""


def _records(home: Path) -> list[Path]:
    """Every record, the newest first."""
    folder = home / FOLDER
    return sorted((record for record in folder.iterdir() if record.is_dir()), reverse=True) if folder.is_dir() else []


def _free_folder(folder: Path, now: float) -> Path:
    while (place := folder / time.strftime("%Y%m%d%H%M%S", time.gmtime(now))).exists():
        now += 1
    return place
