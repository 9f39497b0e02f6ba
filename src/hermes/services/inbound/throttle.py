"""Do something at most once in so many seconds for each key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

MAX_KEYS = 10_000
MAX_ENTRIES = 5_000

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Throttle:
    """Says yes once in so many seconds for each key. Bounded: a crowd makes it forget the oldest, never grow."""

    def __init__(self, seconds: float, most: int = MAX_KEYS) -> None:
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


class Recent(Generic[K, V]):
    """The newest entries, so many at most. For what the store knows too: a forgotten entry costs one more look."""

    def __init__(self, most: int = MAX_ENTRIES) -> None:
        self._most = most
        self._entries: dict[K, V] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._entries

    def __getitem__(self, key: K) -> V:
        return self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, value: V) -> None:
        self._entries.pop(key, None)  # so that it counts among the newest
        self._entries[key] = value
        if len(self._entries) > self._most:
            del self._entries[next(iter(self._entries))]
