"""Ids that sort by time and are short enough to type."""

from __future__ import annotations

import base64
import os
import random
import time

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"  # without i, l, o, u: no look-alikes, no words
_TO_OURS = bytes.maketrans(b"0123456789ABCDEFGHIJKLMNOPQRSTUV", _LETTERS.encode())


def new_id(prefix: str) -> str:
    """``t_1k4m9x2c7qf4b``: milliseconds, then 30 random bits. A name, not a secret."""
    number = (time.time_ns() // 1_000_000) << 30 | random.getrandbits(30)
    letters = base64.b32hexencode(number.to_bytes(10, "big")).translate(_TO_OURS)
    return f"{prefix}_{letters.decode().lstrip('0')}"


def new_code(length: int = 6) -> str:
    """A code that a person types, such as the one of an approval."""
    return "".join(_LETTERS[byte % 32] for byte in os.urandom(length)).upper()
