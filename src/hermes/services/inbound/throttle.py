"""What was done for whom a while ago, so that it is not done again for each message."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MOST = 10_000


class Throttle:
    """Says yes once in so many seconds for each key. Bounded: a crowd makes it forget the oldest, never grow."""

    def __init__(self, seconds: float, most: int = MOST) -> None:
        self._seconds = seconds
        self._most = most
        self._at: OrderedDict[Hashable, float] = OrderedDict()

    def is_due(self, key: Hashable, now: float) -> bool:
        at = self._at.get(key)
        if at is not None and now - at < self._seconds:
            return False
        self._at[key] = now
        self._at.move_to_end(key)
        if len(self._at) > self._most:
            self._at.popitem(last=False)
        return True

    def forget(self, key: Hashable) -> None:
        self._at.pop(key, None)
