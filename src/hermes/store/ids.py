"""Make ids that sort by time and are short enough to type."""

from __future__ import annotations

import os
import random
import time

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o, u: no look-alikes, no words
_PAIRS = tuple(one + other for one in _LETTERS for other in _LETTERS)


def new_id(prefix: str) -> str:
    """``t_1k4m9x2c7qf4b``: milliseconds, then 30 random bits. A name, not a secret."""
    now, chance, pairs = time.time_ns() // 1_000_000, random.getrandbits(30), _PAIRS
    times = f"{pairs[now >> 40]}{pairs[now >> 30 & 1023]}{pairs[now >> 20 & 1023]}{pairs[now >> 10 & 1023]}"
    rest = f"{pairs[now & 1023]}{pairs[chance >> 20]}{pairs[chance >> 10 & 1023]}{pairs[chance & 1023]}"
    return f"{prefix}_{(times + rest).lstrip('0')}"


def time_of(name: str) -> float | None:
    """When an id was made; None for one that was not made here."""
    digits = name.rpartition("_")[2].rjust(16, "0")
    if len(digits) != 16 or not set(digits) <= set(_LETTERS):
        return None
    milliseconds = 0
    for digit in digits[:10]:
        milliseconds = milliseconds << 5 | _LETTERS.index(digit)
    return milliseconds / 1000 if 946_684_800_000 < milliseconds < 7_258_118_400_000 else None


def new_code(length: int = 6) -> str:
    """A code that a person types, such as the one of an approval."""
    return "".join(_LETTERS[byte % 32] for byte in os.urandom(length)).upper()
