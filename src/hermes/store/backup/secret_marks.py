"""Take secrets out of settings, and put them back where the home still knows them.

A secret becomes ``<secret:0123456789abcdef>``: a keyed fingerprint, which tells nothing to anybody without the home's
key. At a restore the value comes back from the home's present settings, if it is there.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

MIN_CHARS = 6
_MARK = re.compile(r"<secret:([0-9a-f]{16})>")


def mark_secrets(text: str, secrets: Iterable[str], key: bytes) -> tuple[str, int]:
    """Replace every secret of a text; returns the text and how many were replaced."""
    count = 0
    for value in _ordered(secrets):
        count += text.count(value)
        text = text.replace(value, f"<secret:{_fingerprint(value, key)}>")
    return text, count


def fill_in(text: str, secrets: Iterable[str], key: bytes) -> tuple[str, int]:
    """Put known secrets back; returns the text and how many are still missing."""
    known = {_fingerprint(value, key): value for value in _ordered(secrets)}
    filled = _MARK.sub(lambda mark: known.get(mark[1], mark[0]), text)
    return filled, len(_MARK.findall(filled))


def _ordered(secrets: Iterable[str]) -> list[str]:
    """The longest first: one may hold another. Also as addresses and JSON spell them."""
    forms = {
        form
        for value in secrets
        if len(value) >= MIN_CHARS
        for form in (value, quote(value, safe=""), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    }
    return sorted(forms, key=lambda form: (-len(form), form))


def _fingerprint(value: str, key: bytes) -> str:
    return hmac.new(key, b"secret" + value.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:16]
