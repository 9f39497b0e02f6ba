"""Measure what a call itself costs, whatever else the process of the tests keeps in memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


def cpu_seconds(call: Callable[[], object]) -> float:
    """Return the CPU time of the call. Objects of other tests are not collected while it runs."""
    gc.collect()
    gc.freeze()
    began = time.process_time()
    try:
        call()
        return time.process_time() - began
    finally:
        gc.unfreeze()
