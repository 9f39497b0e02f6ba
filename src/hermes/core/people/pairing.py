"""Pairing rules: codes for unknown senders, and who may approve them."""

from __future__ import annotations

import hashlib
import hmac
import re

ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""No look-alikes: no 0 and O, no 1, I and L."""
CODE_LENGTH = 8
LIVE_SECONDS = 3600.0
MAX_WAITING = 20
"""Requests that wait at one time on one account; the oldest unanswered one gives way to the next."""
MAX_CARDS = 5
"""Requests of one account that are announced within an hour; further ones are announced together, once."""
WRONG_CODES = 5
LOCK_SECONDS = 900.0

_SPACES = re.compile(r"[\s`'\"-]+")


def code_of(secret: bytes, *, platform: str, account: str, user_id: str, asked_at: float) -> str:
    """Return the code of one request. It is derived, so it can be shown again and listed, and is stored nowhere."""
    named = "\0".join((platform, account, user_id, f"{asked_at:.6f}")).encode("utf-8", "replace")
    number = int.from_bytes(hmac.digest(secret, named, hashlib.sha256)[:16], "big")
    letters = []
    for _ in range(CODE_LENGTH):
        number, index = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[index])
    return "".join(letters)


def as_typed(code: str) -> str:
    """Return a code as somebody typed or pasted it: spaces, quotes, hyphens and small letters do not matter."""
    return _SPACES.sub("", code).upper()


def is_same(one: str, other: str) -> bool:
    """Compared in constant time, so that nobody learns a code letter by letter."""
    return hmac.compare_digest(as_typed(one).encode("utf-8", "replace"), as_typed(other).encode("utf-8", "replace"))


def is_live(asked_at: float, now: float) -> bool:
    return now - asked_at < LIVE_SECONDS


def button_data(platform: str, code: str, *, approve: bool) -> str:
    return f"pair:{'yes' if approve else 'no'}:{platform}:{code}"


def read_button(data: str) -> tuple[str, str, bool] | None:
    """Platform, code and whether it approves; None when it is not a button of a pairing."""
    match data.split(":"):
        case ["pair", ("yes" | "no") as answer, platform, code]:
            return platform, code, answer == "yes"
    return None
