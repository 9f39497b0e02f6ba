"""``hermes logs``: print, filter and follow the log files."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from hermes.cli.support.client import home_folder
from hermes.cli.support.screen import complain
from hermes.core.dataclasses import dataclass
from hermes.core.durations import parse_duration
from hermes.hosting import paths
from hermes.hosting.terminal import err, out, out_json

if TYPE_CHECKING:
    import argparse

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOOK_SECONDS = 0.3
ROTATED_FILES = 5
NOT_FOUND = 1
USAGE_ERROR = 2

EXAMPLES = """\
  hermes logs                                 the last 50 entries
  hermes logs -f --level warning              follow warnings and errors
  hermes logs --component telegram --since 2h
  hermes logs --since 2026-05-01T08:00 -n 1000 --json
"""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="follow new entries; Ctrl+C ends")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="number of entries (default: 50)")
    parser.add_argument("--level", type=str.upper, choices=LEVELS, default="DEBUG", help="this level and above")
    parser.add_argument("--component", default="", metavar="NAME", help="only entries of this platform or component")
    parser.add_argument("--since", default="", metavar="WHEN", help="30m, 2h, 1d, or a time like 2026-05-01T08:00")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object per line")


def run(args: argparse.Namespace) -> int:
    try:
        wanted = LogFilter(args.level, args.component, _moment(args.since) if args.since else 0.0)
    except ValueError as error:
        complain(error)
        return USAGE_ERROR
    path = paths.log(str(home_folder()))
    if not os.path.exists(path) and not args.follow:
        err(f"✗ There is no log yet: {path}")
        return NOT_FOUND
    for entry in newest(path, wanted, max(0, args.lines)):
        _print(entry, as_json=args.as_json)
    if args.follow:
        for entry in entries(_while_read(_follow(path))):
            if wanted(entry):
                _print(entry, as_json=args.as_json)
    return 0


def newest(path: str, wanted: LogFilter, limit: int) -> list[LogEntry]:
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


def _entry(text: str) -> LogEntry:
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


def _moment(text: str) -> float:
    if (seconds := parse_duration(text)) is not None:
        return time.time() - seconds
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(f"--since {text}: write 30m, 2h, 1d, or a time like 2026-05-01T08:00") from None


def _follow(path: str) -> Iterator[str | None]:
    """New lines for ever; a file that was moved away is read to its end, then the new one."""
    file = _open(path)
    if file is not None:
        file.seek(0, os.SEEK_END)
    try:
        while True:
            was_moved = file is None or _was_moved(file, path)  # asked first: what was written until then is read
            if file is not None:
                yield from _whole_lines(file)
            yield None
            if was_moved:
                if file is not None:
                    file.close()
                file = _open(path)
            if file is None or not was_moved:
                time.sleep(LOOK_SECONDS)
    finally:
        if file is not None:
            file.close()


def _while_read(rows: Iterator[str | None]) -> Iterator[str | None]:
    """The rows, until whoever reads our output has left (``| head``): a quiet log would never find that out."""
    import select

    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)  # errors and hangups are told without being asked for
    for row in rows:
        if row is None and reader.poll(0):
            raise BrokenPipeError
        yield row


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


def _print(entry: LogEntry, *, as_json: bool) -> None:
    if as_json:
        value = {"at": entry.at, "level": entry.level, "text": entry.text, "fields": entry.fields}
        out_json(value, flush=True)
    else:
        out(entry.text, flush=True)
