"""Parse server-sent events of model providers, by bytes."""

from __future__ import annotations

import re

MAX_LINE_BYTES = 16_000_000
DONE = b"[DONE]"
_VALUES = re.compile(rb"^data:[^\S\n]*+(.*\S)", re.MULTILINE)


class LineTooLongError(ValueError):
    """A single line outgrew what any answer needs; reading on would only fill the memory."""


class DataLines:
    """Gives back the value of every ``data:`` line, whole, wherever the network cut it.

    Comments (``: keep-alive``), ``event:``, ``id:`` and ``retry:`` lines are passed over, since every dialect
    repeats what it needs inside the JSON. One ``data:`` line is one event: no provider folds JSON over
    several, and some forget the blank line between two.
    """

    __slots__ = ("_held", "_longest", "_rest")

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._longest = longest
        self._rest: list[bytes] = []  # pieces of a line whose end has not come yet
        self._held = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Take what the network gave; return the values that are complete now."""
        if self._rest:
            if b"\n" not in data:
                self._hold(data)
                return []
            self._rest.append(data)
            data = b"".join(self._rest)
            self._rest.clear()
            self._held = 0
        end = data.rfind(b"\n") + 1
        if end < len(data):
            self._hold(data[end:])
        return _VALUES.findall(data, 0, end)

    def finish(self) -> list[bytes]:
        """The stream has ended: a last line without its line feed counts too."""
        return self.feed(b"\n") if self._rest else []

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._longest:
            raise LineTooLongError
        self._rest.append(piece)
