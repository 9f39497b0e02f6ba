"""Ids that sort by time and are short enough to type."""

from __future__ import annotations

import os
import time

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o, u: no look-alikes, no words


def new_id(prefix: str) -> str:
    """``t_1k4m9x2c7qf4b``: milliseconds, then 25 random bits."""
    number = (time.time_ns() // 1_000_000) << 25 | int.from_bytes(os.urandom(4), "big") & 0x1FFFFFF
    letters = []
    while number:
        number, digit = divmod(number, 32)
        letters.append(_LETTERS[digit])
    return f"{prefix}_{''.join(reversed(letters))}"


def new_code(length: int = 6) -> str:
    """A code that a person types, such as the one of an approval."""
    return "".join(_LETTERS[byte % 32] for byte in os.urandom(length)).upper()
