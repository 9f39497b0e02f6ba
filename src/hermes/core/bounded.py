"""A dictionary that forgets its oldest entries, for everything remembered about strangers."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """Keeps the newest ``most`` entries. Setting a key makes the key the newest; a crowd never makes the dict grow.

    ``setdefault`` and ``update`` of a subclass of OrderedDict set keys through ``__setitem__`` and obey the limit too.
    """

    def __init__(self, most: int, entries: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self._most = most
        super().__init__(entries)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
