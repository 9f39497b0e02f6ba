"""Read the log files: entries, the newest of them, and those that follow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TextIO

from hermes.core.dataclasses import dataclass

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
ROTATED_FILES = 5

_ENTRY = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}([+-]\d\d:\d\d) ([A-Z]+) (.*)")
_FIELD = re.compile(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|\S*)')


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One event, with the lines that follow it (a traceback). ``level`` is "" for what was printed, not logged."""

    text: str
    level: str = ""
    at: float = 0.0

    @property
    def fields(self) -> dict[str, str]:
        first = self.text.split("\n", 1)[0]
        if (record := _json_of(first)) is not None:
            return {name: str(value) for name, value in record.items() if name not in ("time", "level", "message")}
        return {name: json.loads(value) if value[:1] == '"' else value for name, value in _FIELD.findall(first)}


@dataclass(frozen=True, slots=True)
class LogFilter:
    level: str = "DEBUG"
    component: str = ""
    since: float = 0.0

    def __call__(self, entry: LogEntry) -> bool:
        if not entry.level:  # banners: shown only where nothing was asked for
            return self == LogFilter()
        return (
            entry.at >= self.since
            and LEVELS.index(entry.level) >= LEVELS.index(self.level)
            and (not self.component or _is_about(entry, self.component))
        )


def newest(path: str, wanted: Callable[[LogEntry], bool], limit: int) -> list[LogEntry]:
    """The last entries that match, oldest first; older files are opened only while more is wanted."""
    found: list[LogEntry] = []
    for name in [path, *(f"{path}.{number}" for number in range(1, ROTATED_FILES + 1))]:
        if len(found) >= limit or not os.path.exists(name):
            break
        with open(name, encoding="utf-8", errors="replace") as file:
            found = [entry for entry in entries(file) if wanted(entry)] + found
    return found[-limit:] if limit else []


def entries(rows: Iterable[str | None]) -> Iterator[LogEntry]:
    """Whole entries; None among the rows means that nothing follows for now."""
    held: list[str] = []
    for row in rows:
        is_start = row is None or not row.startswith("  ")
        if is_start and held:
            yield _entry("\n".join(held))
            held = []
        if row is not None:
            held.append(row.rstrip("\n"))
    if held:
        yield _entry("\n".join(held))


def _json_of(line: str) -> dict[str, object] | None:
    """A line of ``logs.format: json``; None for any other."""
    if not line.startswith('{"time"'):
        return None
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("level") in LEVELS else None


def _entry(text: str) -> LogEntry:
    if (record := _json_of(text)) is not None:
        from datetime import datetime

        return LogEntry(text, str(record["level"]), datetime.fromisoformat(str(record["time"])).timestamp())
    found = _ENTRY.match(text)
    if found is None or found[3] not in LEVELS:
        return LogEntry(text)
    from datetime import datetime

    return LogEntry(text, found[3], datetime.fromisoformat(found[1] + found[2]).timestamp())


def _is_about(entry: LogEntry, component: str) -> bool:
    name = component.casefold()
    return name in entry.text.split("=", 1)[0].casefold() or any(
        value.casefold() == name or value.casefold().startswith((f"{name}:", f"{name}@", f"{name}/"))
        for value in entry.fields.values()
    )


class LogTail:
    """What is written into the log from now on. A file that was moved away is read to its end, then the new one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _open(path)
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def entries(self) -> list[LogEntry]:
        """Return the entries that were written since the last call."""
        was_moved = self._file is None or _was_moved(self._file, self._path)  # asked first: the rest of it is read
        rows = list(_whole_lines(self._file)) if self._file is not None else []
        if was_moved:
            self.close()
            self._file = _open(self._path)
            rows += list(_whole_lines(self._file)) if self._file is not None else []
        return list(entries(rows))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _whole_lines(file: TextIO) -> Iterator[str]:
    while True:
        place = file.tell()
        row = file.readline()
        if not row.endswith("\n"):
            file.seek(place)  # half a line: the rest comes soon
            return
        yield row


def _open(path: str) -> TextIO | None:
    try:
        return open(path, encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _was_moved(file: TextIO, path: str) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return True
    mine = os.fstat(file.fileno())
    return (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev) or now.st_size < file.tell()
