"""Format an event as one log line: fixed words first, fields after.

Imported by the parent too: standard library only, and little of it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping

from hermes.core.printable import printable_json, printable_line

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/@+%…,")


def stamp(at: float) -> str:
    """Local time with its offset, to the millisecond: readable here, and the same moment everywhere."""
    local = time.localtime(at)
    offset = time.strftime("%z", local)
    milliseconds = int(at * 1000) % 1000
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{milliseconds:03d}{offset[:3]}:{offset[3:]}"


def line(at: float, level: str, words: str, fields: Mapping[str, object]) -> str:
    """One line, whatever the words and the values hold: a stranger's text must not look like a log line of ours."""
    told = "".join(f" {name}={value_text(value)}" for name, value in fields.items())
    return f"{stamp(at)} {level} {printable_line(words)}{told}"


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
