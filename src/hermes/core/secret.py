"""Hold secrets in a type that does not print, and redact them in text."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import final
from urllib.parse import quote

HIDDEN = "[hidden]"

# A private key as files hold it. Line numbers and other marks may stand before its lines, and one end may be missing.
_EDGE = re.compile(r"-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY-----")
_LINE = r"[^\n]{0,12}?[A-Za-z0-9+/=]{16,}"
_FIRST_LINES = re.compile(rf"(?:(?:\r?\n|\s){_LINE})+")
_WHOLE_LINE = re.compile(rf"{_LINE}[ \t\r]*")
_MAX_KEY_CHARS = 20_000
_MAX_MARK_CHARS = 12
_MAX_LAST_LINE_CHARS = 30


@final
class Secret:
    """A token, key or password. Only ``reveal()`` gives it out; printing, logging and dumping do not."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def hint(self) -> str:
        """Enough to tell two keys apart: ``…x7Q``; nothing at all of a short one."""
        return f"…{self._value[-3:]}" if len(self._value) >= 12 else HIDDEN

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})" if self._value else "Secret(empty)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)


class Redactor:
    """Replace known secrets of 6 characters or more, also URL- or JSON-encoded, and every private key."""

    def __init__(self, secrets: Iterable[Secret] = ()) -> None:
        self._known: set[str] = set()
        self._ordered: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[Secret]) -> None:
        self._known |= {form for secret in secrets if len(value := secret.reveal()) >= 6 for form in _forms(value)}
        self._ordered = tuple(sorted(self._known, key=len, reverse=True))  # the longest first: one may hold another

    def __call__(self, text: str) -> str:
        for value in self._ordered:
            if value in text:
                text = text.replace(value, HIDDEN)
        return _without_keys(text) if "PRIVATE KEY-----" in text else text

    def mask(self, raw: bytes) -> bytes:
        """The same for bytes that a program wrote, and just as many of them: whoever reads on finds the place again."""
        for value in self._ordered:
            secret = value.encode()
            if secret in raw:
                raw = raw.replace(secret, b"*" * len(secret))
        if b"PRIVATE KEY-----" not in raw:
            return raw
        masked = bytearray(raw)
        for start, end in _private_keys(raw.decode("latin-1")):  # each byte one character, whatever it is
            masked[start:end] = b"*" * (end - start)
        return bytes(masked)


def _forms(value: str) -> set[str]:
    return {value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}


def _without_keys(text: str) -> str:
    parts, done = [], 0
    for start, end in _private_keys(text):
        parts += [text[done:start], HIDDEN]
        done = end
    return "".join([*parts, text[done:]])


def _private_keys(text: str) -> Iterator[tuple[int, int]]:
    """Where keys and halves of keys stand, in order.

    Whoever writes to us chooses the text, and it is looked through on the event loop: so every part of it is looked
    at a few times at the most, however many edges it holds.
    """
    edges = list(_EDGE.finditer(text))
    ends = deque(edge for edge in edges if edge[1] == "END")
    done = 0
    for edge in edges:
        if edge.start() < done:
            continue
        while ends and ends[0].start() < edge.start():
            ends.popleft()
        found = _begun_by(text, edge, ends) if edge[1] == "BEGIN" else _ended_by(text, edge, done)
        if found is not None:
            yield found
            done = found[1]


def _begun_by(text: str, edge: re.Match[str], ends: deque[re.Match[str]]) -> tuple[int, int] | None:
    """Return a key up to its end, or, where that is missing, the lines that are there."""
    if ends and ends[0].start() - edge.end() <= _MAX_KEY_CHARS:
        return edge.start(), ends[0].end()
    lines = _FIRST_LINES.match(text, edge.end())
    return None if lines is None else (edge.start(), lines.end())


def _ended_by(text: str, edge: re.Match[str], floor: int) -> tuple[int, int] | None:
    """Return the last lines of a key whose beginning is missing; the very last may be a short one."""
    start = text.rfind("\n", max(floor, edge.start() - _MAX_MARK_CHARS - 1), edge.start()) + 1
    if not start:
        return None
    first = _lines_before(text, start, floor)
    if first == start:
        above = text.rfind("\n", floor, start - 1) + 1 or floor
        if start - 1 - above <= _MAX_LAST_LINE_CHARS:
            start = above
            first = _lines_before(text, start, floor)
    return None if first == start else (first, edge.end())


def _lines_before(text: str, start: int, floor: int) -> int:
    """Return where the lines of a key begin that end right before ``start``; ``start`` itself where there are none."""
    while start > floor:
        above = text.rfind("\n", floor, start - 1) + 1 or floor
        if not _WHOLE_LINE.fullmatch(text, above, start - 1):
            break
        start = above
    return start
