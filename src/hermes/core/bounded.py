"""Memories of a limited size, for everything that strangers make the gateway remember."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

MOST_KEYS = 10_000

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dict of the newest ``most`` entries; setting a key (``setdefault``, ``update``) makes it the newest."""

    def __init__(self, most: int, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._most = most
        super().__init__(entries)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Throttle:
    """Says yes once in so many seconds for each key. Bounded: a crowd makes it forget the oldest, never grow."""

    def __init__(self, seconds: float, most: int = MOST_KEYS) -> None:
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


class Quota:
    """Says yes ``count`` times in so many seconds for each key. Bounded as ``Throttle`` is."""

    def __init__(self, count: int, seconds: float, most: int = MOST_KEYS) -> None:
        self._count = count
        self._seconds = seconds
        self._taken = BoundedDict[Hashable, tuple[float, int]](most)

    def has_room(self, key: Hashable, now: float) -> bool:
        return self._now(key, now)[1] < self._count

    def take(self, key: Hashable, now: float) -> bool:
        """Take one of them, and say whether there was one."""
        since, taken = self._now(key, now)
        if taken >= self._count:
            return False
        self._taken[key] = since, taken + 1
        return True

    def _now(self, key: Hashable, now: float) -> tuple[float, int]:
        since, taken = self._taken.get(key, (now, 0))
        # A clock that was set back begins anew, as one that has gone on far enough does.
        return (since, taken) if 0 <= now - since < self._seconds else (now, 0)
