"""Do something at most once in so many seconds for each key."""

from __future__ import annotations

from collections.abc import Hashable

from hermes.core.bounded import BoundedDict

MAX_KEYS = 10_000


class Throttle:
    """Says yes once in so many seconds for each key. Bounded: a crowd makes it forget the oldest, never grow."""

    def __init__(self, seconds: float, most: int = MAX_KEYS) -> None:
        self._seconds = seconds
        self._at = BoundedDict[Hashable, float](most)

    def is_due(self, key: Hashable, now: float) -> bool:
        at = self._at.get(key)
        if at is not None and now - at < self._seconds:
            return False
        self._at[key] = now
        return True

    def forget(self, key: Hashable) -> None:
        self._at.pop(key, None)
