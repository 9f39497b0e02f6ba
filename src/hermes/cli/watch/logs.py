"""``hermes logs``: print, filter and follow the log files."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from hermes.cli.support.home import home_folder
from hermes.cli.support.screen import complain
from hermes.core.durations import parse_duration
from hermes.hosting import paths
from hermes.hosting.logs.reader import LEVELS, LogEntry, LogFilter, LogTail, newest
from hermes.hosting.terminal import err, out, out_json

if TYPE_CHECKING:
    import argparse

LOOK_SECONDS = 0.3
NOT_FOUND = 1
USAGE_ERROR = 2

EXAMPLES = """\
  hermes logs                                 the last 50 entries
  hermes logs -f --level warning              follow warnings and errors
  hermes logs --component telegram --since 2h
  hermes logs --since 2026-05-01T08:00 -n 1000 --json
"""


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
        tail = LogTail(path)
        try:
            while True:
                for entry in filter(wanted, tail.entries()):
                    _print(entry, as_json=args.as_json)
                _check_reader()
                time.sleep(LOOK_SECONDS)
        finally:
            tail.close()
    return 0


def _moment(text: str) -> float:
    if (seconds := parse_duration(text)) is not None:
        return time.time() - seconds
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ValueError(f"--since {text}: write 30m, 2h, 1d, or a time like 2026-05-01T08:00") from None


def _check_reader() -> None:
    """Raise BrokenPipeError if the reader of our output has left (``| head``): a quiet log would never find out."""
    import select

    reader = select.poll()
    reader.register(sys.stdout.fileno(), 0)  # errors and hangups are told without being asked for
    if reader.poll(0):
        raise BrokenPipeError


def _print(entry: LogEntry, *, as_json: bool) -> None:
    if as_json:
        value = {"at": entry.at, "level": entry.level, "text": entry.text, "fields": entry.fields}
        out_json(value, flush=True)
    else:
        out(entry.text, flush=True)
