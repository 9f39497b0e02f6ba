"""Search without ripgrep: `python search_walk.py KIND PATTERN NAMES ROOT [SKIP ...]`.

A process of its own, since a pattern may take for ever and a thread in one cannot be stopped. Standard library
only. Prints what `search_files` reads from ripgrep too: ``path NUL line:text`` per match, or a path per line.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import sys
from collections.abc import Iterator

Identity = tuple[int, int]

BULKY_FOLDERS = ("node_modules", "__pycache__")
FILE_BYTES = 5_000_000
SHOWN_CHARACTERS = 300
PER_FILE = 50


def identity(path: str) -> Identity:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def files_under(root: str, skipped: set[Identity]) -> Iterator[str]:
    """Regular files in the order of their names, without hidden ones, links and what is skipped."""
    waiting = [(root, not os.path.isfile(root))]
    while waiting:
        path, is_folder = waiting.pop()
        if is_folder:
            waiting.extend(reversed(_look_into(path, skipped)))
        else:
            yield path


def _look_into(folder: str, skipped: set[Identity]) -> list[tuple[str, bool]]:
    """Paths in a folder, sorted, each with whether it is a folder itself."""
    seen: list[tuple[str, bool]] = []
    with contextlib.suppress(OSError):  # not readable, or gone by now: what was seen so far counts
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if entry.name.startswith(".") or entry.name in BULKY_FOLDERS:
                continue
            if entry.is_file(follow_symlinks=False):
                seen.append((entry.path, False))
            elif entry.is_dir(follow_symlinks=False) and identity(entry.path) not in skipped:
                seen.append((entry.path, True))
    return seen


def matches(path: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    try:
        if os.path.getsize(path) > FILE_BYTES:
            return
        with open(path, "rb") as file:
            raw = file.read(FILE_BYTES)
    except OSError:
        return
    if b"\0" in raw[:8192]:
        return
    found = 0
    for number, line in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        if pattern.search(line):
            yield number, line[:SHOWN_CHARACTERS]
            found += 1
            if found == PER_FILE:
                return


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()  # the reader stops us when it has enough


def main(kind: str, pattern: str, names: str, root: str, *skipped: str) -> None:
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr] # ours is a TextIOWrapper
    kept_out = {identity(folder) for folder in skipped if os.path.isdir(folder)}
    wanted = re.compile(fnmatch.translate(names.lower()))
    has_upper_case = any(char.isupper() for char in re.sub(r"\\.", "", pattern))  # \S and \W are classes, not letters
    text = re.compile(pattern, re.NOFLAG if has_upper_case else re.IGNORECASE) if kind == "text" else None
    for path in files_under(root, kept_out):
        if not wanted.match(os.path.basename(path).lower()):
            continue
        if text is None:
            say(path)
            continue
        for number, line in matches(path, text):
            say(f"{path}\0{number}:{line}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except re.error as error:
        sys.exit(f"{error}")
