"""Measure what a call itself costs, whatever else the process of the tests keeps in memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def cpu_seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


@contextmanager
def only_own_garbage() -> Iterator[None]:
    """Keep the objects of other tests out of the collections that happen meanwhile, and of all later ones."""
    gc.collect()
    gc.freeze()
    yield
