"""Files that a message names: ``@path`` is read into it, a picture goes with it.

A picture is named by ``@picture.png``, or by a path in the text as a terminal writes it when a file is dropped or
pasted.
"""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from hermes.core.dataclasses import dataclass
from hermes.core.messages import MAX_PICTURE_BYTES, MAX_PICTURES

MAX_FILE_BYTES = 200_000
MAX_FILES = 10
_MENTION = re.compile(r"(?<!\S)@(?:\"([^\"\n]+)\"|(\S+))")
# A path as it is pasted: in quotes, with its blanks behind backslashes, as a file address, or bare.
_PATH = re.compile(r"(?<![\S@])(?:\"([^\"\n]+)\"|'([^'\n]+)'|((?:file://|~?/|\.{1,2}/|[\w.-]+/)(?:\\.|[^\s\\])*))")
_TRAILING = ".,;:!?)]}'\""
_PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF")


@dataclass(frozen=True, slots=True)
class Mentioned:
    """``text`` is the message with the files below it; ``added`` and ``left_out`` say what became of each name.

    ``pictures`` go with the message, in the form that the gateway takes.
    """

    text: str
    added: tuple[tuple[str, int], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    pictures: tuple[dict[str, str], ...] = ()


def read_mentions(text: str, folder: Path) -> Mentioned:
    """Read the files that a message mentions. A word with @ that names no file stays a word."""
    added: list[tuple[str, int]] = []
    left_out: list[tuple[str, str]] = []
    pictures: list[dict[str, str]] = []
    parts = [text]
    for path in _named(text, folder):
        shown = os.path.relpath(path, folder) if path.is_relative_to(folder) else str(path)
        if len(added) == MAX_FILES:
            left_out.append((shown, f"at most {MAX_FILES} files"))
            continue
        try:
            if path.suffix.lower() in _PICTURES:
                data = _read_picture(path)
                if len(pictures) == MAX_PICTURES:
                    raise ValueError(f"at most {MAX_PICTURES} pictures")
                encoded = base64.b64encode(data).decode("ascii")
                pictures.append({"name": path.name, "path": str(path), "data": encoded})
                added.append((shown, len(data)))
                continue
            content = _read_text(path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            left_out.append((shown, reason))
            continue
        added.append((shown, len(content.encode())))
        fence = _fence(content)
        parts.append(f"{shown}:\n{fence}\n{content.rstrip()}\n{fence}")
    return Mentioned("\n\n".join(parts), tuple(added), tuple(left_out), tuple(pictures))


def as_mention(pasted: str, folder: Path) -> str:
    """A pasted path of a picture as ``@path``; '' for any other text."""
    text = pasted.strip()
    if "\n" in text or not text.lower().rstrip("'\"").endswith(_PICTURES):
        return ""
    found = next((path for path in _paths(f"{text}", folder) if path.suffix.lower() in _PICTURES), None)
    bare = _existing(folder, text)  # a name with blanks that nobody quoted
    path = bare or found
    if path is None or not path.is_file():
        return ""
    return f'@"{path}"' if re.search(r"\s", str(path)) else f"@{path}"


def _named(text: str, folder: Path) -> Iterator[Path]:
    """Every file behind an @, and every picture whose path stands in the text, once each."""
    seen: set[Path] = set()
    for found in _MENTION.finditer(text):
        name = found[1] or found[2]
        path = _existing(folder, name) or _existing(folder, name.rstrip(_TRAILING))
        if path is not None and path not in seen:
            seen.add(path)
            yield path
    for path in _paths(text, folder):
        if path not in seen and path.suffix.lower() in _PICTURES and path.is_file():
            seen.add(path)
            yield path


def _paths(text: str, folder: Path) -> Iterator[Path]:
    for found in _PATH.finditer(text):
        name = found[1] or found[2] or re.sub(r"\\(.)", r"\1", found[3] or "")
        if name.startswith("file://"):
            name = unquote(name.removeprefix("file://").removeprefix("localhost"))
        if not found[3] and "/" not in name:
            continue  # words in quotes
        path = _existing(folder, name) or _existing(folder, name.rstrip(_TRAILING))
        if path is not None:
            yield path


def _existing(folder: Path, name: str) -> Path | None:
    if not name or "\0" in name:
        return None
    try:
        path = Path(os.path.normpath(folder / Path(name).expanduser()))
        return path if path.exists() else None
    except (OSError, RuntimeError):  # a name that is too long, a folder that may not be looked into, no such user
        return None


def _read_text(path: Path) -> str:
    try:
        return _read(path, MAX_FILE_BYTES, f"{MAX_FILE_BYTES // 1000} kB").decode()
    except UnicodeDecodeError:
        raise ValueError("not a text file") from None


def _read_picture(path: Path) -> bytes:
    data = _read(path, MAX_PICTURE_BYTES, f"{MAX_PICTURE_BYTES >> 20} MB")
    if not data.startswith(_BEGINNINGS):
        raise ValueError("not a picture that a model can see (PNG, JPEG, GIF, WebP)")
    return data


def _read(path: Path, most: int, limit: str) -> bytes:
    """Read a regular file. Opened without waiting: a pipe or a device never holds up the message."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("not a regular file")
        raw = file.read(most + 1) if found.st_size <= most else b""
    if len(raw) > most or found.st_size > most:
        raise ValueError(f"larger than {limit}")
    return raw


def _fence(content: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", content)), default=0)
    return "`" * max(3, longest + 1)
