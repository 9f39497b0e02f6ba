"""``@path`` in a message: the file is read into it."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from hermes.core.dataclasses import dataclass

MAX_FILE_BYTES = 200_000
MAX_FILES = 10
_MENTION = re.compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|(\S+))")
_TRAILING = ".,;:!?)]}'\""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """``text`` is the message with the files below it; ``added`` and ``left_out`` say what became of each name."""

    text: str
    added: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def read_mentions(text: str, folder: Path) -> Mentioned:
    """Read the files that a message mentions. A word with @ that names no file stays a word."""
    added: list[tuple[str, int]] = []
    left_out: list[tuple[str, str]] = []
    parts = [text]
    seen: set[Path] = set()
    for found in _MENTION.finditer(text):
        name = found[1] or found[2]
        path = _existing(folder, name) or _existing(folder, name.rstrip(_TRAILING))
        if path is None or path in seen:
            continue
        seen.add(path)
        shown = os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)
        if len(added) == MAX_FILES:
            left_out.append((shown, f"at most {MAX_FILES} files"))
            continue
        try:
            content = _read(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            left_out.append((shown, reason))
            continue
        added.append((shown, len(content.encode())))
        fence = _fence(content)
        parts.append(f"{shown}:\n{fence}\n{content.rstrip()}\n{fence}")
    return Mentioned("\n\n".join(parts), tuple(added), tuple(left_out))


def _existing(folder: Path, name: str) -> Path | None:
    if not name or "\0" in name:
        return None
    path = Path(os.path.normpath(folder / Path(name).expanduser()))
    try:
        return path if path.exists() else None
    except OSError:  # a name that is too long, or a folder that may not be looked into
        return None


def _read(path: Path) -> str:
    """The text of a regular file. Opened without waiting: a pipe or a device never holds up the message."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        if found.st_size > MAX_FILE_BYTES:
            raise ValueError(f"larger than {MAX_FILE_BYTES // 1000} kB")
        raw = file.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES // 1000} kB")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None


def _fence(content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    return "`" * max(3, longest + 1)
