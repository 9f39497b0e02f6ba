"""What a platform never said, made from what it says: for readers that must not break."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any


def mutated(chance: random.Random, value: Any, strange: Sequence[Any]) -> Any:
    """One thing in it is gone, or one of the strange ones."""
    whole = copy.deepcopy(value)
    at = whole
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return whole
        key = chance.choice(keys)
        if isinstance(at[key], (dict, list)) and at[key] and chance.random() < 0.8:
            at = at[key]
            continue
        if isinstance(at, dict) and chance.random() < 0.3:
            del at[key]
        else:
            at[key] = chance.choice(strange)
        return whole
