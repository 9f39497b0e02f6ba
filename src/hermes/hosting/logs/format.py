"""Format an event as one log line: fixed words first, fields after.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping

from hermes.core.durations import format_time
from hermes.core.printable import printable_json, printable_line

_TAIL_BYTES = 64 * 1024
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+%…,")


def stamp(at: float) -> str:
    """Local time with its offset, to the millisecond: readable here, and the same moment everywhere."""
    moment, offset = format_time("%Y-%m-%dT%H:%M:%S %z", at).split(" ")
    milliseconds = int(at * 1000) % 1000
    return f"{moment}.{milliseconds:03d}{offset[:3]}:{offset[3:]}"


def line(at: float, level: str, words: str, fields: Mapping[str, object]) -> str:
    """One line, whatever the words and the values hold: a stranger's text must not look like a log line of ours."""
    suffix = "".join(f" {name}={value_text(value)}" for name, value in fields.items())
    return f"{stamp(at)} {level} {printable_line(words)}{suffix}"


def json_line(at: float, level: str, words: str, fields: Mapping[str, object], trace: str = "") -> str:
    """The same event as one JSON object: ``time``, ``level``, ``message``, the fields, and an exception's ``trace``."""
    record: dict[str, object] = {"time": stamp(at), "level": level, "message": words}
    for name, value in fields.items():
        is_number = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
        plain = value if is_number or value is None else str(value)
        record[f"{name}_" if name in record or name == "trace" else name] = plain
    if trace:
        record["trace"] = trace
    return json.dumps(record, ensure_ascii=False)


def ends_in_json(path: str) -> bool:
    """Whether the last line of a log is such an object: who cannot know the configuration writes as others do."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read().rstrip(b"\n").rpartition(b"\n")[2].startswith(b'{"time"')
    except OSError:
        return False


def value_text(value: object) -> str:
    text = str(round(value, 3)) if isinstance(value, float) else str(value)
    if text and _PLAIN.issuperset(text):
        return text
    return printable_json(json.dumps(text, ensure_ascii=False))


def append(path: str, text: str) -> None:
    """Add one line in one write, so that lines of two processes never mix; a lost log line stops nobody."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, text.encode("utf-8", "replace") + b"\n")
    except OSError:
        return
    finally:
        os.close(descriptor)
